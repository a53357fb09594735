"""Checks of requests that wait: how they are woken, what they are answered, and what becomes of their connections."""

import copy
import json
import os
import random
import socket
import struct
import threading
import time

from bad_input import get, judge
from canvas import bulk
from following import Record
from harness import (
    Client, ConnectionLost, Failure, action, add, encode_request, expect, expect_equal, parse_answer, processes,
    wait_until)
from streaming import EVENTS, LINES, NothingCame, StreamClient, StreamRecord, ValueRecord, counted, many_descriptors, open_stream
from streams import follow_through_kills, tell_crowd


def begin(server, target, method="GET", **fields):
    """A client whose request is under way."""
    client = server.client(timeout=20)
    client.begun = time.monotonic()
    client.send(encode_request(method, target, fields={name.replace("_", "-"): value for name, value in fields.items()}))
    return client


def finish(client, method="GET"):
    """The answer, and how many seconds it took from the request."""
    answer = client.receive(method)
    return answer, time.monotonic() - client.begun


def parked(server, client, count):
    wait_until(lambda: server.metric(client, "waiters") == count, f"{count} waiters")


def ends(client, seconds=5):
    """Whether the server has closed the connection, with nothing more on it."""
    client.socket.settimeout(seconds)
    try:
        return not client.buffer and client.socket.recv(1 << 16) == b""
    except (ConnectionResetError, BrokenPipeError):
        return True
    except TimeoutError:
        return False


# Clients that vanish


def descriptors(server):
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def leave(client, how):
    """Closes a client's connection: with a FIN as usual, or with an RST as a crashed machine's router does."""
    if how == "RST":
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def vanished_crowd(bench):
    """2,000 clients that vanish while they wait, with FIN or RST and between commits, are noticed and freed within seconds."""
    with many_descriptors(4000):
        return vanish(bench.server(data="none"), 2000)


