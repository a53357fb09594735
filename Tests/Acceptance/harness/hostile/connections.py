"""Connections of hostile clients: floods that read, crowds that read nothing, and what they were answered."""

import collections
import contextlib
import math
import selectors
import socket
import struct
import time

from harness.expectations import wait_until
from harness.messages import HOST, parse_answer
from harness.quiet import HOSTILE_HOST

# The kernel chooses the port when it knows the other end, so that thousands of connections find one (ip(7)).
IP_BIND_ADDRESS_NO_PORT = 24


class Crowd:
    """Connections from the hostile address; a connection that the server refuses is counted, and no failure."""

    def __init__(self, port, receive_bytes=None):
        self.port, self.receive_bytes = port, receive_bytes
        self.sockets, self.counts = [], collections.Counter()

    def join(self, timeout=2):
        """A new connection, or nothing where the server takes none."""
        connection = socket.socket()
        if self.receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_bytes)
        connection.settimeout(timeout)
        try:
            connection.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            connection.bind((HOSTILE_HOST, 0))
            connection.connect((HOST, self.port))
        except OSError:
            connection.close()
            self.counts["not connected"] += 1
            return None
        self.sockets.append(connection)
        return connection

    def send(self, connection, data):
        """Sends, and says whether the server has taken everything."""
        try:
            connection.sendall(data)
        except TimeoutError:
            self.counts["not taken"] += 1
            return False
        except OSError:
            self.counts["cut"] += 1
            return False
        return True

    def open(self, count, data, seconds=20):
        """So many connections that send this and read nothing; all of them, unless that takes too long."""
        end = time.monotonic() + seconds
        for number in range(count):
            if time.monotonic() > end:
                self.counts["not begun"] = count - number
                break
            connection = self.join()
            if connection and self.send(connection, data(number) if callable(data) else data):
                self.counts["sent"] += 1

    def leave(self, with_reset=False):
        for connection in self.sockets:
            if with_reset:
                with contextlib.suppress(OSError):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        self.sockets.clear()

    def text(self):
        return ", ".join(f"{count} {name}" for name, count in self.counts.most_common(6)) or "nothing"


def hold(ends):
    """Keeps everything as it is until the time is up."""
    wait_until(ends, "the end", math.inf, pause=0.02)


def flood(port, ends, request, connections=8, depth=1):
    """Keeps connections busy with so many requests under way on each; counts the statuses of what comes."""
    crowd = Crowd(port)
    selector = selectors.DefaultSelector()
    buffers, sent = {}, 0

    def push(connection):
        nonlocal sent
        data = b"".join((request(sent + number) if callable(request) else request) for number in range(depth))
        sent += depth
        return crowd.send(connection, data)

    def enlist():
        connection = crowd.join()
        if connection:
            if push(connection):
                buffers[connection] = [bytearray(), depth]
                selector.register(connection, selectors.EVENT_READ)
            else:
                connection.close()

    for _ in range(connections):
        enlist()
    while not ends():
        if not buffers:
            enlist()
        for key, _ in selector.select(0.05):
            connection = key.fileobj
            buffer = buffers[connection]
            try:
                data = connection.recv(1 << 20)
            except OSError:
                data = b""
            if not data:
                crowd.counts["ended"] += 1
                selector.unregister(connection)
                del buffers[connection]
                connection.close()
                enlist()
                continue
            buffer[0] += data
            while parsed := parse_answer(buffer[0], request_method(request)):
                crowd.counts[parsed[0].status] += 1
                del buffer[0][: parsed[1]]
                buffer[1] -= 1
            if buffer[1] <= 0:
                buffer[1] = depth
                push(connection)
            if ends():
                break
    return f"{sent} sent; answered {crowd.text()}"


def request_method(request):
    sample = request(0) if callable(request) else request
    return "HEAD" if sample.startswith(b"HEAD") else "GET"


def exchange(crowd, data, seconds=5):
    """Sends a request and reads its answer, however long that takes; the status, or nothing."""
    connection = crowd.join(timeout=seconds)
    if not connection or not crowd.send(connection, data):
        return None
    buffer = bytearray()
    while not (parsed := parse_answer(buffer)):
        try:
            part = connection.recv(1 << 20)
        except OSError:
            part = b""
        if not part:
            crowd.counts["unanswered"] += 1
            return None
        buffer += part
    crowd.counts[parsed[0].status] += 1
    return parsed[0]
