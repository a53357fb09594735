"""Checks of streams: what is told, to thousands at once and to each, in silence too, and what is refused."""

import copy
import os
import select
import statistics
import time

from harness.actions import action, add, batch, bulk
from harness.crowd import Crowd, many_descriptors
from harness.expectations import Failure, expect, expect_equal, passes
from harness.figures import spread
from harness.messages import encode_request
from harness.records import StreamRecord, ValueRecord, counter_at
from harness.refusals import get, judge
from harness.streams import EVENTS, LINES, Event, open_stream, read_events


def strict_stream_judges(workspace):
    """These checks notice an event that is dropped, repeated, swapped, altered or misnamed, and a value that goes back."""
    server = workspace.server(data="none")
    with server.client() as client:
        start = client.get("/v1/state")
        commits = open_stream(server, f"/v1/changes?since={start.cursor}")
        values = open_stream(server, "/v1/state/counter")
        expect_equal(values.next().name, "snapshot", "the first event")
        told = [Event("snapshot", start.cursor, '{"value":0}')]
        for number in range(1, 21):
            client.commit(add(1))
            told.append(values.next())
        events = commits.until(lambda event: event.version == 20)
        final = client.get("/v1/state").json
        lost = open_stream(server, "/v1/changes?since=now", last_id="aaaaaaaaaaaaaaaa.1")
        reset = [lost.next(), lost.next()]

    def commits_pass(alter, events=events):
        altered = list(events)
        alter(altered)
        record = StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(altered)
        return record.state == final and not record.is_reset

    def values_pass(alter):
        altered = list(told)
        alter(altered)
        return ValueRecord(counter_at).take_all(altered).value == counter_at(20)

    def swap(events):
        events[4], events[5] = events[5], events[4]

    def replace(index, **fields):
        return lambda events: events.__setitem__(index, events[index]._replace(**fields))

    doctored = [
        ("dropped", lambda events: events.pop(7)), ("the last dropped", lambda events: events.pop()),
        ("repeated", lambda events: events.insert(7, events[7])), ("swapped", swap),
        ("of another id", replace(7, id=events[8].id)), ("without an id", replace(7, id=None)),
        ("of another name", replace(7, name="changes")), ("progress out of place", replace(7, name="progress")),
        ("falsified", replace(19, data=events[19].data.replace('"value":20', '"value":21')))]
    expect(commits_pass(lambda _: None) and values_pass(lambda _: None), "what was told is not taken as it came")
    for name, alter in doctored:
        expect(not fails_to_notice(commits_pass, alter), f"a commit that was {name} went unnoticed")
    for name, alter in (
            ("a value told twice", lambda events: events.insert(8, events[7])), ("values swapped", swap),
            ("the last value dropped", lambda events: events.pop()),
            ("a value of another time", replace(7, data='{"value":6}')), ("no snapshot", lambda events: events.pop(0)),
            ("a snapshot in the middle", replace(7, name="snapshot"))):
        expect(not fails_to_notice(values_pass, alter), f"{name}: it went unnoticed")
    for name, alter in (
            ("a reset without its snapshot", lambda events: events.append(reset[0])),
            ("a snapshot without a reset", lambda events: events.append(reset[1])),
            ("an id on a reset", lambda events: events.extend([reset[0]._replace(id=start.cursor), reset[1]]))):
        expect(not fails_to_notice(commits_pass, alter), f"{name}: it went unnoticed")
    expect(commits_pass(lambda events: events.extend(reset)), "a good reset is not taken")
    expect(not passes(lambda: read_events(b"event: change\nid: a.1\ndata: {}\n\nevent: chan")), "half an event passed")


def fails_to_notice(judge, alter):
    try:
        return judge(alter)
    except (Failure, AttributeError, KeyError, ValueError):
        return False


def ten_thousand_followers(workspace):
    """10,000 streams of commits, begun while there are commits: each is told every commit once, in order, with its id."""
    with many_descriptors(10_000):
        return tell_crowd(workspace.server(data="none", connections_max=12_000), 10_000)


