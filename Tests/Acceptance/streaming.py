"""Clients of streams: one that reads events one by one, a crowd that reads together, and judges of what they were told."""

import collections
import contextlib
import json
import resource
import select
import socket
import time

from following import Record
from harness import HOST, Answer, Client, ConnectionLost, Failure, encode_request, expect, expect_equal, version_of

EVENTS, LINES = "text/event-stream", "application/x-ndjson"
REASONS = {"cursor-lost", "cursor-expired", "slow-reader"}


class NothingCame(Failure):
    """A stream was silent for longer than it may be."""


# Reading


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
            expect(name not in found, f"two fields {name} in one event:", block[:300])
            found[name] = value.removeprefix(" ")
        if "retry" in found:
            self.retries.append(int(found.pop("retry")))
        # The end of a block sets the ID, before a block without data is dropped.
        self.last_id = found.get("id", self.last_id)
        if not set(found) - {"id"}:
            return None
        expect({"event", "data"} <= set(found) <= {"event", "data", "id"}, "an event of another form:", block[:300])
        return Event(found["event"], found.get("id"), found["data"])


class LineReader:
    """Takes NDJSON, and tells it as the events that a reader of text/event-stream would have had."""

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
        self.form = form
        self.reader = EventReader() if form == EVENTS else LineReader()
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
        expect(not {"content-length", "transfer-encoding"} & set(fields), "a stream with a length:", fields)
        wanted = {"content-type": self.form, "cache-control": "no-store", "x-accel-buffering": "no",
                  "x-content-type-options": "nosniff"}
        expect_equal({name: fields.get(name) for name in wanted}, wanted, "the fields of a stream")
        self.buffer.clear()
        self.events += self.reader.take(rest)
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

    def next(self, seconds=10):
        """The next event; it has to come within the time."""
        end = time.monotonic() + seconds
        while not self.events:
            self.socket.settimeout(max(0.001, end - time.monotonic()))
            self.events += self.reader.take(self._receive(bytearray()))
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
                self.events += self.reader.take(self._receive(bytearray()))
        except NothingCame:
            pass
        except ConnectionLost:
            self.has_ended = True
        events, self.events = list(self.events), collections.deque()
        return events


def open_stream(server, target, last_id=None, form=EVENTS, **others):
    return StreamClient(server.port, target, last_id, form, **others).begin()


# Judging


class StreamRecord(Record):
    """What a stream of commits has told, judged as it comes."""

    def __init__(self, state, cursor, is_filtered=False):
        super().__init__(state, cursor)
        self.is_filtered = is_filtered
        self.resets = []
        self.is_reset = False

    @property
    def cursor(self):
        return f"{self.epoch}.{self.version}"

    def take_event(self, event):
        expect(not self.is_reset or event.name == "snapshot", f"{event.name} between a reset and its snapshot")
        if event.name == "change":
            self._take_change(event.id, event.json)
        elif event.name == "progress":
            expect(self.is_filtered, "progress on a stream that leaves nothing out:", event)
            expect_equal(event.data, "{}", "the data of progress")
            expect(event.version > self.version, f"progress from {self.version} to {event.id}")
            self.version = event.version
        elif event.name == "reset":
            expect(event.id is None and event.json["reason"] in REASONS, "a reset:", event)
            self.resets.append(event.json["reason"])
            self.is_reset = True
        elif event.name == "snapshot":
            expect(self.is_reset, "a snapshot without a reset")
            self._begin_again(event)
        else:
            raise Failure(f"an event of no known kind: {event}")
        return event

    def _take_change(self, identifier, change):
        expect_equal(identifier, change["cursor"], "the id of a change")
        if self.is_filtered:
            expect(change["version"] > self.version, f"version {change['version']} after {self.version}")
            self.version = change["version"]
            self.seen.append((change["id"], change["action"]))
        else:
            self.take({"changes": [change], "next": change["cursor"]})

    def _begin_again(self, snapshot):
        epoch, version = snapshot.id.rpartition(".")[0], snapshot.version
        if epoch == self.epoch:
            expect(version >= self.version, f"a snapshot of {version} after {self.version}")
        self.epoch, self.version, self.state, self.is_reset = epoch, version, snapshot.json, False
        self.seen.append(("snapshot", version))

    def take_all(self, events):
        for event in events:
            self.take_event(event)
        return self


