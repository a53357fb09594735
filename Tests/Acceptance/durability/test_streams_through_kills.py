"""kill -9 beside streams."""

import os
import select
import subprocess
import time

from harness.client import ConnectionLost
from harness.expectations import expect, expect_equal, wait_until
from harness.followers import judge_history
from harness.records import StreamRecord
from harness.streams import EVENTS, LINES, EventReader, NothingCame, StreamClient
from harness.worker import processes
from harness.writers import write_through_kills


def test_streams_that_resume_after_kill_9_have_each_commit_once(workspace, figures):
    """The clients resume with Last-Event-ID; one of them is curl -N in a loop."""
    figures(follow_through_kills(workspace, workspace.server(), kills=8))


def test_streams_of_two_loops_that_resume_after_kill_9_have_each_commit_once(workspace, figures):
    figures(follow_through_kills(workspace, workspace.server(loops=2), kills=3))


def follow_through_kills(workspace, server, kills):
    """Kills a server again and again while actions are posted, and judges streams of four kinds."""
    start = server.client().get("/v1/state")
    port, target = processes.Value("i", server.port), processes.Value("q", -1)
    finished = processes.Event()
    acknowledged = [processes.Value("q", 0) for _ in range(3)]
    writers = [
        workspace.worker(write_through_kills, port, f"w{name}", name == 1, finished, acknowledged[name], workspace.seed)
        for name in range(3)
    ]
    followers = [
        workspace.worker(follow_stream, port, start.json, start.cursor, target, form, 60)
        for form in (EVENTS, EVENTS, LINES)
    ]
    followers.append(workspace.worker(follow_by_curl, port, start.json, start.cursor, target, 60))

    def go_on():
        before = max(value.value for value in acknowledged)
        wait_until(lambda: max(value.value for value in acknowledged) > before + 200, "the writers went on", 20)

    for _ in range(kills):
        go_on()
        port.value = server.restart().port
    go_on()
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
        expect_equal(
            (record.resets, record.seen == history.seen), ([], True), "resets, and whether each commit came once"
        )
        expect_equal(record.state, history.state, "the state of a follower")
    return f"{history.version} commits, {len(receipts)} of them acknowledged"


def follow_stream(port, state, cursor, target, form, seconds):
    """An EventSource: comes back with the id of the last event whenever the stream ends, until `target` is reached.

    Returns the record, and how often the stream was lost.
    """
    record, losses = StreamRecord(state, cursor), 0
    end = time.monotonic() + seconds
    while not 0 <= target.value <= record.version:
        expect(time.monotonic() < end, f"a stream is at version {record.version}, not at {target.value}")
        # An EventSource keeps its URL, and sends its cursor as Last-Event-ID.
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
        expect(time.monotonic() < end, f"curl's stream is at version {record.version}, not at {target.value}")
        curl = subprocess.Popen(
            [
                "curl",
                "-sN",
                "-H",
                f"Accept: {EVENTS}",
                "-H",
                f"Last-Event-ID: {record.cursor}",
                f"http://127.0.0.1:{port.value}/v1/changes?since=oldest",
            ],
            stdout=subprocess.PIPE,
        )
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
