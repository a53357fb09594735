"""Checks of streams that end, by a kill, by a stop or of old age, and of clients that come back to them."""

import copy
import os
import select
import subprocess
import threading
import time

from harness.actions import action, add, bulk, commit_large_renames
from harness.client import ConnectionLost
from harness.expectations import Failure, expect, expect_equal, wait_until
from harness.figures import spread
from harness.followers import judge_history
from harness.records import StreamRecord
from harness.streams import EVENTS, LINES, EventReader, NothingCame, StreamClient, open_stream
from harness.worker import processes
from harness.writers import write_through_kills


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


def streams_through_kills(workspace):
    """kill -9 eight times: streams that come back with Last-Event-ID, curl -N in a loop too, are told each commit once."""
    return follow_through_kills(workspace, workspace.server(), kills=8)


def follow_through_kills(workspace, server, kills):
    """Kills a server again and again while actions are posted, and judges streams of four kinds."""
    start = server.client().get("/v1/state")
    port, target = processes.Value("i", server.port), processes.Value("q", -1)
    finished = processes.Event()
    acknowledged = [processes.Value("q", 0) for _ in range(3)]
    writers = [
        workspace.worker(write_through_kills, port, f"w{name}", name == 1, finished, acknowledged[name], workspace.seed)
        for name in range(3)]
    followers = [
        workspace.worker(follow_stream, port, start.json, start.cursor, target, form, 60) for form in (EVENTS, EVENTS, LINES)]
    followers.append(workspace.worker(follow_by_curl, port, start.json, start.cursor, target, 60))
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


def streams_into_new_history(workspace):
    """Without a journal a killed server begins a new history: streams that come back are told reset and snapshot first."""
    server = workspace.server(data="none")
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
                ("/v1/changes?since=oldest", "not a cursor", EVENTS),
                (f"/v1/changes?since={state.cursor}000", None, LINES), ("/v1/changes", state.cursor + "000", EVENTS)):
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
    expired(workspace)


def expired(workspace):
    """A stream that begins before what is kept is told so, and goes on from a snapshot."""
    server = workspace.server(data="none", history_commits_max=100)
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


def ends_of_streams(workspace):
    """Streams end by themselves at different times, behind a whole event; whoever comes back with the last id misses nothing."""
    server = workspace.server(data="none", stream_seconds_max=3, heartbeat_seconds=1)
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


def streams_at_sigterm(workspace):
    """SIGTERM ends 200 streams in good order and with them the server, exit code 0; a stalled one does not hold it up."""
    server = workspace.server()
    with server.client() as client:
        start = client.get("/v1/state")
        targets = ["/v1/changes?since=now", "/v1/state/counter", "/v1/views/count", "/v1/changes?since=now&types=tasks/add"]
        streams = [open_stream(server, targets[number % 4]) for number in range(200)]
        client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        stalled = [open_stream(server, target, receive_bytes=8192)
                   for target in ("/v1/changes?since=now", "/v1/state/tasks/entities/1")]
        commit_large_renames(client, [50])
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