class ValueRecord:
    """What a stream of a value has told: a snapshot first, and then only news, each later than the one before.

    `truth` says what the value is at a version.
    """

    def __init__(self, truth):
        self.truth = truth
        self.version, self.value = -1, None
        self.told = 0

    def take_event(self, event):
        wanted = ("snapshot",) if self.told == 0 else ("change", "removed")
        expect(event.name in wanted, f"{event.name} as event {self.told} of a stream of a value")
        expect(event.version > self.version, f"version {event.version} after {self.version}")
        value = event.json
        expect(self.told == 0 or value != self.value, f"{value} was told again at {event.id}")
        expect_equal(value, self.truth(event.version), f"the value at {event.id}")
        self.version, self.value = event.version, value
        self.told += 1
        return event

    def take_all(self, events):
        for event in events:
            self.take_event(event)
        return self


def counted(version):
    """The counter, where every commit has added one to it."""
    return {"value": version}


# Figures


def spread(numbers):
    return max(numbers) - min(numbers)


def memory_bytes(server):
    """What the process has in memory (VmRSS)."""
    with open(f"/proc/{server.pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


def mebibytes(count):
    return f"{count / (1 << 20):.1f} MiB"


# Many


@contextlib.contextmanager
def many_descriptors(count):
    """Room for so many sockets in this process and in those that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 2000)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Crowd:
    """Many clients of one stream, read by one loop. What many were sent alike is judged once."""

    def __init__(self, server, target):
        self.server, self.target = server, target
        self.epoll = select.epoll()
        self.sockets, self.received = {}, {}

    def join(self, count, target=None):
        """So many more, of this stream or of another that tells the same; their numbers."""
        before = set(self.sockets)
        request = encode_request("GET", target or self.target, fields={"Accept": EVENTS})
        for _ in range(count):
            client = socket.create_connection((HOST, self.server.port), 20)
            client.sendall(request)
            client.setblocking(False)
            self.sockets[client.fileno()] = client
            self.received[client.fileno()] = bytearray()
            self.epoll.register(client.fileno(), select.EPOLLIN)
        return set(self.sockets) - before

    def read_until(self, ending, seconds):
        """Reads until everybody has had these bytes; returns how long that took."""
        begun = time.monotonic()
        waiting = {number for number, buffer in self.received.items() if ending not in buffer}
        while waiting:
            left = begun + seconds - time.monotonic()
            ready = self.epoll.poll(left) if left > 0 else []
            expect(ready, f"{len(waiting)} of {len(self.sockets)} had no {ending} within {seconds} s")
            for number, _ in ready:
                data = self.sockets[number].recv(1 << 18)
                buffer = self.received[number]
                expect(data, "a stream has ended:", bytes(buffer[-300:]))
                buffer += data
                # The end of the event as well, not only its id.
                if buffer.endswith(b"\n\n") and buffer.rfind(ending) >= 0:
                    waiting.discard(number)
        return time.monotonic() - begun

    def stories(self):
        """What was told to how many: from which cursor, and the bytes of the events, without heartbeats."""
        counts = collections.Counter()
        for buffer in self.received.values():
            head, _, body = bytes(buffer).partition(b"\r\n\r\n")
            expect(head.startswith(b"HTTP/1.1 200 "), "a stream was answered", head)
            begin = head.partition(b"State-Cursor: ")[2].partition(b"\r\n")[0].decode()
            retry, _, events = body.partition(b"\n\n")
            expect(retry.startswith(b"retry: "), "a stream begins with", retry)
            counts[begin, events.replace(b"\n\n:\n\n", b"\n\n").removeprefix(b":\n\n")] += 1
        return counts

    def close(self):
        for client in self.sockets.values():
            client.close()
        self.epoll.close()


def read_events(text):
    """The events of a whole text, which must end with one."""
    reader = EventReader()
    events = reader.take(text)
    expect_equal(reader.rest, b"", "what stands behind the last event")
    return events
