"""Checks of requests that wait for a value, or for a burst to settle."""

import json
import time

from harness.actions import action, add
from harness.expectations import expect, expect_equal, wait_until
from harness.messages import encode_request
from harness.refusals import Case, get, judge, judge_problem
from harness.streams import open_stream
from harness.waits import begin, finish, parked


def waits_until(workspace):
    """until answers as soon as the value is the one that was named, however it is written, and 304 when it never was."""
    server = workspace.server(data="none")
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


def deadlines(workspace):
    """A wait whose time is up while it is being answered gets one of the two answers, never a refusal."""
    server, figures = workspace.server(), {200: 0, 304: 0}
    with server.client() as control:
        clients = [server.client(timeout=20) for _ in range(2000)]
        try:
            for _ in range(6):
                tag = control.get("/v1/state/counter").fields["etag"]
                request = encode_request("GET", "/v1/state/counter?wait=1", fields={"If-None-Match": tag})
                begun = time.monotonic()
                for client in clients:
                    client.send(request)
                # The server shortens each wait by up to a sixteenth: the times of many are up in this moment.
                time.sleep(max(0, begun + 0.98 - time.monotonic()))
                control.commit(add(1))
                for client in clients:
                    answer = client.receive()
                    expect(answer.status in figures, "an answer to a wait that has ended:", answer)
                    figures[answer.status] += 1
        finally:
            for client in clients:
                client.close()
    expect(min(figures.values()) > 0, f"NOT CHECKED: the commits came beside the deadlines: {figures}")
    return f"{figures[200]} told of the commit, {figures[304]} that there is nothing new"


def deadlines_of_large_values(workspace):
    """A wait for a value that takes long to put together ends in time, too, however commits and its deadline fall."""
    server, rounds, slowest = workspace.server(data="none"), 12, 0
    with server.client() as control:
        for start in range(0, 60_000, 5000):
            control.commit(json.dumps([
                {"type": "tasks/add", "payload": {"id": number, "title": "t"}} for number in range(start, start + 5000)]).encode())
        clients = [server.client(timeout=8) for _ in range(12)]
        try:
            for turn in range(rounds):
                # A value that never comes: whoever is not answered by the deadline is not answered at all.
                for index, client in enumerate(clients):
                    client.send(encode_request("GET", f"/v1/state/tasks/entities?until=1&wait={0.05 + 0.01 * index}"))
                begun = time.monotonic()
                while time.monotonic() < begun + 0.25:
                    control.commit(action("tasks/rename", {"id": turn, "title": str(time.monotonic())}))
                for client in clients:
                    answer = client.receive()
                    expect(answer.status in (200, 304), "an answer to a wait that has ended:", answer)
                slowest = max(slowest, time.monotonic() - begun)
        finally:
            for client in clients:
                client.close()
    return f"{rounds * len(clients)} waits of at most 0.16 s; the last of a round was answered after {slowest:.2f} s"


def settles(workspace):
    """settle makes one answer of a burst of 50 posts: the last value, or all the commits."""
    server = workspace.server(data="none")
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


def settling_counts(workspace):
    """A request whose burst is settling waits still: it counts against the cap, and among the waiters."""
    server = workspace.server(data="none", waiters_max=3)
    with server.client() as client:
        here = client.get("/v1").json["cursor"]
        target = f"/v1/changes?since={here}&wait=20&settle=1000"
        waiters = [begin(server, target) for _ in range(3)]
        parked(server, client, 3)
        judge_problem(finish(begin(server, target))[0], Case("", b"", 503))
        here = client.commit(add(1))["cursor"]
        expect_equal(server.metric(client, "waiters"), 3, "waiters while a burst settles")
        judge_problem(finish(begin(server, f"/v1/changes?since={here}&wait=1"))[0], Case("", b"", 503))
        for waiter in waiters:
            expect_equal(len(waiter.receive().json["changes"]), 1, "changes in an answer")
        expect_equal(finish(begin(server, f"/v1/changes?since={here}&wait=0.1"))[0].status, 200, "a wait afterwards")
