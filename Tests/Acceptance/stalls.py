"""Checks of streams whose clients do not read, or read slowly, and of those that only look as if."""

import copy
import threading
import time

from harness.actions import action, add, bulk, commit_large_renames
from harness.crowd import Crowd
from harness.expectations import expect, expect_equal, wait_until
from harness.figures import mebibytes
from harness.followers import read_history
from harness.messages import version_of
from harness.records import StreamRecord
from harness.streams import EVENTS, LINES, open_stream, read_events


def stalled_readers(workspace):
    """20 streams that are not read while 100 MB come cost little memory and nobody's time, and begin again with a snapshot."""
    server = workspace.server(data="none", history_bytes_max=8 << 20)
    with server.client() as client:
        start = client.get("/v1/state")
        client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        commit_large_renames(client, [100] * 40)  # the history is full, and so is what the allocator keeps
        here = client.get("/v1/state")
        stalled = [
            open_stream(server, "/v1/changes?since=now", receive_bytes=8192, form=(EVENTS, LINES)[number % 2])
            for number in range(18)]
        # On a value, too: it is told the newest when it reads again.
        watching = [open_stream(server, "/v1/state/tasks/entities/1", receive_bytes=8192) for _ in range(2)]
        live = open_stream(server, "/v1/changes?since=now")
        record = StreamRecord(copy.deepcopy(here.json), here.cursor)
        before, begun = server.memory_bytes(), time.monotonic()
        delays, peak, sent = [], 0, 0
        while sent < 100e6 or time.monotonic() < begun + 6.5:
            sent += commit_large_renames(client, [100] if sent < 100e6 else [1])
            posted = time.monotonic()
            version = client.commit(add(1))["version"]
            record.take_all(live.until(lambda event: event.version == version))
            delays.append(time.monotonic() - posted)
            peak = max(peak, server.memory_bytes())
            time.sleep(0.02)
        # Whoever kept the 100 MB once for all would need 100 MB more, whoever kept them for each would need 2 GB. What is
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
        return (f"memory grew by {mebibytes(growth)} from {mebibytes(before)} while {mebibytes(sent)} came; another stream was told within"
                f" {1000 * max(delays):.0f} ms; {backlog} commits were on their way to a stalled one")


def slow_beginners(workspace):
    """A stream that has much to catch up with may take its time: it is told everything, from the journal too, and never reset."""
    server = workspace.server(history_commits_max=300)
    with server.client() as client:
        start = client.get("/v1/state")
        client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        commit_large_renames(client, [200] * 5)
        slow = [
            open_stream(server, "/v1/changes?since=oldest", receive_bytes=8192, form=form) for form in (EVENTS, LINES)]
        # This one has all, and stalls behind little: that is no reason for a reset either.
        brief = open_stream(server, "/v1/changes?since=now", receive_bytes=8192)
        here = client.get("/v1/state")
        for pause in (0.1, 5.5):
            time.sleep(pause)
            client.commit(add(1))
        commit_large_renames(client, [20])
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


def bursts_after_silence(workspace):
    """Streams that were silent for long, and read all that comes, are never called slow when a burst meets a heartbeat."""
    server = workspace.server(data="none", heartbeat_seconds=1)
    count, rounds, size = 300, 2, 1200
    crowd = Crowd(server, "/v1/changes?since=now")
    try:
        with server.client() as client:
            start = client.get("/v1/state")
            crowd.join(count - 40)
            # These are away from the board for a while after each heartbeat.
            settling = crowd.join(40, "/v1/changes?since=now&settle=900")
            epoch = start.cursor.rpartition(".")[0]
            last = 1 + rounds * size
            client.commit(add(1))
            crowd.read_until(f"id: {epoch}.1\n".encode(), 5)
            patient = settles_for_long(workspace)
            time.sleep(5.5)
            # Each burst is more than one piece. Of 300 streams one has its heartbeat every 3 ms.
            poster = threading.Thread(target=lambda: [bulk(client, [add(1)] * size) for _ in range(rounds)], daemon=True)
            poster.start()
            seconds = crowd.read_until(f"id: {epoch}.{last}\n".encode(), 20)
            poster.join(10)
            # Who takes less than this for everything has not stalled for the 5 s that make a reader slow.
            expect(seconds < 4.5, f"NOT CHECKED, this machine takes {seconds:.1f} s to read")
            counts = {number: buffer.count(b"event: reset") for number, buffer in crowd.received.items()}
            resets = {
                "260 that read all the time": sum(counts.values()) - sum(counts[number] for number in settling),
                "40 that do, and settle for 0.9 s": sum(counts[number] for number in settling),
                "3 that do, and settle for 5.5 s": resets_of_patient(*patient)}
            expect(not any(resets.values()), "streams were reset as slow readers:", resets)
            for _, text in crowd.stories():
                record = StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(read_events(text))
                expect_equal(record.version, last, "where a stream ends")
    finally:
        crowd.close()


def settles_for_long(workspace):
    """Streams that are told a burst when it has settled for 5.5 s, each read by a thread of its own all the time."""
    server = workspace.server(data="none")
    with server.client() as client:
        start = client.get("/v1/state")
        streams = [open_stream(server, "/v1/changes?since=now&settle=5500") for _ in range(3)]
        resets = []
        readers = [threading.Thread(target=lambda stream=stream: resets.append(resets_until(stream, start, 2000)),
                                    daemon=True) for stream in streams]
        for reader in readers:
            reader.start()
        client.commit(add(1))
        bulk(client, [add(1)] * 1999)
    return readers, resets


def resets_until(stream, start, version):
    """How often a stream is reset on its way to a version."""
    events = stream.until(lambda event: event.id is not None and event.version == version, 20)
    return len(StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(events).resets)


def resets_of_patient(readers, resets):
    """How often these were reset: the time that a stream lets pass itself is not its client's."""
    for reader in readers:
        reader.join(20)
    expect_equal(len(resets), len(readers), "streams that settle and were told everything")
    return sum(resets)


def cost_of_catching_up(workspace):
    """A stream that catches up from the journal costs the server at most three times what the same costs page by page."""
    server = workspace.server(history_commits_max=100)
    with server.client() as client:
        epoch = client.get("/v1").json["epoch"]
        client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        commit_large_renames(client, [200] * 10)
        wanted = [f"{epoch}.{version}" for version in range(1, 2002)]

        def page():
            pages = read_history(client, f"{epoch}.0", limit=100)
            return [change["cursor"] for page in pages for change in page["changes"]]

        def stream(more=""):
            with open_stream(server, f"/v1/changes?since=oldest{more}") as stream:
                return [event.id for event in stream.until(lambda event: event.id == wanted[-1], 60)]

        costs = {}
        for name, read in (("pages", page), ("stream", stream), ("filtered", lambda: stream("&path=/tasks"))):
            before = server.cpu_seconds()
            for _ in range(3):
                expect(read() == wanted, f"{name}: not every commit once")
            costs[name] = (server.cpu_seconds() - before) / 3
    text = ", ".join(f"{name} {1000 * seconds:.0f} ms" for name, seconds in costs.items())
    expect(max(costs.values()) <= 3 * costs["pages"], f"the server's time for 2,001 commits of 8 kB: {text}")
    return text
