"""Checks of streams: thousands at once, readers that stop, servers that are killed, silence, and the end."""

import copy
import os
import select
import statistics
import subprocess
import threading
import time

from bad_input import get, judge
from canvas import batch, bulk
from following import judge_history
from harness import (
    ConnectionLost, Failure, action, add, encode_request, expect, expect_equal, processes, version_of, wait_until)
from history import passes, write_through_kills
from streaming import (
    EVENTS, LINES, Crowd, Event, EventReader, NothingCame, StreamClient, StreamRecord, ValueRecord, counted, many_descriptors,
    open_stream, read_events)


def memory_bytes(server):
    """What the process has in memory (VmRSS)."""
    with open(f"/proc/{server.pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


def mebibytes(count):
    return f"{count / (1 << 20):.1f} MiB"


# The judges


def strict_stream_judges(bench):
    """These checks notice an event that is dropped, repeated, swapped, altered or misnamed, and a value that goes back."""
    server = bench.server(data="none")
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
        return ValueRecord(counted).take_all(altered).value == counted(20)

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


# Many at once


def ten_thousand_followers(bench):
    """10,000 streams of commits, begun while there are commits: each is told every commit once, in order, with its id."""
    with many_descriptors(10_000):
        return tell_crowd(bench.server(data="none", connections_max=12_000), 10_000)


def tell_crowd(server, count):
    """Lets so many follow, commits one by one and in bursts, and judges what each was told."""
    crowd = Crowd(server, "/v1/changes?since=now")
    try:
        with server.client() as client:
            start = client.get("/v1/state")
            states = {start.cursor: start.json}
            before = memory_bytes(server)
            for _ in range(10):
                crowd.join(count // 10)
                client.commit(add(1))
                state = client.get("/v1/state")
                states[state.cursor] = state.json
            epoch = start.cursor.rpartition(".")[0]

            def reach(version):
                return crowd.read_until(f"id: {epoch}.{version}\n".encode(), 20)

            # Those who came last are only told of what comes from now on.
            client.commit(add(1))
            reach(11)
            each = (memory_bytes(server) - before) / count
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


def thousand_watchers(bench):
    """1,000 streams of a value: each begins with a snapshot, never goes back, and ends on the last value."""
    count = 1000
    with many_descriptors(count):
        server = bench.server(data="none")
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


# Readers that stop


TITLE = "x" * 8000


def renames(first, count):
    return [action("tasks/rename", {"id": 1, "title": f"{number} {TITLE}"}) for number in range(first, first + count)]


def load(client, counts, seconds_between=0.0):
    """Renames one task again and again, with 8 kB each; tells how many bytes that were."""
    first = version_of(client.get("/v1").json["cursor"])
    sent = 0
    for count in counts:
        bulk(client, renames(first, count))
        first, sent = first + count, sent + count * (len(TITLE) + 6)
        time.sleep(seconds_between)
    return sent


def stalled_readers(bench):
    """20 streams that are not read while 60 MB come cost little memory and nobody's time, and begin again with a snapshot."""
    server = bench.server(data="none", history_bytes_max=8 << 20)
    with server.client() as client:
        start = client.get("/v1/state")
        client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        load(client, [100] * 40)  # the history is full, and so is what the allocator keeps
        here = client.get("/v1/state")
        stalled = [
            open_stream(server, "/v1/changes?since=now", receive_bytes=8192, form=(EVENTS, LINES)[number % 2])
            for number in range(18)]
        # On a value, too: it is told the newest when it reads again.
        watching = [open_stream(server, "/v1/state/tasks/entities/1", receive_bytes=8192) for _ in range(2)]
        live = open_stream(server, "/v1/changes?since=now")
        record = StreamRecord(copy.deepcopy(here.json), here.cursor)
        before, begun = memory_bytes(server), time.monotonic()
        delays, peak, sent = [], 0, 0
        while sent < 60e6 or time.monotonic() < begun + 6.5:
            sent += load(client, [100] if sent < 60e6 else [1])
            posted = time.monotonic()
            version = client.commit(add(1))["version"]
            record.take_all(live.until(lambda event: event.version == version))
            delays.append(time.monotonic() - posted)
            peak = max(peak, memory_bytes(server))
            time.sleep(0.02)
        # Whoever kept the 60 MB once for all would need 60 MB more, whoever kept them for each would need 1.2 GB. What is
        # allowed: a piece of 256 KiB for each of 20, and the same again for what the allocator does not give back.
        growth = peak - before
        expect(growth < 20 << 20, f"memory grew by {mebibytes(growth)} beside 20 stalled streams")
        expect(max(delays) < 0.5, f"another stream was told of a commit only after {max(delays):.2f} s")
        backlog = 0
        for stream in stalled:
            mine = StreamRecord(copy.deepcopy(here.json), here.cursor)
            head = version_of(client.get("/v1").json["cursor"])
            mine.take_all(stream.until(lambda event: event.id and event.version >= head))
            expect_equal(mine.resets, ["slow-reader"], "resets of a stream that stalled")
            backlog = max(backlog, next(index for index, seen in enumerate(mine.seen) if seen[0] == "snapshot"))
            receipt = client.commit(add(1))
            mine.take_all(stream.until(lambda event: event.id == receipt["cursor"]))
            expect_equal(mine.state, client.get("/v1/state").json, "the state of a stream that began again")
            stream.close()
        final = client.get("/v1/state/tasks/entities/1")
        for stream in watching:
            told = stream.until(lambda event: event.data == final.body.decode())
            expect_equal(told[0].name, "snapshot", "the first event")
            expect(len(told) < 100, f"{len(told)} values were kept for a stream that stalled")
        live.close()
        wait_until(lambda: server.metric(client, "waiters") == 2, "the streams that were closed to be noticed", 5)
        return (f"memory grew by {mebibytes(growth)} while {mebibytes(sent)} came; another stream was told within"
                f" {1000 * max(delays):.0f} ms; {backlog} commits were on their way to a stalled one")


def slow_beginners(bench):
    """A stream that has much to catch up with may take its time: it is told everything, from the journal too, and never reset."""
    server = bench.server(history_commits_max=300)
    with server.client() as client:
        start = client.get("/v1/state")
        client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        load(client, [200] * 5)
        slow = [
            open_stream(server, "/v1/changes?since=oldest", receive_bytes=8192, form=form) for form in (EVENTS, LINES)]
        # This one has all, and stalls behind little: that is no reason for a reset either.
        brief = open_stream(server, "/v1/changes?since=now", receive_bytes=8192)
        here = client.get("/v1/state")
        for pause in (0.1, 5.5):
            time.sleep(pause)
            client.commit(add(1))
        load(client, [20])
        final = client.get("/v1/state")
        for stream, begin in [*((stream, start) for stream in slow), (brief, here)]:
            record = StreamRecord(copy.deepcopy(begin.json), begin.cursor)
            # Now and then it takes a break.
            while record.version < final.version:
                record.take_event(stream.next())
                if record.version % 100 == 0:
                    time.sleep(0.05)
            expect_equal((record.resets, record.state), ([], final.json), "resets, and the state that was reached")
    return f"{final.version} commits, {mebibytes(8 * final.version << 10)}"


# Kills


def follow_stream(port, state, cursor, target, form, seconds):
    """An EventSource: comes back with the id of the last event whenever the stream ends, until `target` is reached.

    Returns the record, and how often the stream was lost.
    """
    record, losses = StreamRecord(state, cursor), 0
    end = time.monotonic() + seconds
    while not 0 <= target.value <= record.version:
        expect(time.monotonic() < end, f"a stream stands at {record.version}, not at {target.value}")
        # An EventSource has the address that it was given, and says by itself where it stands.
        since, last = (record.cursor, None) if form == LINES else ("oldest", record.cursor)
        try:
            with StreamClient(port.value, f"/v1/changes?since={since}", last, form) as stream:
                stream.begin()
                while not 0 <= target.value <= record.version and time.monotonic() < end:
                    try:
                        event = stream.next(0.1)
                    except NothingCame:
                        continue
                    record.take_event(event)
        except ConnectionLost:
            losses += 1
            time.sleep(0.01)
    return record, losses


def follow_by_curl(port, state, cursor, target, seconds):
    """The same with curl in a loop, as a shell script would have it."""
    record, losses = StreamRecord(state, cursor), 0
    end = time.monotonic() + seconds
    while not 0 <= target.value <= record.version:
        expect(time.monotonic() < end, f"curl's stream stands at {record.version}, not at {target.value}")
        curl = subprocess.Popen(
            ["curl", "-sN", "-H", f"Accept: {EVENTS}", "-H", f"Last-Event-ID: {record.cursor}",
             f"http://127.0.0.1:{port.value}/v1/changes?since=oldest"], stdout=subprocess.PIPE)
        reader = EventReader()
        try:
            while not 0 <= target.value <= record.version and time.monotonic() < end:
                if select.select([curl.stdout], [], [], 0.1)[0]:
                    data = os.read(curl.stdout.fileno(), 1 << 18)
                    if not data:
                        losses += 1
                        break
                    record.take_all(reader.take(data))
        finally:
            curl.kill()
            curl.wait()
    return record, losses


def streams_through_kills(bench):
    """kill -9 eight times: streams that come back with Last-Event-ID, curl -N in a loop too, are told each commit once."""
    return follow_through_kills(bench, bench.server(), kills=8)


def follow_through_kills(bench, server, kills):
    """Kills a server again and again while actions are posted, and judges streams of four kinds."""
    start = server.client().get("/v1/state")
    port, target = processes.Value("i", server.port), processes.Value("q", -1)
    finished = processes.Event()
    acknowledged = [processes.Value("q", 0) for _ in range(3)]
    writers = [
        bench.worker(write_through_kills, port, f"w{name}", name == 1, finished, acknowledged[name], bench.seed)
        for name in range(3)]
    followers = [
        bench.worker(follow_stream, port, start.json, start.cursor, target, form, 60) for form in (EVENTS, EVENTS, LINES)]
    followers.append(bench.worker(follow_by_curl, port, start.json, start.cursor, target, 60))
    for _ in range(kills):
        before = max(value.value for value in acknowledged)
        wait_until(lambda: max(value.value for value in acknowledged) > before + 200, "the writers went on", 20)
        server.kill()
        server.start()
        port.value = server.port
    time.sleep(0.2)
    finished.set()
    receipts = {}
    for writer in writers:
        receipts |= writer.result(30)[0]
    with server.client() as client:
        history = judge_history(client, start.json, start.cursor)
        target.value = history.version
    versions = {identifier: version for version, (identifier, _) in history.by_version().items()}
    for identifier, version in receipts.items():
        expect_equal(versions.get(identifier), version, f"the version of {identifier}, which was acknowledged,")
    for follower in followers:
        record, losses = follower.result(30)
        expect(losses >= kills // 2, f"a stream was cut off only {losses} times")
        expect_equal((record.resets, record.seen == history.seen), ([], True), "resets, and whether all was told once")
        expect_equal(record.state, history.state, "the state of a follower")
    return f"{history.version} commits, {len(receipts)} of them acknowledged"


def streams_into_new_history(bench):
    """Without a journal a killed server begins a new history: streams that come back are told reset and snapshot first."""
    server = bench.server(data="none")
    with server.client() as client:
        start = client.get("/v1/state")
        for _ in range(5):
            client.commit(add(1))
        stream = open_stream(server, f"/v1/changes?since={start.cursor}")
        record = StreamRecord(start.json, start.cursor).take_all(stream.until(lambda event: event.version == 5))
    server.kill()
    try:
        stream.next()
        raise Failure("a stream of a killed server went on")
    except ConnectionLost:
        server.start()
    with server.client() as client:
        client.commit(add(7))
        state = client.get("/v1/state")
        for target, last, form in (
                ("/v1/changes?since=now", record.cursor, EVENTS), ("/v1/changes", record.cursor, EVENTS),
                (f"/v1/changes?since={record.cursor}", None, EVENTS), (f"/v1/changes?since={record.cursor}", None, LINES),
                ("/v1/changes?since=oldest", "not a cursor", EVENTS)):
            with open_stream(server, target, last, form) as again:
                mine = copy.deepcopy(record).take_all([again.next(), again.next()])
                expect_equal((mine.resets, mine.state, mine.cursor), (["cursor-lost"], state.json, state.cursor),
                             f"resets, state and cursor of {target} after {last} as {form}")
                receipt = client.commit(add(0))
                expect_equal(mine.take_event(again.next()).id, receipt["cursor"], "the next event")
                state = client.get("/v1/state")
        with open_stream(server, "/v1/state/counter", record.cursor) as again:
            reset, snapshot = again.next(), again.next()
            expect_equal((reset.name, reset.id, reset.json, snapshot.name, snapshot.json),
                         ("reset", None, {"reason": "cursor-lost"}, "snapshot", {"value": 7}), "a value's stream")
        with open_stream(server, "/v1/state/counter", state.cursor) as again:
            expect_equal((again.next().name, len(again.events)), ("snapshot", 0), "a value's stream in the same history")
    expired(bench)


def expired(bench):
    """A stream that begins before what is kept is told so, and goes on from a snapshot."""
    server = bench.server(data="none", history_commits_max=100)
    with server.client() as client:
        start = client.get("/v1/state")
        bulk(client, [add(1)] * 400)
        for form in (EVENTS, LINES):
            with open_stream(server, f"/v1/changes?since={start.cursor}", form=form) as stream:
                record = StreamRecord(start.json, start.cursor).take_all([stream.next(), stream.next()])
                expect_equal((record.resets, record.state), (["cursor-expired"], client.get("/v1/state").json), "resets, state")
                client.commit(add(1))
                record.take_event(stream.next())
        with open_stream(server, f"/v1/changes?since={start.cursor}", record.cursor) as stream:
            client.commit(add(1))
            expect_equal(record.take_event(stream.next()).name, "change", "the first event: Last-Event-ID beats since")


# Silence and the end


def spread(numbers):
    return max(numbers) - min(numbers)


def silence(bench):
    """Silent streams show that they live, each at its own pace; one that is filtered is told how far it has come."""
    server = bench.server(data="none", heartbeat_seconds=1)
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


def bursts_after_silence(bench):
    """Streams that were silent for long, and read all that comes, are never called slow when a burst meets a heartbeat."""
    server = bench.server(data="none", heartbeat_seconds=1)
    count, rounds, size = 300, 2, 1200
    crowd = Crowd(server, "/v1/changes?since=now")
    try:
        with server.client() as client:
            start = client.get("/v1/state")
            crowd.join(count - 40)
            # These are away from the board for a while after each heartbeat.
            crowd.join(40, "/v1/changes?since=now&settle=900")
            epoch = start.cursor.rpartition(".")[0]
            last = 1 + rounds * size
            client.commit(add(1))
            crowd.read_until(f"id: {epoch}.1\n".encode(), 5)
            patient = settles_for_long(bench)
            time.sleep(5.5)
            # Each burst is more than one piece. Of 300 streams one has its heartbeat every 3 ms.
            poster = threading.Thread(target=lambda: [bulk(client, [add(1)] * size) for _ in range(rounds)], daemon=True)
            poster.start()
            seconds = crowd.read_until(f"id: {epoch}.{last}\n".encode(), 20)
            poster.join(10)
            # Who takes less than this for everything has not stalled for the 5 s that make a reader slow.
            expect(seconds < 4.5, f"NOT CHECKED, this machine takes {seconds:.1f} s to read")
            resets = {
                f"{count:,} that read all the time": sum(
                    text.count(b"event: reset") * number for (_, text), number in crowd.stories().items()),
                "3 that settle for 5.5 s": resets_of_patient(*patient)}
            expect(not any(resets.values()), "streams were reset as slow readers:", resets)
            for _, text in crowd.stories():
                record = StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(read_events(text))
                expect_equal(record.version, last, "where a stream ends")
    finally:
        crowd.close()


def settles_for_long(bench):
    """Streams that have been told a part of a burst, and wait for the rest until it has settled for 5.5 s."""
    server = bench.server(data="none")
    with server.client() as client:
        start = client.get("/v1/state")
        streams = [open_stream(server, "/v1/changes?since=now&settle=5500") for _ in range(3)]
        bulk(client, [add(1)] * 2000)
    return start, streams


def resets_of_patient(start, streams):
    """How often these were reset: the time that a stream lets pass itself is not its client's."""
    count = 0
    for stream in streams:
        events = stream.until(lambda event: event.id is not None and event.version == 2000)
        count += len(StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(events).resets)
    return count


def ends_of_streams(bench):
    """Streams end by themselves at different times, behind a whole event; whoever comes back with the last id misses nothing."""
    server = bench.server(data="none", stream_seconds_max=3, heartbeat_seconds=1)
    with server.client() as client:
        start = client.get("/v1/state")
        begun = time.monotonic()
        streams = [
            open_stream(server, "/v1/changes?since=now", form=(EVENTS, LINES)[number % 2]) for number in range(40)]
        finished = threading.Event()
        poster = threading.Thread(target=post_until, args=(server, finished), daemon=True)
        poster.start()
        lives = []
        ended = read_to_the_end(streams, begun, 6)
        finished.set()
        poster.join(10)
        final = client.get("/v1/state")
        head, resumed = final.version, 0
        for stream, (life, events) in zip(streams, ended):
            expect_equal(stream.reader.rest, b"", "an event that was begun")
            record = StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(events)
            lives.append(life)
            if record.version == head:
                continue
            since, last = (record.cursor, None) if stream.form == LINES else ("now", record.cursor)
            with open_stream(server, f"/v1/changes?since={since}", last, stream.form) as again:
                record.take_all(again.until(lambda event: event.id and event.version >= head))
            expect_equal((record.version, record.state), (head, final.json), "where the stream leads")
            resumed += 1
        expect(resumed > 30, f"only {resumed} streams ended while there were commits")
        expect(2.2 < min(lives) and max(lives) < 4.2, f"streams of at most 3 s lived {min(lives):.2f} to {max(lives):.2f} s")
        expect(spread(lives) > 0.3, f"all streams ended within {spread(lives):.2f} s")
    return f"lives from {min(lives):.2f} to {max(lives):.2f} s"


def post_until(server, finished):
    with server.client() as client:
        while not finished.wait(0.02):
            client.commit(add(1))


def read_to_the_end(streams, begun, seconds):
    """How long each stream lived, and what came on it."""
    lives, events = {}, {stream: list(stream.events) for stream in streams}
    poll = select.poll()
    numbers = {stream.socket.fileno(): stream for stream in streams}
    for number in numbers:
        poll.register(number, select.POLLIN)
    while len(lives) < len(streams):
        left = begun + seconds - time.monotonic()
        expect(left > 0, f"{len(streams) - len(lives)} streams have not ended within {seconds} s")
        for number, _ in poll.poll(1000 * left):
            stream = numbers[number]
            data = stream.socket.recv(1 << 18)  # a reset connection is an error here
            if data:
                events[stream] += stream.reader.take(data)
            else:
                lives[stream] = time.monotonic() - begun
                poll.unregister(number)
    return [(lives[stream], events[stream]) for stream in streams]


def streams_at_sigterm(bench):
    """SIGTERM ends 200 streams in good order and with them the server, exit code 0; a stalled one does not hold it up."""
    server = bench.server()
    with server.client() as client:
        start = client.get("/v1/state")
        targets = ["/v1/changes?since=now", "/v1/state/counter", "/v1/views/count", "/v1/changes?since=now&types=tasks/add"]
        streams = [open_stream(server, targets[number % 4]) for number in range(200)]
        client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        stalled = [open_stream(server, target, receive_bytes=8192)
                   for target in ("/v1/changes?since=now", "/v1/state/tasks/entities/1")]
        load(client, [50])
        last = client.commit(add(1))["version"]
        for number, stream in enumerate(streams):
            if number % 4 == 0:
                events = stream.until(lambda event: event.version == last)
                StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(events)
        signalled = time.monotonic()
        server.terminate()
        code = server.wait(10)
        seconds = time.monotonic() - signalled
        expect_equal(code, 0, "the exit code")
        expect(seconds < 5, f"the server took {seconds:.1f} s to stop")
        ended = read_to_the_end(streams, time.monotonic(), 5)
        for number, (stream, (_, events)) in enumerate(zip(streams, ended)):
            expect_equal(stream.reader.rest, b"", "an event that was begun")
            if number % 4 == 0:
                expect_equal(events, [], "events at the end")
    server.start()
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter").json, {"value": 1}, "the counter afterwards")
        stream = streams[0]
        with open_stream(server, "/v1/changes?since=now", f"{start.cursor.rpartition('.')[0]}.0") as again:
            expect_equal(again.next().version, 1, "the first event after the restart, from the beginning")
    for stream in stalled:
        stream.close()
    return f"the server ended after {seconds:.2f} s"


# Parts of the state


def streams_of_parts(bench):
    """Streams of values, views and derived stores tell what they are of, and nothing else; removed and back again too."""
    server = bench.server(data="none", heartbeat_seconds=1)
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


def negotiated(bench):
    """A stream is only for those who ask for one: not by a wildcard, nor with a weight of 0 or below that of JSON."""
    server = bench.server(data="none")
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


def refused_streams(bench):
    """A stream that asks for what it cannot have is answered with a problem at once, and the connection goes on."""
    server = bench.server(data="none", waiters_max=1)
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
