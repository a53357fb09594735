"""Each MUST of the Durable Streams protocol (June 2026) that concerns a server with a read side, and why others do not."""

import json
import re

import pytest

from harness.actions import add
from harness.expectations import expect, expect_equal
from harness.streams import StreamClient

STREAMS = ("/v1/streams/commits", "/v1/streams/state")


class Stream:
    """A stream of a server that has three commits."""

    def __init__(self, server, client, path):
        self.server, self.client, self.path = server, client, path
        for _ in range(3):
            client.commit(add(1))

    def get(self, query="", **fields):
        return self.client.get(self.path + query, **fields)

    @property
    def tail(self):
        return self.get("?offset=now").fields["stream-next-offset"]

    def after(self, offset, live=""):
        return self.get(f"?offset={offset}{live}")

    def poll(self, query="", between=lambda: None):
        """The answer to a long-poll, which begins to wait before `between` is called."""
        with self.server.client() as waiting:
            waiting.send(f"GET {self.path}?live=long-poll{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            while self.server.metric(self.client, "waits", route="changes") < 1:
                pass
            between()
            return waiting.receive()

    def events(self, offset, until, between=lambda: None):
        """The events of a stream, until one of them is as wanted."""
        with StreamClient(self.server.port, f"{self.path}?offset={offset}&live=sse") as stream:
            stream.begin()
            between()
            found = []
            while not found or not until(found[-1]):
                found.append(stream.next(5))
            return stream.answer, found


@pytest.fixture(params=STREAMS, ids=["commits", "state"])
def stream(request, workspace):
    server = workspace.server(wait_seconds_default=1)
    with server.client() as client:
        yield Stream(server, client, request.param)


def is_control(event):
    return event.name == "control"


def head_tells_the_tail(stream):
    answer = stream.client.request("HEAD", stream.path)
    expect_equal((answer.status, answer.fields["content-type"]), (200, "application/json"), "HEAD")
    expect_equal(answer.fields["stream-next-offset"], stream.tail, "the tail of HEAD")
    expect_equal(answer.fields["cache-control"], "no-store", "Cache-Control of HEAD")
    expect("stream-closed" not in answer.fields, "the stream is closed")


def what_reaches_the_tail_is_up_to_date(stream):
    for query in ("?offset=-1", f"?offset={stream.tail}", "?offset=now", ""):
        expect_equal(stream.get(query).fields.get("stream-up-to-date"), "true", f"Stream-Up-To-Date of {query}")


def a_part_is_not_up_to_date(stream):
    with stream.server.client() as client:
        lines = b"\n".join([add(1)] * 1500)
        expect_equal(client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"}).status, 200,
                     "the status of a bulk load")
    first = stream.get("?offset=-1") if "commits" in stream.path else stream.after(start_of(stream))
    expect("stream-up-to-date" not in first.fields, "a part of a stream is up to date")
    rest = stream.after(first.fields["stream-next-offset"])
    expect_equal(rest.fields["stream-up-to-date"], "true", "Stream-Up-To-Date of the rest")
    expect(len(json.loads(first.body)) + len(json.loads(rest.body)) >= 1500, "messages are missing")


def start_of(stream):
    """The offset of version 0."""
    return re.sub("_[0-9a-f]{16}", "_" + "0" * 16, stream.tail)


def live_needs_an_offset(stream):
    for live in ("long-poll", "sse"):
        expect_equal(stream.get(f"?live={live}").status, 400, f"the status of {live} without an offset")


def a_long_poll_has_a_cursor(stream):
    tail = stream.tail
    answer = stream.poll(f"&offset={tail}", lambda: stream.client.commit(add(1)))
    expect_equal((answer.status, len(json.loads(answer.body))), (200, 1), "the answer to a long-poll")
    expect(answer.fields["stream-cursor"].isdigit(), "Stream-Cursor is missing")
    expect(answer.fields["etag"] and answer.fields["stream-next-offset"] > tail, "the fields:", answer.fields)


def the_end_of_a_long_poll_says_where_the_tail_is(stream):
    tail = stream.tail
    answer = stream.after(tail, "&live=long-poll")
    expect_equal((answer.status, answer.body), (204, b""), "the end of a long-poll")
    expect_equal(answer.fields["stream-next-offset"], tail, "Stream-Next-Offset of a 204")
    expect_equal(answer.fields["stream-up-to-date"], "true", "Stream-Up-To-Date of a 204")
    expect(answer.fields["stream-cursor"].isdigit(), "Stream-Cursor of a 204 is missing")
    expect_equal(answer.fields["cache-control"], "no-store", "Cache-Control of a 204")


def events_are_event_streams(stream):
    head, _ = stream.events("-1", is_control)
    expect_equal(head.fields["content-type"].partition(";")[0], "text/event-stream", "the media type")
    expect("stream-sse-data-encoding" not in head.fields, "JSON is encoded")


def a_control_event_follows_each_data_event(stream):
    tail = stream.tail
    _, events = stream.events(
        "-1",
        lambda event: is_control(event) and event.json["streamNextOffset"] > tail,
        lambda: stream.client.commit(add(1)),
    )
    expect_equal({event.name for event in events}, {"data", "control"}, "the names of events")
    for event, following in zip(events, events[1:] + [None]):
        if event.name == "data":
            expect(isinstance(event.json, list) and event.json, "the data are no messages:", event.data)
            expect(following and following.name == "control", "no control event follows")
        else:
            expect(event.json["streamCursor"].isdigit(), "streamCursor is missing")
    expect(events[-1].json["upToDate"] is True, "the last control event is not up to date")


def offsets_rise_and_are_one_token(stream):
    seen = []
    for _ in range(20):
        stream.client.commit(add(1))
        seen.append(stream.tail)
    expect_equal(seen, sorted(set(seen)), "the offsets in the order of their bytes")
    for offset in seen:
        expect(re.fullmatch(r"[A-Za-z0-9_.~-]{1,63}", offset), "an offset needs escapes or is long:", offset)
        expect(offset not in ("-1", "now"), "an offset is a sentinel")


def the_start_is_the_default(stream):
    expect_equal(stream.get("?offset=-1").body, stream.get("").body, "what is there without an offset")
    expect(len(json.loads(stream.get("?offset=-1").body)) >= 3, "the beginning is missing")


def now_has_no_messages(stream):
    tail = stream.client.request("HEAD", stream.path).fields["stream-next-offset"]
    answer = stream.get("?offset=now")
    expect_equal((answer.status, answer.body), (200, b"[]"), "the answer to now")
    expect_equal(answer.fields["stream-next-offset"], tail, "Stream-Next-Offset of now")
    expect_equal(answer.fields["stream-up-to-date"], "true", "Stream-Up-To-Date of now")
    expect_equal(answer.fields["cache-control"], "no-store", "Cache-Control of now")


def now_waits_at_once(stream):
    answer = stream.poll("&offset=now", lambda: stream.client.commit(add(1)))
    expect_equal((answer.status, len(json.loads(answer.body))), (200, 1), "the answer to now with a long-poll")
    expect_equal(answer.fields["stream-next-offset"], stream.tail, "Stream-Next-Offset")


def now_streams_from_the_tail(stream):
    tail = stream.tail
    _, events = stream.events("now", is_control)
    expect_equal([event.name for event in events], ["control"], "the events before any data")
    expect_equal((events[0].json["streamNextOffset"], events[0].json["upToDate"]), (tail, True), "the control event")


def messages_are_kept_apart(stream):
    for query in ("?offset=-1", f"?offset={start_of(stream)}"):
        answer = stream.get(query)
        expect_equal(answer.fields["content-type"], "application/json", "the media type")
        expect(all(isinstance(message, dict) for message in json.loads(answer.body)), "messages are no objects")
    expect_equal(stream.after(stream.tail).body, b"[]", "what is behind the tail")


def a_known_range_is_not_sent_again(stream):
    for query in ("?offset=-1", f"?offset={start_of(stream)}"):
        tag = stream.get(query).fields["etag"]
        expect_equal(stream.get(query, If_None_Match=tag).status, 304, "the status for a known range")
        stream.client.commit(add(1))
        expect_equal(stream.get(query, If_None_Match=tag).status, 200, "the status when there is more")
    expect("etag" not in stream.get("?offset=now").fields, "now has a tag")


def cursors_never_go_back(stream):
    tail = stream.tail
    cursor = int(stream.after(tail, "&live=long-poll").fields["stream-cursor"])
    for _ in range(2):
        answer = stream.after(tail, f"&live=long-poll&cursor={cursor}")
        expect(int(answer.fields["stream-cursor"]) > cursor, "the cursor does not go on")
        expect(int(answer.fields["stream-cursor"]) <= cursor + 180, "the cursor leaps")
        cursor = int(answer.fields["stream-cursor"])
    with StreamClient(stream.server.port, f"{stream.path}?cursor={cursor}&offset={tail}&live=sse") as events:
        events.begin()
        seen = []
        for _ in range(10):
            stream.client.commit(add(1))
            event = events.next(5)
            while event.name != "control":
                event = events.next(5)
            seen.append(int(event.json["streamCursor"]))
    expect(seen == sorted(seen) and seen[0] > cursor, f"the cursors of events are {seen} after {cursor}")


def caches_are_told_what_they_may_keep(stream):
    whole = stream.get(f"?offset={start_of(stream)}").fields["cache-control"]
    expect_equal(whole, "public, no-cache", "Cache-Control at the tail")
    expect_equal(stream.after(stream.tail).fields["cache-control"], "no-store", "Cache-Control behind the tail")


def nothing_can_be_written(stream):
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        answer = stream.client.request(method, stream.path, b"[1]", {"Content-Type": "application/json"})
        expect_equal(answer.status, 405, f"the status of {method}")
        expect("/v1/actions" in answer.json["detail"], "the problem does not name where actions go")
        expect_equal(answer.fields["allow"], "GET, HEAD, OPTIONS", "Allow")


def browsers_are_told_not_to_sniff(stream):
    for answer in (stream.get(""), stream.client.request("HEAD", stream.path)):
        expect_equal(answer.fields["x-content-type-options"], "nosniff", "X-Content-Type-Options")
        expect(answer.fields["cross-origin-resource-policy"], "Cross-Origin-Resource-Policy")


def a_wait_that_ends_has_fields_for_browsers_too(stream):
    answer = stream.after(stream.tail, "&live=long-poll")
    expect_equal(answer.status, 204, "the end of a long-poll")
    expect_equal(answer.fields["x-content-type-options"], "nosniff", "X-Content-Type-Options")
    expect_equal(answer.fields["cross-origin-resource-policy"], "same-origin", "Cross-Origin-Resource-Policy")


def commits_that_do_not_concern_the_reader_are_passed_at_once(stream):
    """The heartbeat, which would tell it, too, comes after eleven seconds at the earliest."""
    commits = [("/v1/streams/commits?types=tasks/add&", 1), ("/v1/streams/commits?path=/tasks&", 1)]
    # A commit that changes nothing changes no entity.
    entities = [("/v1/stores/tasks/streams/state?", 1), ("/v1/streams/state?", 0)]
    for others, amount in commits if "commits" in stream.path else entities:
        offset = stream.tail
        stream.client.commit(add(amount))
        with StreamClient(stream.server.port, f"{others}offset={offset}&live=sse") as events:
            events.begin()
            event = events.next(5)
            expect_equal((event.name, event.json["streamNextOffset"]), ("control", stream.tail), f"first of {others}")
            expect(event.json["upToDate"] is True, f"the client of {others} is not up to date")


def other_parameters_are_ignored(stream):
    tail = stream.tail
    for query in (f"?offset={tail}&other=1", f"?offset={tail}&other=1&other=2&live=long-poll"):
        answer = stream.get(query)
        expect_equal((answer.status, answer.fields["stream-next-offset"]), (200 if "live" not in query else 204, tail),
                     f"the answer to {query}")
    expect_equal(stream.get(f"?offset={tail}&offset={tail}").status, 400, "the status for an offset that occurs twice")


def events_are_not_stored_and_have_no_space_behind_data(stream):
    with stream.server.client() as client:
        client.send(f"GET {stream.path}?offset=-1&live=sse HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        seen = b""
        while b"upToDate" not in seen:
            seen += client.socket.recv(65536)
    head, _, body = seen.partition(b"\r\n\r\n")
    expect(b"Cache-Control: no-store, no-cache\r\n" in head, head)
    expect(b"event: data\ndata:[" in body and b"event: control\ndata:{" in body, body[:300])


# The section and the line of the protocol, and the check of it.
CHECKS = [
    ("5.5", "HEAD has the tail, is not cached, and says nothing of a closure", head_tells_the_tail),
    ("5.6", "Stream-Up-To-Date on everything that reaches the tail", what_reaches_the_tail_is_up_to_date),
    ("5.6", "no Stream-Up-To-Date on a part", a_part_is_not_up_to_date),
    ("5.7", "a live read without an offset is refused", live_needs_an_offset),
    ("5.7", "Stream-Cursor on the 200 of a long-poll", a_long_poll_has_a_cursor),
    ("5.7", "a 204 has the tail, Stream-Up-To-Date and Stream-Cursor", the_end_of_a_long_poll_says_where_the_tail_is),
    ("5.8", "the media type of events; JSON is not encoded", events_are_event_streams),
    ("5.8", "control events with streamNextOffset, streamCursor, upToDate", a_control_event_follows_each_data_event),
    ("8", "offsets rise, sort as bytes, are one token and no sentinel", offsets_rise_and_are_one_token),
    ("8", "-1 is the beginning, as is no offset", the_start_is_the_default),
    ("8", "now in a catch-up read: [], the tail, up to date, not stored", now_has_no_messages),
    ("8", "now with a long-poll waits at once", now_waits_at_once),
    ("8", "now with SSE begins with the tail and upToDate", now_streams_from_the_tail),
    ("9.1", "a JSON array of the messages, [] for none", messages_are_kept_apart),
    ("10.1", "ETag on all but now, 304 for a known range", a_known_range_is_not_sent_again),
    ("10.1", "cursors never go back and never repeat", cursors_never_go_back),
    ("10.1", "Cache-Control", caches_are_told_what_they_may_keep),
    ("3", "the write side is not there, and says so", nothing_can_be_written),
    ("12.7", "fields for browsers", browsers_are_told_not_to_sniff),
    ("12.7", "fields for browsers on a 204", a_wait_that_ends_has_fields_for_browsers_too),
    ("5.8", "a control event for commits that do not concern the reader", commits_that_do_not_concern_the_reader_are_passed_at_once),
    ("5", "other parameters are ignored", other_parameters_are_ignored),
    ("10.1", "Cache-Control of events, and their spelling", events_are_not_stored_and_have_no_space_behind_data),
]

# Why the other lines with a MUST do not concern this server.
OTHERS = {
    "Stream-Closed, streamClosed (5.5 to 5.8, 8, 10.1)": "a store goes on for ever, so its streams are never closed",
    "forks (5.7, 5.8, 8, 9.1)": "a fork begins with a write, and this server has the read side only",
    "base64 (5.8)": "both streams are application/json",
    "appends: flattening, empty arrays, validation (9.1)": "there are none; actions have their own contract",
    "what clients must do (5.6, 5.8, 8, 10.1)": "test_clients.py runs the client from PyPI",
}


@pytest.mark.parametrize("section, line, check", CHECKS, ids=[f"{check[0]} {check[2].__name__}" for check in CHECKS])
def test_the_server_keeps_the_protocol(stream, section, line, check):
    check(stream)