def tell_crowd(server, count):
    """Lets so many follow, commits one by one and in bursts, and judges what each was told."""
    crowd = Crowd(server, "/v1/changes?since=now")
    try:
        with server.client() as client:
            start = client.get("/v1/state")
            states = {start.cursor: start.json}
            before = server.memory_bytes()
            for _ in range(10):
                crowd.join(count // 10)
                client.commit(add(1))
                state = client.get("/v1/state")
                states[state.cursor] = state.json
            epoch = start.cursor.rpartition(".")[0]

            def reach(version):
                return crowd.read_until(f"id: {epoch}.{version}\n".encode(), 20)

            # Those who came last are only told of what comes once they are in: another loop may be behind.
            crowd.read_until(b"retry: ", 20)
            client.commit(add(1))
            reach(11)
            each = (server.memory_bytes() - before) / count
            expect(count < 10_000 or each < 8192, f"a stream takes {each:.0f} bytes of the server's memory")
            times = []
            for version in range(12, 17):
                begun = time.monotonic()
                client.commit(add(1))
                reach(version)
                times.append(time.monotonic() - begun)
            for _ in range(3):
                client.send(encode_request("POST", "/v1/actions", add(1)) * 10)
                expect_equal({client.receive().status for _ in range(10)}, {200}, "the answers to a burst")
            bulk(client, [add(1)] * 10)
            reach(56)
            final = client.get("/v1/state")
        stories = crowd.stories()
        for begin, text in stories:
            record = StreamRecord(copy.deepcopy(states[begin]), begin).take_all(read_events(text))
            expect_equal((record.version, record.state), (56, final.json), f"where the story from {begin} leads")
        expect_equal(sum(stories.values()), count, "streams that were judged")
        expect(len({begin for begin, _ in stories}) >= 10, "all streams have begun at the same commit")
    finally:
        crowd.close()
    return (f"{count:,} are told of one commit within {1000 * statistics.median(times):.0f} ms (median),"
            f" {1000 * max(times):.0f} ms at most; {each:.0f} bytes of memory a stream")


def thousand_watchers(workspace):
    """1,000 streams of a value: each begins with a snapshot, never goes back, and ends on the last value."""
    count = 1000
    with many_descriptors(count):
        server = workspace.server(data="none")
        crowd = Crowd(server, "/v1/state/counter")
        try:
            with server.client() as client:
                total = 0
                for _ in range(10):
                    crowd.join(count // 10)
                    client.commit(add(1))
                    client.commit(action("tasks/add", {"id": total, "title": "elsewhere"}))
                    total += 2
                for number in range(10):
                    bulk(client, [add(1)] * 100)
                    for _ in range(20):
                        client.commit(add(1))
                    total += 120
                last = client.commit(add(1))["cursor"]
                crowd.read_until(f"id: {last}\n".encode(), 20)
                stories = crowd.stories()
        finally:
            crowd.close()

    def truth(version):
        return {"value": (version + 1) // 2 if version <= 20 else version - 10}

    told = 0
    for (_, text), number in stories.items():
        record = ValueRecord(truth).take_all(read_events(text))
        expect_equal((record.version, record.value), (total + 1, {"value": total - 9}), "the end of a stream")
        told += record.told * number
    expect_equal(sum(stories.values()), count, "streams that were judged")
    return f"1,211 values, {told / count:.0f} told to each on average"


def silence(workspace):
    """Silent streams show that they live, each at its own pace; one that is filtered is told how far it has come."""
    server = workspace.server(data="none", heartbeat_seconds=1)
    with server.client() as client:
        streams = [open_stream(server, "/v1/changes?since=now") for _ in range(40)]
        retries = [stream.reader.retries[0] for stream in streams]
        expect(all(1000 <= retry <= 3000 for retry in retries), "retry is not always from 1000 to 3000:", retries)
        expect(len(set(retries)) > 20 and spread(retries) > 500, "retry does not vary:", sorted(retries))
        beats = heartbeats(streams, 3.2)
        for times in beats:
            expect(len(times) >= 2, f"{len(times)} heartbeats in 3.2 s")
            gaps = [after - before for before, after in zip(times, times[1:])]
            expect(min(gaps) > 0.7 and max(gaps) < 1.25, f"the gaps between heartbeats: {gaps}")
        firsts = [times[0] for times in beats]
        expect(spread(firsts) > 0.1, f"all heartbeats within {spread(firsts):.3f} s")

        start = client.get("/v1/state")
        filtered = [
            open_stream(server, f"/v1/changes?since=now&types=tasks/add&path=/tasks", form=form) for form in (EVENTS, LINES)]
        values = open_stream(server, "/v1/state/tasks")
        records = [StreamRecord(start.json, start.cursor, is_filtered=True) for _ in filtered]
        values.next()
        for _ in range(2):
            client.commit(add(1))
            here = client.commit(add(1))["cursor"]
            for stream, record in zip(filtered, records):
                event = record.take_event(stream.next(2))
                expect_equal((event.name, event.id), ("progress", here), "what a filtered stream is told of others' commits")
        receipt = client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        for stream, record in zip(filtered, records):
            event = record.take_event(stream.next(2))
            expect_equal((event.name, event.id), ("change", receipt["cursor"]), "what it is told of a commit of its own")
        # A value has progress as well, but nothing that looks like a change.
        told = values.until(lambda event: event.name == "change")
        expect_equal({event.name for event in told[:-1]} - {"progress"}, set(), "other events of a value that stayed")
        for stream in streams:
            events = stream.until(lambda event: event.id == receipt["cursor"])
            StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(events)
        time.sleep(1.3)
        for stream in (*filtered, values):
            expect_equal(stream.watch(0.05), [], "events of a stream where nothing happens")
            expect(stream.reader.comments > 0, "no heartbeat in 1.3 s")


def heartbeats(streams, seconds):
    """When each of the streams had its heartbeats."""
    begun = time.monotonic()
    times = [[] for _ in streams]
    poll = select.poll()
    indices = {stream.socket.fileno(): index for index, stream in enumerate(streams)}
    for number in indices:
        poll.register(number, select.POLLIN)
    while (left := begun + seconds - time.monotonic()) > 0:
        for number, _ in poll.poll(1000 * left):
            data = os.read(number, 1 << 16)
            expect_equal(data, b":\n\n", "what comes on a silent stream")
            times[indices[number]].append(time.monotonic() - begun)
    return times


def streams_of_parts(workspace):
    """Streams of values, views and derived stores tell what they are of, and nothing else; removed and back again too."""
    server = workspace.server(data="none", heartbeat_seconds=1)
    with server.client() as client:
        secret = 987_654_321
        for target in ("/v1/state/tasks/entities/1", "/v1/views/nothing", "/v1/stores/tasks/state/counter",
                       "/v1/stores/tasks/views/count"):
            missing = client.get(target, Accept=EVENTS)
            expect_equal((missing.status, missing.fields["content-type"]), (404, "application/problem+json"), target)
        one = {"id": 1, "title": "milk"}
        client.commit(action("tasks/add", one))
        begin = client.get("/v1/stores/tasks/state")
        value, view, store_value, store_view, changes, lines, whole = [
            open_stream(server, target, form=form) for target, form in (
                ("/v1/state/tasks/entities/1", EVENTS), ("/v1/views/tasks.open", EVENTS),
                ("/v1/stores/tasks/state", EVENTS), ("/v1/stores/tasks/views/open", EVENTS),
                ("/v1/stores/tasks/changes?since=now", EVENTS), ("/v1/stores/tasks/changes?since=now", LINES),
                ("/v1/changes?since=now", EVENTS))]
        for stream, target in ((value, "/v1/state/tasks/entities/1"), (view, "/v1/views/tasks.open"),
                               (store_value, "/v1/stores/tasks/state"), (store_view, "/v1/stores/tasks/views/open")):
            event = stream.next()
            answer = client.get(target)
            expect_equal(event, Event("snapshot", answer.cursor, answer.body.decode()), f"the first event of {target}")
        client.commit(add(secret))
        client.commit(batch(add(1), action("tasks/complete", {"id": 1})))
        client.commit(action("tasks/remove", {"id": 1}))
        last = client.commit(action("tasks/add", one))["cursor"]
        end = client.get("/v1/stores/tasks/state")
        told = value.until(lambda event: event.id == last)
        names = [event.name for event in told if event.name != "progress"]
        expect_equal(names, ["change", "removed", "change"], "the events of a value that goes and comes")
        expect_equal([event.data for event in told if event.name == "removed"], ["null"], "the data of removed")
        expect_equal(told[-1].json, end.json["entities"]["1"], "the value that came back")
        seen = []
        for stream, target in ((view, "/v1/views/tasks.open"), (store_value, "/v1/stores/tasks/state"),
                               (store_view, "/v1/stores/tasks/views/open")):
            events = stream.until(lambda event: event.name == "change" and event.data == client.get(target).body.decode())
            seen += events
        for stream in (changes, lines):
            record = StreamRecord(begin.json, begin.cursor, is_filtered=True)
            events = stream.until(lambda event: event.id == last)
            record.take_all(events)
            expect_equal([what for _, what in record.seen],
                         [[{"type": "tasks/complete", "payload": {"id": 1}}], {"type": "tasks/remove", "payload": {"id": 1}},
                          {"type": "tasks/add", "payload": one}], "the actions that a derived store is told")
            seen += events
        text = repr(seen)
        for part in (str(secret), "counter", "canvas", "knowsTheCount"):
            expect(part not in text, f"a derived store's stream tells of {part}")
        expect(str(secret) in repr(whole.until(lambda event: event.id == last)), "the whole store's stream leaves something out")
        # A lost position is answered with the store's own state.
        with open_stream(server, "/v1/stores/tasks/changes?since=now", "aaaaaaaaaaaaaaaa.1") as lost:
            expect_equal([lost.next().name, lost.next().json], ["reset", end.json], "reset and snapshot of a derived store")


def negotiated(workspace):
    """A stream is only for those who ask for one: not by a wildcard, nor with a weight of 0 or below that of JSON."""
    server = workspace.server(data="none")
    faults = []
    for accept, is_stream in (
            (EVENTS, True), (f"{EVENTS}, */*;q=0.1", True), ("Text/Event-Stream ; q=1", True),
            (f"application/json;q=0.5, {EVENTS}", True), ("*/*", False), ("text/*", False), ("application/json", False),
            (f"{EVENTS};q=0, application/json", False), (f"application/json, {EVENTS};q=0.1", False)):
        with server.client(timeout=5) as client:
            client.send(encode_request("GET", "/v1/state/counter", fields={"Accept": accept}))
            while b"\r\n\r\n" not in client.buffer:
                client.buffer += client.socket.recv(1 << 16)
            if (b"Content-Type: text/event-stream\r\n" in client.buffer) != is_stream:
                faults.append(f"Accept: {accept} is {'not ' if is_stream else ''}answered with a stream")
    expect(not faults, "\n".join(faults))


def refused_streams(workspace):
    """A stream that asks for what it cannot have is answered with a problem at once, and the connection goes on."""
    server = workspace.server(data="none", waiters_max=1)
    events = {"Accept": EVENTS}
    since = "/v1/changes?since=now"
    with server.client() as client, open_stream(server, since):
        for target, status in ((since, {429, 503}), ("/v1/state/counter", {429, 503})):
            full = client.get(target, Accept=EVENTS)
            expect(full.status in status and "retry-after" in full.fields, f"one stream too many, {target}:", full)
            expect_equal(full.fields["content-type"], "application/problem+json", "its media type")
        head = client.request("HEAD", "/v1/state/counter", fields=events)
        expect_equal((head.status, head.body), (200, b""), "HEAD of a stream")
    return judge(server, [
        get("no since", "/v1/changes", 400, "since-required", fields=events),
        get("a since that is none", "/v1/changes?since=yesterday", 400, fields=events),
        get("until", "/v1/state/counter?until=1&wait=5", 400, "bad-parameter", fields=events),
        get("version", "/v1/state/counter?version=0", 400, "bad-parameter", fields=events),
        get("a long settle", since + "&settle=3600000", 400, "bad-parameter", fields=events),
        get("settle in words", since + "&settle=soon", 400, "bad-parameter", fields=events),
        get("a path that is none", since + "&path=tasks", 400, fields=events),
        get("an unknown parameter", since + "&sicne=1", 400, fields=events),
        get("nothing there", "/v1/state/tasks/entities/4", 404, fields=events),
        get("no such view", "/v1/views/nothing", 404, fields=events),
    ])
