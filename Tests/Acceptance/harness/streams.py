"""Streams: readers of both forms, and a client that reads events one by one."""

import collections
import json
import select
import socket
import time

from harness.chunks import ChunkReader
from harness.client import Client, ConnectionLost
from harness.expectations import Failure, expect, expect_equal
from harness.messages import HOST, Answer, encode_request, version_of

EVENTS, LINES = "text/event-stream", "application/x-ndjson"


class NothingCame(Failure):
    """A stream was silent for longer than it may be."""


class Event(collections.namedtuple("Event", "name id data")):
    """An event as it came; without an id of its own, `id` is nothing."""

    @property
    def json(self):
        return json.loads(self.data)

    @property
    def version(self):
        return version_of(self.id)


class EventReader:
    """Takes text/event-stream as the HTML standard has it (section 9.2.6), in the form that this server writes it."""

    def __init__(self):
        self.rest = b""
        self.retries, self.comments = [], 0
        self.last_id = None  # what an EventSource sends as Last-Event-ID

    def take(self, data):
        """The events that are complete with these bytes."""
        *blocks, self.rest = (self.rest + data).split(b"\n\n")
        return [event for event in map(self._event, blocks) if event]

    def _event(self, block):
        found = {}
        for line in block.decode().split("\n"):
            name, colon, value = line.partition(":")
            if not name and colon:
                self.comments += 1
                continue
            if name == "data" and name in found:  # the lines of an event's data belong together
                found[name] += "\n" + value.removeprefix(" ")
                continue
            expect(name not in found, f"two fields {name} in one event:", block[:300])
            found[name] = value.removeprefix(" ")
        is_opening = "retry" in found
        if is_opening:
            self.retries.append(int(found.pop("retry")))
            # Some readers make an event of a block without data.
            expect("data" in found, "a stream opens with a block without data:", block[:300])
        # The end of a block sets the ID, before a block without data is dropped.
        self.last_id = found.get("id", self.last_id)
        if not set(found) - {"id"}:
            return None
        if is_opening and found["event"] == "progress":
            return None
        expect({"event", "data"} <= set(found) <= {"event", "data", "id"}, "an event of another form:", block[:300])
        return Event(found["event"], found.get("id"), found["data"])


class LineReader:
    """Takes NDJSON, and returns it as the events that a reader of text/event-stream would return."""

    def __init__(self):
        self.rest = b""
        self.retries, self.comments = [], 0

    def take(self, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.comments += lines.count(b"")
        return [event for line in lines if line for event in self._events(line)]

    def _events(self, line):
        found = json.loads(line)
        if "version" in found:
            return [Event("change", found["cursor"], line)]
        if "reset" in found:
            expect_equal(set(found), {"reset", "reason", "state", "next"}, "the members of a reset")
            reset = json.dumps({"reason": found["reason"]})
            return [Event("reset", None, reset), Event("snapshot", found["next"], json.dumps(found["state"]))]
        expect_equal(set(found), {"next"}, "the members of a line that is no commit")
        return [Event("progress", found["next"], "{}")]


class StreamClient(Client):
    """One stream."""

    def __init__(self, port, target, last_id=None, form=EVENTS, receive_bytes=None, timeout=20):
        try:
            self.socket = socket.socket()
            if receive_bytes:  # before connecting: it decides the window that is offered
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            self.socket.settimeout(timeout)
            self.socket.connect((HOST, port))
        except OSError as error:
            raise ConnectionLost(f"cannot connect: {error}") from error
        self.buffer = bytearray()
        self.form, self.target = form, target
        self.reader = EventReader() if form == EVENTS else LineReader()
        self.chunks = ChunkReader()
        self.events = collections.deque()
        self.has_ended = False
        self.send(encode_request("GET", target, fields={"Accept": form, "Last-Event-ID": last_id}))

    def begin(self):
        """Reads the head of the answer and judges it; an answer that is no stream is a failure."""
        while b"\r\n\r\n" not in self.buffer:
            self._receive(self.buffer)
        head, _, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.answer = Answer(int(status.split()[1]), fields, b"")
        expect(self.answer.status == 200 and self.answer.closes, "a stream was answered", self.answer)
        expect("content-length" not in fields, "a stream with a length:", fields)
        wanted = {
            "transfer-encoding": "chunked",
            "content-type": self.form,
            "cache-control": "no-store, no-cache" if "live=sse" in self.target else "no-store",
            "x-accel-buffering": "no",
            "x-content-type-options": "nosniff",
        }
        expect_equal({name: fields.get(name) for name in wanted}, wanted, "the fields of a stream")
        self.buffer.clear()
        self.take(rest)
        return self

    def _receive(self, buffer):
        try:
            data = self.socket.recv(1 << 18)
        except TimeoutError:
            raise NothingCame(f"nothing came for {self.socket.gettimeout()} s") from None
        except OSError as error:
            raise ConnectionLost(f"while receiving: {error}") from error
        if not data:
            raise ConnectionLost("the stream has ended")
        buffer += data
        return data

    def take(self, data):
        """Takes bytes as they came on the connection."""
        self.events += self.reader.take(self.chunks.take(data))

    def next(self, seconds=10):
        """The next event; it has to come within the time."""
        end = time.monotonic() + seconds
        while not self.events:
            self.socket.settimeout(max(0.001, end - time.monotonic()))
            self.take(self._receive(bytearray()))
        return self.events.popleft()

    def until(self, condition, seconds=10):
        """The next events, up to the first that meets the condition."""
        end = time.monotonic() + seconds
        events = []
        while not events or not condition(events[-1]):
            try:
                events.append(self.next(max(0.001, end - time.monotonic())))
            except NothingCame:
                raise NothingCame(f"not within {seconds} s, after {len(events)} events: {events[-3:]}") from None
        return events

    def watch(self, seconds):
        """Reads for a time, or to the end of the stream; the events."""
        end = time.monotonic() + seconds
        try:
            while (left := end - time.monotonic()) > 0:
                self.socket.settimeout(left)
                self.take(self._receive(bytearray()))
        except NothingCame:
            pass
        except ConnectionLost:
            self.has_ended = True
        events, self.events = list(self.events), collections.deque()
        return events


def open_stream(server, target, last_id=None, form=EVENTS, **others):
    return StreamClient(server.port, target, last_id, form, **others).begin()


def read_events(text):
    """The events of a whole text, which must end with one."""
    reader = EventReader()
    events = reader.take(text)
    expect_equal(reader.rest, b"", "the bytes behind the last event")
    return events


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
                events[stream] += stream.reader.take(stream.chunks.take(data))
            else:
                lives[stream] = time.monotonic() - begun
                poll.unregister(number)
    return [(lives[stream], events[stream]) for stream in streams]
