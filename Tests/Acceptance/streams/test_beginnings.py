"""Where a stream begins, for a client that is cut off before its first event."""

import pytest

from harness.actions import add
from harness.expectations import expect, expect_equal, wait_until
from harness.streams import StreamClient, open_stream


def close(_, stream):
    stream.close()


def restart(server, _):
    server.restart()


@pytest.mark.parametrize("target", ["/v1/changes?since=now", "/v1/changes?since=now&path=/counter"])
@pytest.mark.parametrize("end", [close, restart])
def test_an_event_source_that_is_cut_off_before_its_first_event_comes_back_to_where_it_began(workspace, end, target):
    server = workspace.server()
    with server.client() as client:
        client.commit(add(1))
        began = client.get("/v1/state").cursor
    stream = open_stream(server, target)
    wait_until(lambda: not stream.watch(0.05) and stream.reader.retries, "the stream has been opened", 5)
    expect_equal(stream.reader.last_id, began, "the ID that a stream opens with")
    end(server, stream)
    with server.client() as writer:
        receipt = writer.commit(add(1))
    with open_stream(server, target, stream.reader.last_id) as again:
        expect_equal(again.next().id, receipt["cursor"], "the first event after coming back")
        expect_equal(again.reader.last_id, receipt["cursor"], "the ID after that event")


def test_a_stream_of_the_oldest_begins_with_the_first_commit(workspace):
    server = workspace.server()
    with server.client() as client:
        client.commit(add(1))
        client.commit(add(1))
    with open_stream(server, "/v1/changes?since=oldest") as stream:
        first = stream.next()
        expect(first.id.endswith(".1"), "the first event since=oldest has the ID", first.id)


def test_a_stream_of_a_lost_cursor_has_no_id_before_its_reset(workspace):
    """With an ID, a client that is cut off there would come back to it and never see the state."""
    server = workspace.server()
    with server.client() as client:
        here = client.commit(add(1))["cursor"]
    with StreamClient(server.port, "/v1/changes?since=now", "not a cursor") as stream:
        while b"event: snapshot" not in stream.buffer:
            stream.buffer += stream.socket.recv(1 << 16)
        beginning = bytes(stream.buffer).partition(b"\r\n\r\n")[2].partition(b"event: reset")[0]
        expect(b"event:" not in beginning and b"id:" not in beginning, "before the reset stands", beginning)
    with open_stream(server, "/v1/changes?since=now", "not a cursor") as stream:
        reset, snapshot = stream.next(), stream.next()
        expect_equal(
            (reset.name, reset.id, snapshot.name, snapshot.id), ("reset", None, "snapshot", here), "the first events"
        )
