"""Thousands of clients of one stream, read by one loop."""

import collections
import contextlib
import resource
import select
import socket
import time

from harness.chunks import ChunkReader
from harness.expectations import expect
from harness.messages import HOST, encode_request
from harness.streams import EVENTS


@contextlib.contextmanager
def many_descriptors(count):
    """Room for so many sockets in this process and in the processes that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 2000)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Crowd:
    """Many clients of one stream, read by one loop. A test judges equal bytes once."""

    def __init__(self, server, target):
        self.server, self.target = server, target
        self.epoll = select.epoll()
        self.sockets, self.received = {}, {}
        self.heads, self.chunks = collections.defaultdict(bytearray), {}

    def join(self, count, target=None):
        """Opens so many streams of this target, or of another one with the same commits; returns their descriptors."""
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
        """Reads until each client has received these bytes; returns how long that took."""
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
                buffer += self._content(number, data)
                # The end of the event as well, not only its id.
                if buffer.endswith(b"\n\n") and buffer.rfind(ending) >= 0:
                    waiting.discard(number)
        return time.monotonic() - begun

    def _content(self, number, data):
        """What a client gets of these bytes: its head as it came, and the content of its chunks."""
        if number in self.chunks:
            return self.chunks[number].take(data)
        self.heads[number] += data
        head, end, body = bytes(self.heads[number]).partition(b"\r\n\r\n")
        if not end:
            return b""
        self.chunks[number] = ChunkReader()
        return head + end + self.chunks[number].take(body)

    def stories(self):
        """How many clients received what: the first cursor, and the bytes of the events without heartbeats."""
        counts = collections.Counter()
        for buffer in self.received.values():
            head, _, body = bytes(buffer).partition(b"\r\n\r\n")
            expect(head.startswith(b"HTTP/1.1 200 "), "a stream was answered", head)
            begin = head.partition(b"State-Cursor: ")[2].partition(b"\r\n")[0].decode()
            opening, _, events = body.partition(b"\n\n")
            expect(opening.startswith(b"retry: ") and b"\ndata: " in opening, "a stream begins with", opening)
            if b"\nevent: progress\n" not in opening:
                events = opening.partition(b"\n")[2] + b"\n\n" + events
            counts[begin, events.replace(b"\n\n:\n\n", b"\n\n").removeprefix(b":\n\n")] += 1
        return counts

    def close(self):
        for client in self.sockets.values():
            client.close()
        self.epoll.close()