def vanish(server, count):
    """Lets so many wait and go away, twice: in silence, and while there are commits."""
    texts = []
    with server.client() as client:
        tag = client.get("/v1/state/counter").fields["etag"]
        before = descriptors(server)
        for is_busy in (False, True):
            tag = client.get("/v1/state/counter").fields["etag"]
            here = client.get("/v1").json["cursor"]
            kinds = [
                ("/v1/state/counter?wait=50", {"If_None_Match": tag}), (f"/v1/changes?since={here}&wait=50", {}),
                ("/v1/changes?since=now", {"Accept": EVENTS}), ("/v1/state/counter", {"Accept": EVENTS}),
                ("/v1/state/counter?wait=50&until=-1", {}), ("/v1/changes?since=now&settle=1000", {"Accept": EVENTS}),
                (f"/v1/changes?since={here}&wait=50&settle=1000", {}), ("/v1/changes?since=now", {"Accept": LINES})]
            crowd = [begin(server, kinds[index % 8][0], **kinds[index % 8][1]) for index in range(count)]
            parked(server, client, count)
            begun = time.monotonic()
            for index, one in enumerate(crowd):
                leave(one, ("FIN", "RST")[index // 8 % 2])
                if is_busy and index % (count // 20) == 0:
                    client.commit(add(1))
            for what, found, wanted in (
                    ("waiters", lambda: server.metric(client, "waiters"), 0),
                    ("connections", lambda: server.metric(client, "connections"), 1),
                    ("descriptors", lambda: descriptors(server), before)):
                try:
                    wait_until(lambda: found() <= wanted, what, 5)
                except Failure:
                    raise Failure(f"{found():.0f} {what} are left of {count} 5 s after all have gone, not {wanted}"
                                  f" ({'with' if is_busy else 'without'} commits)") from None
            texts.append(f"{time.monotonic() - begun:.2f} s")
        expect_equal(client.commit(add(1))["changed"], True, "an action afterwards")
    return f"{count:,} that went away were noticed after {' and '.join(texts)} (while there were commits)"


def vanished_between(bench):
    """A stream whose client goes away while the stream lets a burst settle leaves nothing behind."""
    server = bench.server(data="none")
    with server.client() as client:
        before = descriptors(server)
        streams = [
            open_stream(server, target) for target in
            ["/v1/changes?since=now&settle=1000", "/v1/state/counter?settle=1000"] * 10]
        receipt = client.commit(add(1))
        for stream in streams:
            stream.until(lambda event: event.id == receipt["cursor"])
        for stream in streams:
            stream.close()
        time.sleep(1.5)
        found = server.metric(client, "waiters"), server.metric(client, "connections"), descriptors(server)
        expect_equal(found, (0, 1, before), "waiters, connections and descriptors 1.5 s after the clients have gone")


# Wake-ups


class Follower:
    """What a follower in the race knows: where it is to stop, and where it tells how far it has come."""

    def __init__(self, port, progress, index, total, seed):
        self.port, self.progress, self.index, self.total = port, progress, index, total
        self.chance = random.Random(f"{seed}/{index}")

    def reached(self, version):
        self.progress[self.index] = version


def race_values(follower, path, truth):
    """Form A: the value again and again, by its tag. Every commit adds 1, so the value tells its version."""
    tag, version, answers = None, -1, 0
    with Client(follower.port) as client:
        while version < follower.total:
            answer = client.get(f"{path}?wait=8", **({"If_None_Match": tag} if tag else {}))
            expect(answer.status == 200, f"a wait ended with nothing though it stood at {version}:", answer)
            expect(answer.version > version and answer.fields["etag"] != tag, f"an old value after {version}:", answer)
            expect_equal(answer.json, truth(answer.version), f"the value at {answer.cursor}")
            tag, version, answers = answer.fields["etag"], answer.version, answers + 1
            follower.reached(version)
    return answers


def race_pages(follower, state, cursor):
    """Form B: every commit, in pages of any size."""
    record, answers = Record(state, cursor), 0
    with Client(follower.port) as client:
        while record.version < follower.total:
            limit = follower.chance.choice((1, 10, 1000))
            answer = client.get(f"/v1/changes?since={record.epoch}.{record.version}&wait=8&limit={limit}")
            expect(answer.status == 200 and answer.json["changes"], f"a wait ended with nothing at {record.version}:", answer)
            record.take(answer.json)
            answers += 1
            follower.reached(record.version)
    expect_equal(record.state["counter"], counted(record.version), "the state that the pages lead to")
    return answers


def race_stream(follower, state, cursor, form):
    """A stream that is closed and opened again all the time, often in the middle of an event."""
    record, opened = StreamRecord(state, cursor), 0
    while record.version < follower.total:
        since, last = (record.cursor, None) if form == LINES else ("now", record.cursor)
        with StreamClient(follower.port, f"/v1/changes?since={since}", last, form).begin() as stream:
            opened += 1
            leaves = record.version + follower.chance.choice((1, 3, 100, 500))
            while record.version < min(leaves, follower.total):
                try:
                    record.take_event(stream.next(8))
                except NothingCame:
                    raise Failure(f"nothing came for 8 s at {record.version}") from None
                follower.reached(record.version)
    expect_equal(record.state["counter"], counted(record.version), "the state that the stream leads to")
    return opened


def race_value_stream(follower, path, truth):
    """A stream of the value, closed and opened again: it begins where the value is, and ends on the last."""
    version, opened = -1, 0
    while version < follower.total:
        with StreamClient(follower.port, path, form=EVENTS).begin() as stream:
            opened += 1
            record = ValueRecord(truth)
            most = follower.chance.choice((1, 2, 20))
            while record.told < most and version < follower.total:
                event = record.take_event(stream.next(8))
                expect(event.version >= version, f"a value of {event.version} after one of {version}")
                version = event.version
                follower.reached(version)
    return opened


def lost_wake_ups(bench):
    """100,000 commits race with clients that begin to wait, close and come back: nobody sleeps through one, each is told once."""
    server = bench.server(data="none", history_commits_max=200_000, history_bytes_max=256 << 20)
    return race(bench, server, 100_000)


def lost_wake_ups_of_large_values(bench):
    """The same with a value that takes long to put together, which is done elsewhere than where its clients are served."""
    server = bench.server(data="none")
    with server.client() as client:
        client.commit(json.dumps([
            {"type": "tasks/add", "payload": {"id": number, "title": "one of many"}} for number in range(1500)]).encode())
        state = client.get("/v1/state").json

    def truth(version):
        return state | {"counter": counted(version - 1)}

    kinds = [(race_values, "/v1/state", truth)] * 2 + [(race_value_stream, "/v1/state", truth)] * 3
    text = race(bench, server, 600, kinds)
    with server.client() as client:
        parked(server, client, 0)
    return text


def race(bench, server, total, kinds=None):
    """Commits in rounds; after each, all have to have come as far before the next begins: nobody else will wake them."""
    chance = random.Random(bench.seed)
    with server.client() as client:
        start = client.get("/v1/state")
        value = "/v1/state/counter"
        kinds = kinds or [
            (race_values, value, counted), (race_values, value, counted), (race_pages, start.json, start.cursor),
            (race_stream, start.json, start.cursor, EVENTS), (race_stream, start.json, start.cursor, LINES),
            (race_value_stream, value, counted)]
        progress = processes.Array("q", len(kinds), lock=False)
        workers = [
            bench.worker(function, Follower(server.port, progress, index, total, bench.seed), *arguments)
            for index, (function, *arguments) in enumerate(kinds)]
        version, rounds, slowest = start.version, 0, 0.0
        while version < total:
            if rounds % 40 == 39:
                count = min(2000, total - version)
                bulk(client, [add(1)] * count)
                version += count
            else:
                for _ in range(min(chance.choice((1, 2, 5)), total - version)):
                    version = client.commit(add(1))["version"]
            slowest = max(slowest, all_reach(workers, progress, version))
            rounds += 1
        counts = [
            f"{kind[0].__name__.removeprefix('race_')} {worker.result(20)}" for kind, worker in zip(kinds, workers)]
    return f"{rounds} rounds, the slowest {1000 * slowest:.0f} ms; answers or streams: {', '.join(counts)}"


def all_reach(workers, progress, version):
    """Waits until every follower has come to a version; returns how long that took."""
    begun = time.monotonic()
    while min(progress) < version:
        late = time.monotonic() - begun
        for index, worker in enumerate(workers):
            if progress[index] < version and (late > 5 or worker.receiver.poll()):
                found = worker.result(0) if worker.receiver.poll() else "it sleeps"
                raise Failure(f"{worker.name} stands at {progress[index]} of {version} after {late:.1f} s: {found}")
        time.sleep(0.0005)
    return time.monotonic() - begun


# For what is waited


def waits_until(bench):
    """until answers as soon as the value is the one that was named, however it is written, and 304 when it never was."""
    server = bench.server(data="none")
    counter, value = "/v1/state/counter", "/v1/state/counter/value"
    with server.client() as client:
        for target in (f"{value}?until=0&wait=5", f"{counter}?until=%7B%22value%22:0%7D&wait=5"):
            answer, seconds = finish(begin(server, target))
            expect_equal((answer.status, answer.version), (200, 0), f"the answer to {target}")
            expect("etag" in answer.fields and seconds < 1, f"no ETag, or late ({seconds:.2f} s):", answer)
        # The value of now does not count where it is the one that is known: the named one does.
        tag = client.get(value).fields["etag"]
        answer, seconds = finish(begin(server, f"{value}?until=0&wait=5", If_None_Match=tag))
        expect(seconds < 1 and answer.status in (200, 304), f"{answer} after {seconds:.2f} s, though the value is met")
        waiters = [begin(server, target) for target in (
            f"{value}?until=3&wait=20", f"{value}?until=%203%20&wait=20", f"{counter}?wait=20&until=%7B%20%22value%22%20:3%7D",
            f"{counter}?wait=20&until=%7B%22v%5Cu0061lue%22:3%7D", f"{value}?until=3.0&wait=20", f"{value}?until=30e-1&wait=20",
            "/v1/views/count?wait=20&until=%7B%22count%22:3%7D")]
        never = begin(server, f"{value}?until=%223%22&wait=1.5")
        parked(server, client, 8)
        for _ in range(2):
            client.commit(add(1))
        expect_equal(server.metric(client, "waiters"), 8, "waiters after values that were not named")
        client.commit(add(1))
        for waiter in waiters:
            expect_equal((waiter.receive().version, client.get(value).json), (3, 3), "the version of the answer, the value")
        client.commit(add(1))
        answer, seconds = finish(never)
        expect_equal((answer.status, answer.version), (304, 4), "the answer where the value was never met")
        expect(1.35 < seconds < 2, f"304 after {seconds:.2f} s of 1.5")
        judge_missing(server, client)
        judge_passing(server, client, value)
    return judge(server, [
        get(f"until={text}", f"{value}?wait=5&until={text}", 400, "bad-parameter")
        for text in ("three", "", "%5B1", "%7B%22a%22:1,%22a%22:2%7D", "1%202", "'3'")
    ] + [
        get("until without wait", f"{value}?until=3", 400, "bad-parameter"),
        get("until twice", f"{value}?until=3&until=4&wait=5", 400),
        get("until of changes", "/v1/changes?since=now&until=3&wait=5", 400),
        get("until and version", f"{value}?until=3&version=1", 400),
        get("settle without wait", f"{value}?settle=5", 400, "bad-parameter"),
        get("settle below 0", f"{value}?settle=-1&wait=5", 400, "bad-parameter"),
        get("settle in words", f"{value}?settle=soon&wait=5", 400, "bad-parameter"),
        get("settle too long", f"{value}?settle=10001&wait=5", 400, "bad-parameter"),
        get("settle of changes, too long", "/v1/changes?since=now&settle=10001&wait=5", 400, "bad-parameter"),
    ])


def judge_missing(server, client):
    """What is not there yet can be waited for, too."""
    milk = json.dumps({"done": False, "title": "milk"})
    target = "/v1/state/tasks/entities/7"
    there = begin(server, f"{target}?wait=10&until={milk}".replace(" ", "%20").replace('"', "%22"))
    gone = begin(server, f"{target}?wait=10&until=null")
    short = begin(server, "/v1/state/tasks/entities/8?wait=0.5&until=1")
    answer, seconds = finish(short)
    expect(answer.status in (304, 404) and 0.4 < seconds < 1, f"{answer} after {seconds:.2f} s, where there was nothing")
    client.commit(action("tasks/add", {"id": 7, "title": "bread"}))
    parked(server, client, 2)
    client.commit(action("tasks/rename", {"id": 7, "title": "milk"}))
    expect_equal(finish(there)[0].json, client.get(target).json, "what was not there at first")
    client.commit(action("tasks/remove", {"id": 7}))
    time.sleep(0.05)
    expect_equal(server.metric(client, "waiters"), 1, "waiters for null where there is nothing")
    gone.close()
    parked(server, client, 0)


def judge_passing(server, client, value):
    """A value that is there for one commit only, which was acknowledged before the next, is seen."""
    now = client.get(value).json
    for _ in range(50):
        waiter = begin(server, f"{value}?wait=10&until={now + 1}")
        parked(server, client, 1)
        client.commit(add(1))
        client.commit(add(-1))
        answer, seconds = finish(waiter)
        expect_equal((answer.status, answer.json), (200, now + 1), "a value that was there for one commit")


def settles(bench):
    """settle makes one answer of a burst of 50 posts: the last value, or all the commits."""
    server = bench.server(data="none")
    value = "/v1/state/counter/value"
    with server.client() as client:
        tag, here = client.get(value).fields["etag"], client.get("/v1").json["cursor"]
        state = begin(server, f"{value}?wait=10&settle=400", If_None_Match=tag)
        changes = begin(server, f"/v1/changes?since={here}&wait=10&settle=400")
        few = begin(server, f"/v1/changes?since={here}&wait=10&settle=400&limit=10")
        stream = open_stream(server, f"{value}?settle=400")
        expect_equal(stream.next().json, 0, "the snapshot")
        parked(server, client, 4)
        posted = time.monotonic()
        for _ in range(50):
            client.commit(add(1))
            time.sleep(0.002)
        burst = time.monotonic() - posted
        expect(burst < 0.35, f"NOT CHECKED: 50 posts took {burst:.2f} s")
        answers = [one.receive() for one in (state, changes, few)]
        seconds = time.monotonic() - posted
        expect_equal((answers[0].status, answers[0].json, answers[0].version), (200, 50, 50), "the value after a burst")
        numbers = [[change["version"] for change in answer.json["changes"]] for answer in answers[1:]]
        expect_equal(numbers, [list(range(1, 51)), list(range(1, 11))], "the commits of a burst")
        expect_equal([answer.json["more"] for answer in answers[1:]], [False, True], "more")
        expect(0.38 < seconds < 0.8, f"the answers came {seconds:.2f} s after the first post, settle is 0.4 s")
        told = stream.until(lambda event: event.json == 50, 2)
        expect(len(told) <= 3, f"a stream that settles was told {len(told)} values of a burst")
        stream.close()
        # Nothing is put off that was there already, and nothing beyond the wait.
        for target in (f"/v1/changes?since={here}&wait=10&settle=5000", f"{value}?wait=10&settle=5000"):
            answer, seconds = finish(begin(server, target, If_None_Match=tag))
            expect(answer.status == 200 and seconds < 1, f"{target} was put off by {seconds:.2f} s:", answer)
        tag, here = answer.fields["etag"], client.get("/v1").json["cursor"]
        short = [begin(server, f"{value}?wait=1&settle=8000", If_None_Match=tag),
                 begin(server, f"/v1/changes?since={here}&wait=1&settle=8000")]
        parked(server, client, 2)
        client.commit(add(1))
        for one, wanted in zip(short, (51, [51])):
            answer, seconds = finish(one)
            found = answer.json if answer.status == 200 and isinstance(wanted, int) else [
                change["version"] for change in answer.json["changes"]]
            expect_equal((found, seconds < 2), (wanted, True), f"what came within the wait ({seconds:.2f} s)")
        # There and back: not news, whatever is answered.
        tag = client.get(value).fields["etag"]
        waiter = begin(server, f"{value}?wait=2&settle=300", If_None_Match=tag)
        parked(server, client, 1)
        client.commit(add(1))
        client.commit(add(-1))
        answer, seconds = finish(waiter)
        expect_equal((answer.status, answer.fields["etag"]), (304, tag), "the answer where the value has come back")
        # Whoever goes away in between is forgotten, and a stop does not wait for a burst.
        here = client.get("/v1").json["cursor"]
        waiters = [begin(server, f"/v1/changes?since={here}&wait=20&settle=9000") for _ in range(10)]
        parked(server, client, 10)
        before = server.metric(client, "connections")
        client.commit(add(1))
        for waiter in waiters[:5]:
            waiter.close()
        wait_until(lambda: server.metric(client, "connections") <= before - 5, "five connections to be given up", 3)
        stopped = time.monotonic()
        server.terminate()
        for waiter in waiters[5:]:
            answer = waiter.receive()
            expect_equal((answer.status, answer.closes, len(answer.json["changes"])), (200, True, 1), "an answer at a stop")
        expect_equal(server.wait(10), 0, "the exit code")
        expect(time.monotonic() - stopped < 4, "the server has waited for a burst to settle")


# Connections


def next_requests(bench):
    """A connection goes on after a wait: post, get, wait, post, 200 times in turn on one connection."""
    return alternate(bench.server(data="none"), 200)


def alternate(server, turns):
    value = 0
    with server.client() as client, server.client() as other:
        port = client.socket.getsockname()
        for turn in range(turns):
            value += 1
            expect_equal(client.commit(add(1))["version"], value, "the version of a receipt")
            got = client.get("/v1/state/counter")
            expect_equal((got.json, got.version), ({"value": value}, value), "what was got")
            if turn % 3 == 0:
                target, fields = f"/v1/changes?since={got.cursor}&wait=10", {}
            else:
                target, fields = "/v1/state/counter?wait=10", {"If-None-Match": got.fields["etag"]}
            if turn % 10 == 9:  # its time is up
                answer = client.request("GET", target.replace("wait=10", "wait=0.05"), fields=fields)
                expect(answer.status == 304 or answer.json["changes"] == [], "a wait where nothing came:", answer)
                expect(not answer.closes, "the connection was closed after a wait:", answer)
                continue
            client.send(encode_request("GET", target, fields=fields))
            if turn % 2:
                wait_until(lambda: server.metric(other, "waiters") == 1, "the wait")
            value += 1
            other.commit(add(1))
            answer = client.receive()
            told = answer.json["changes"][-1]["version"] if turn % 3 == 0 else answer.json["value"]
            expect_equal((answer.status, told, answer.closes), (200, value, False), "what was waited for, and closing")
        expect_equal(client.socket.getsockname(), port, "the client's own port")
        expect_equal(server.metric(other, "connections"), 2, "connections")
    return f"{value} commits"


def pipelined(bench):
    """A request that is sent behind one that waits is never answered wrongly, nor done without an answer."""
    server = bench.server(data="none")
    with server.client() as witness:
        own = encode_request("GET", "/v1/state/counter/value")
        behinds = {
            "a get": own, "two gets": own * 2, "a post": encode_request("POST", "/v1/actions", add(1000)),
            "half a request": own[:10], "another wait": encode_request("GET", "/v1/changes?since=now&wait=1"),
            "much": encode_request("POST", "/v1/actions", b" " * 40_000)}
        texts = []
        for name, behind in behinds.items():
            for pause in (None, 0.0, 0.05):
                for ahead in (b"", own):
                    texts.append(judge_pipelined(server, witness, f"{name} {pause} {len(ahead)}", ahead, behind, pause))
        expect_equal(witness.get("/v1/state/counter/value").json % 1000, len(texts), "the counter")
    return f"{sum(texts)} of {len(texts)} answers closed the connection"


def judge_pipelined(server, witness, name, ahead, behind, pause):
    """Sends a wait and something behind it; whether the answer closed the connection."""
    now = witness.get("/v1/state/counter/value")
    wait = encode_request("GET", "/v1/state/counter/value?wait=10", fields={"If-None-Match": now.fields["etag"]})
    with server.client(timeout=5) as client:
        if pause is None:
            client.send(ahead + wait + behind)
        else:
            client.send(ahead + wait)
            time.sleep(pause)
            client.send(behind)
        if ahead:
            expect_equal(client.receive().json, now.json, f"the answer to the request before the wait ({name})")
        parked(server, witness, 1)
        cpu = server.cpu_seconds()
        time.sleep(0.02)
        expect(server.cpu_seconds() - cpu < 0.02, f"the server is busy with what cannot be read yet ({name})")
        version = witness.commit(add(1))["version"]
        answer = client.receive()
        expect_equal((answer.status, answer.version, answer.json), (200, version, now.json + 1), f"the answer ({name})")
        if answer.closes:
            expect(ends(client), f"something came behind an answer that closes the connection ({name})")
            expect_equal(witness.get("/v1").json["version"], version, f"the version: nothing was done unanswered ({name})")
            return True
        if behind.startswith(b"POST") and b"1000" in behind:
            expect_equal(client.receive().json["version"], version + 1, f"the receipt behind the wait ({name})")
        elif b"since=now" in behind:
            expect_equal(client.receive().json["changes"], [], f"the page behind the wait ({name})")
        elif behind.startswith(b"POST"):
            expect_equal(client.receive().status, 400, f"the status of the post behind the wait ({name})")
        else:
            if len(behind) < 20:
                client.send(encode_request("GET", "/v1/state/counter/value")[len(behind):])
            for _ in range(max(1, behind.count(b"\r\n\r\n"))):
                expect_equal(client.receive().json, answer.json, f"the answer to the request behind the wait ({name})")
        return False


def odd_clients(bench):
    """Waits of HTTP/1.0, HEAD, half-closed, chunked and fragmented clients are answered as they should be."""
    server = bench.server(data="none")
    path = "/v1/state/counter/value"
    with server.client() as client:
        tag = client.get(path).fields["etag"]

        def wake(waiter, method="GET"):
            parked(server, client, 1)
            version = client.commit(add(1))["version"]
            answer = waiter.receive(method)
            expect_equal((answer.status, answer.version), (200, version), "status and version of an answer")
            if method == "GET":
                expect_equal(answer.json, version, "the value of an answer")
            return answer, answer.fields["etag"]

        for fields in ("", "Connection: keep-alive\r\n", "Host: here\r\n"):
            with server.client(timeout=5) as old:
                old.send(f"GET {path}?wait=10 HTTP/1.0\r\n{fields}If-None-Match: {tag}\r\n\r\n".encode())
                _, tag = wake(old)
                expect(ends(old), "the connection of an HTTP/1.0 client was not closed")
        with server.client(timeout=5) as closing:
            closing.send(encode_request(
                "GET", f"{path}?wait=10", fields={"If-None-Match": tag, "Connection": "Close"}))
            answer, tag = wake(closing)
            expect(answer.closes and ends(closing), "Connection: close was not honoured:", answer)
        with server.client(timeout=5) as head:
            for _ in range(3):
                head.send(encode_request("HEAD", f"{path}?wait=10", fields={"If-None-Match": tag}))
                answer, tag = wake(head, "HEAD")
                expect_equal(int(answer.fields["content-length"]), len(client.get(path).body), "Content-Length of HEAD")
                expect_equal(head.get(path).status, 200, "the request after HEAD")
        with server.client(timeout=5) as chunked:
            for fragments in (1, 5):
                body = add(1)
                chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
                fields = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                request = b"POST /v1/actions HTTP/1.1\r\nHost: here\r\n" + fields + chunk
                size = len(request) // fragments + 1
                for start in range(0, len(request), size):
                    chunked.send(request[start : start + size])
                    time.sleep(0.01 if fragments > 1 else 0)
                expect_equal(chunked.receive().status, 200, "the status of a chunked post")
                chunked.send(encode_request("GET", f"{path}?wait=10", fields={"If-None-Match": tag}))
                tag = chunked.receive().fields["etag"]  # the post has changed it
                chunked.send(encode_request("GET", f"{path}?wait=10", fields={"If-None-Match": tag}))
                answer, tag = wake(chunked)
                if answer.closes:
                    expect(ends(chunked), "the connection was not closed as announced")
                    break
        with server.client(timeout=5) as slow:
            for byte in encode_request("GET", f"{path}?wait=10", fields={"If-None-Match": tag}):
                slow.send(bytes([byte]))
                time.sleep(0.001)
            answer, tag = wake(slow)
            expect(not answer.closes, "the connection of a client that sends byte by byte was closed")
            expect_equal(slow.get(path).status, 200, "its next request")
        for target, fields in ((f"{path}?wait=10", {"If_None_Match": tag}), ("/v1/changes?since=now", {"Accept": EVENTS})):
            half = begin(server, target, **fields)
            parked(server, client, 1)
            half.socket.shutdown(socket.SHUT_WR)
            wait_until(lambda: server.metric(client, "waiters") == 0, "a half-closed client to be noticed", 5)
            half.socket.settimeout(5)
            text = b""
            while data := half.socket.recv(1 << 16):
                text += data
            # What it is owed, or nothing; no half of an answer.
            parsed = parse_answer(text) if fields.get("Accept") is None and text else None
            expect(parsed is None or parsed[0].status in (200, 304), "a half-closed client was answered", text)
            expect(not text or text.startswith(b"HTTP/1.1 ") and b"\r\n\r\n" in text, "a half-closed client was told", text)
            half.close()
        wait_until(lambda: server.metric(client, "connections") == 1, "all connections to be given up", 5)


def read_slowly(bench):
    """A large answer to a wait reaches a client that reads it bit by bit; one that reads nothing is given up in time."""
    server = bench.server(data="none")
    with await_large_answer(server) as patient:
        seconds = read_bit_by_bit(patient)
        expect_equal(patient.get("/v1/state/counter").status, 200, "the next request on the connection")
    server = bench.server(data="none", idle_timeout_seconds=1)
    with await_large_answer(server) as slow, await_large_answer(server) as dead:
        read_bit_by_bit(slow)
        slow.close()

        def is_alone():
            with server.client() as client:
                return server.metric(client, "connections") == 1

        wait_until(is_alone, "a client that reads nothing to be given up", 4)
        dead.socket.settimeout(5)
        text = b""
        try:
            while data := dead.socket.recv(1 << 18):
                text += data
        except ConnectionResetError:
            pass
        expect(parse_answer(text) is None, "the whole answer was kept for a client that did not read")
    return f"5.6 MB within {seconds:.1f} s"


def await_large_answer(server):
    """A client that is being sent 5.6 MB, which it has waited for, and that has little room for it."""
    with server.client() as client:
        first = len(client.get("/v1/state/tasks/ids").json)
        waiter = StalledClient(server.port)
        tag = client.get("/v1/state/tasks").fields["etag"]
        waiter.send(encode_request("GET", "/v1/state/tasks?wait=10", fields={"If-None-Match": tag}))
        parked(server, client, 1)
        client.commit(json.dumps([
            {"type": "tasks/add", "payload": {"id": first + number, "title": "x" * 8000}} for number in range(700)]).encode())
        waiter.wanted = client.get("/v1/state/tasks")
        return waiter


def read_bit_by_bit(client):
    """Reads what was waited for, with breaks; returns how long it took."""
    begun, reads = time.monotonic(), 0
    while not (parsed := parse_answer(client.buffer)):
        client.buffer += client.socket.recv(16 << 10)
        reads += 1
        time.sleep(0 if reads % 10 else 0.05)
    answer, size = parsed
    del client.buffer[:size]
    expect_equal((answer.status, answer.body == client.wanted.body), (200, True), "status, and whether it came whole")
    seconds = time.monotonic() - begun
    expect(seconds > 1.2, f"NOT CHECKED: the answer was read within {seconds:.2f} s")
    return seconds


class StalledClient(Client):
    """A client that has little room for what it is sent."""

    def __init__(self, port):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", port))
        self.buffer = bytearray()


class Conversation:
    """One connection after another on which anything may follow anything; what is answered is known beforehand."""

    def __init__(self, server, chance):
        self.server, self.chance = server, chance
        self.client, self.other = server.client(timeout=10), server.client(timeout=10)
        self.value = 0
        self.closed = 0

    def step(self):
        """Does something at random; returns what it was."""
        kind = self.chance.choice(
            ["read", "post", "chunks", "woken", "woken", "told", "timeout", "until", "ahead", "never", "cascade", "head", "missing",
             "pair", "behind"])
        getattr(self, kind)()
        return kind

    def send(self, data):
        """Sends a request whole or in pieces."""
        if self.chance.random() < 0.3:
            middle = self.chance.randrange(1, len(data))
            self.client.send(data[:middle])
            time.sleep(self.chance.choice((0, 0.001)))
            data = data[middle:]
        self.client.send(data)

    def receive(self, method="GET", may_close=False):
        answer = self.client.receive(method)
        if answer.closes:
            expect(may_close or self.had_chunks, "an answer closes the connection:", answer)
            expect(ends(self.client), "something came behind an answer that closes the connection")
            self.client.close()
            self.client = self.server.client(timeout=10)
            self.closed += 1
            self.had_chunks = False
        return answer

    had_chunks = False

    def judge(self, answer, value=None):
        value = self.value if value is None else value
        expect_equal((answer.status, answer.json, answer.version), (200, value, value), "an answer")

    def get(self, more="", known=None, method="GET"):
        return encode_request(method, f"/v1/state/counter/value{more}", fields={"If-None-Match": known})

    def known(self):
        return self.other.get("/v1/state/counter/value").fields["etag"]

    def commit(self):
        if self.chance.random() < 0.7:
            wait_until(lambda: self.server.metric(self.other, "waiters") >= 1, "the wait")
        self.other.commit(add(1))
        self.value += 1

    def read(self):
        self.send(self.get())
        self.judge(self.receive())

    def post(self):
        self.send(encode_request("POST", "/v1/actions", add(1)))
        self.value += 1
        expect_equal(self.receive().json["version"], self.value, "the version of a receipt")

    def chunks(self):
        body = add(1)
        self.send(b"POST /v1/actions HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n5\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (body[:5], len(body) - 5, body[5:]))
        self.value += 1
        self.had_chunks = True
        expect_equal(self.receive().json["version"], self.value, "the version of a receipt")

    def woken(self):
        self.send(self.get("?wait=10", self.known()))
        self.commit()
        self.judge(self.receive())

    def told(self):
        head = self.other.get("/v1").json["cursor"]
        self.send(encode_request("GET", f"/v1/changes?since={head}&wait=10"))
        self.commit()
        expect_equal([change["version"] for change in self.receive().json["changes"]], [self.value], "the commits told")

    def timeout(self):
        self.send(self.get("?wait=0.02", self.known()))
        answer = self.receive()
        expect_equal((answer.status, answer.version), (304, self.value), "the answer when time is up")

    def until(self):
        self.send(self.get(f"?wait=10&until={self.value + 1}"))
        self.commit()
        self.judge(self.receive())

    def ahead(self):
        epoch = self.other.get("/v1").json["epoch"]
        self.send(self.get(f"?wait=10&at-least={epoch}.{self.value + 1}"))
        self.commit()
        self.judge(self.receive())

    def never(self):
        epoch = self.other.get("/v1").json["epoch"]
        self.send(self.get(f"?wait=0.02&at-least={epoch}.{self.value + 1}"))
        expect_equal(self.receive().status, 409, "the status when the version has not come")

    def cascade(self):
        self.send(encode_request("POST", "/v1/actions", add(1), {"Prefer": "wait=5"}))
        self.value += 1
        expect_equal(self.receive().json["version"], self.value, "the version of a receipt that waits for its cascade")

    def head(self):
        self.send(self.get("?wait=10", self.known(), "HEAD"))
        self.commit()
        expect_equal(self.receive("HEAD").version, self.value, "the version of HEAD")

    def missing(self):
        self.send(encode_request("GET", "/v1/state/nothing"))
        expect_equal(self.receive().status, 404, "the status of what is not there")

    def pair(self):
        self.client.send(self.get() + self.get())
        self.judge(self.receive())
        self.judge(self.receive())

    def behind(self):
        self.client.send(self.get("?wait=10", self.known()) + self.get())
        self.commit()
        before = self.closed
        self.judge(self.receive(may_close=True))
        if self.closed == before:
            self.judge(self.receive())


def interleavings(bench):
    """200 random conversations of fifteen kinds of requests, waits among them, are answered as they should be."""
    server = bench.server(data="none")
    closed = 0
    value = 0
    for number in range(200):
        seed = f"{bench.seed}/{number}"
        conversation = Conversation(server, random.Random(seed))
        conversation.value = value
        steps = []
        try:
            for _ in range(10):
                steps.append(conversation.step())
        except (Failure, ConnectionLost, KeyError, TypeError, ValueError) as fault:
            raise Failure(f"conversation {number} of seed {bench.seed}, after {steps}: {type(fault).__name__}: {fault}") from None
        value = conversation.value
        closed += conversation.closed
        conversation.client.close()
        conversation.other.close()
    return f"{value} commits; {closed} connections were closed behind something pipelined or chunked"


# Two loops


def two_loops(bench):
    """With two loops, too: streams are told everything, vanished clients are noticed, waits are woken, and SIGTERM ends all."""
    settings = {"loops": 2}
    texts = [tell_crowd(bench.server(data="none", **settings), 500)]
    with many_descriptors(2000):
        texts.append(vanish(bench.server(data="none", **settings), 400))
    alternate(bench.server(data="none", **settings), 60)
    race(bench, bench.server(data="none", **settings), 5000)
    server = bench.server(**settings)
    follow_through_kills(bench, server, kills=3)
    with server.client() as client:
        tag = client.get("/v1/state/counter").fields["etag"]
        waiters = [begin(server, "/v1/state/counter?wait=50", If_None_Match=tag) for _ in range(100)]
        streams = [open_stream(server, "/v1/changes?since=now") for _ in range(100)]
        parked(server, client, 200)
        client.commit(add(1))
        version = client.get("/v1").json["version"]
        for waiter in waiters:
            expect_equal(waiter.receive().version, version, "the version that a waiter was woken with")
        for stream in streams:
            expect_equal(stream.next().version, version, "the version that a stream was told")
        for waiter in waiters:
            waiter.send(encode_request("GET", "/v1/changes?since=now&wait=50"))
            expect_equal(waiter.receive().status, 200, "the next request of a waiter")
        server.stop()
        expect(all(ends(stream) for stream in streams), "a stream was not ended by SIGTERM")
    return texts[0]
