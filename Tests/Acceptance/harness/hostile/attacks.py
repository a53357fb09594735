"""The kinds of hostile clients. Each maker takes its scale and returns the client."""

import itertools
import threading

from harness.actions import action, batch
from harness.expectations import paced
from harness.hostile.connections import Crowd, exchange, flood, hold
from harness.messages import HOST, encode_request
from harness.streams import EVENTS, LINES

NDJSON = {"Content-Type": LINES}
HERE = f"Host: {HOST}\r\n"


def post(body, fields=None, target="/v1/actions"):
    return encode_request("POST", target, body, fields)


def bulk(lines, **fields):
    return post(b"\n".join(lines), NDJSON | fields)


def bombs(request):
    """Sends one expensive request after the other, each on a connection of its own; it gives up after five seconds."""

    def attack(port, ends):
        crowd = Crowd(port)
        for number in itertools.count():
            exchange(crowd, request(number) if callable(request) else request)
            crowd.leave()
            if ends():
                return crowd.text()

    return attack


def floods(request, connections=8, depth=1):
    return lambda port, ends: flood(port, ends, request, connections, depth)


def unread(request, connections, copies=1):
    """Connections that send requests and read none of the answers."""

    def attack(port, ends):
        crowd = Crowd(port, receive_bytes=4096)
        data = (lambda number: request(number) * copies) if callable(request) else request * copies
        crowd.open(connections, data)
        hold(ends)
        return crowd.text()

    return attack


def unfinished_bodies(count, size, missing=1):
    """Bodies that lack their last bytes; they are sent to all connections in turn, so that all grow together."""

    def attack(port, ends):
        crowd = Crowd(port)
        head = encode_request("POST", "/v1/actions", None, {"Content-Type": "application/json", "Content-Length": size})
        connections = []
        for _ in range(count):
            connection = crowd.join()
            if connection and crowd.send(connection, head):
                connection.settimeout(0.5)
                connections.append(connection)
        piece = b" " * (256 << 10)
        left = size - missing
        while left > 0 and connections and not ends():
            part = piece[: min(left, len(piece))]
            connections = [connection for connection in connections if crowd.send(connection, part)]
            left -= len(part)
        crowd.counts["bodies under way"] = len(connections)
        hold(ends)
        return crowd.text()

    return attack


def slow_bytes(count, data, pause):
    """Connections that send a request byte by byte, with a pause between; one that is closed comes back."""

    def attack(port, ends):
        crowd = Crowd(port)
        connections = {}
        for _ in paced(iter(ends, True), pause):
            while len(connections) < count and not ends():
                connection = crowd.join(timeout=0.2)
                if not connection:
                    break
                connections[connection] = 0
            for connection, place in list(connections.items()):
                byte = data[place : place + 1] or b"a"
                connection.settimeout(0.2)
                if crowd.send(connection, byte):
                    connections[connection] = place + 1
                else:
                    del connections[connection]
            crowd.counts["held"] = max(crowd.counts["held"], len(connections))
        return crowd.text()

    return attack


def connects(request=b""):
    """Connects and hangs up, as fast as it can."""

    def attack(port, ends):
        crowd = Crowd(port)
        while not ends():
            connection = crowd.join()
            if connection:
                crowd.counts["connections"] += 1
                if request:
                    crowd.send(connection, request)
                crowd.leave(with_reset=crowd.counts["connections"] % 2)
        return crowd.text()

    return attack


def hang_ups(count, request):
    """Has so many requests wait, and resets all of their connections at once; again and again."""

    def attack(port, ends):
        crowd = Crowd(port)
        while not ends():
            crowd.open(count, request)
            crowd.leave(with_reset=True)
        return crowd.text()

    return attack


def churning_streams(count, target):
    """Opens streams, reads their first bytes, and leaves; again and again."""

    def attack(port, ends):
        crowd = Crowd(port)
        while not ends():
            crowd.open(count, encode_request("GET", target, fields={"Accept": EVENTS}))
            for connection in crowd.sockets:
                try:
                    connection.recv(4096)
                except OSError:
                    crowd.counts["nothing came"] += 1
            crowd.leave()
        return crowd.text()

    return attack


def waits_and_commits(count, request, commit):
    """Holds so many waiting requests, commits what wakes them, and asks again whatever was answered."""

    def attack(port, ends):
        crowd = Crowd(port)
        crowd.open(count, request)
        writer = Crowd(port)
        number = 0
        while not ends():
            number += 1
            exchange(writer, commit(number) if callable(commit) else commit)
            writer.leave()
            for connection in crowd.sockets:
                connection.setblocking(False)
                try:
                    got = connection.recv(1 << 20)
                    while got and len(got) == 1 << 20:
                        got = connection.recv(1 << 20)
                except OSError:
                    continue
                if got:
                    crowd.counts["woken"] += 1
                    connection.settimeout(0.5)
                    crowd.send(connection, request)
        return crowd.text()

    return attack


def unread_streams_and_commits(count, target, commits, form=EVENTS):
    """Streams that nobody reads, while commits change what they show."""

    def attack(port, ends):
        crowd = Crowd(port, receive_bytes=4096)
        crowd.open(count, encode_request("GET", target, fields={"Accept": form}))
        writer = Crowd(port)
        for number in paced(itertools.count(), 0.01):
            if ends():
                return f"{crowd.text()}, {number} commits"
            exchange(writer, commits(number))
            writer.leave()

    return attack


def chunk_dribble(connections, size=1):
    """Chunked bodies without an end, of the smallest chunks."""

    def attack(port, ends):
        crowd = Crowd(port)
        head = b"POST /v1/actions HTTP/1.1\r\n" + HERE.encode() + b"Content-Type: application/json\r\n"
        crowd.open(connections, head + b"Transfer-Encoding: chunked\r\n\r\n")
        piece = (b"%x\r\n" % size + b" " * size + b"\r\n") * 2000
        alive = list(crowd.sockets)
        while not ends() and alive:
            alive = [connection for connection in alive if crowd.send(connection, piece)]
        hold(ends)
        return crowd.text()

    return attack


def together(*attacks):
    """Several hostile clients at once, in threads of one process."""

    def attack(port, ends):
        texts = []
        threads = [threading.Thread(target=lambda one=one: texts.append(one(port, ends))) for one in attacks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return "; ".join(texts)

    return attack


# States that make requests expensive.


def tasks(first, count, size):
    return [action("tasks/add", {"id": number, "title": "x" * size}) for number in range(first, first + count)]


def load_tasks(client, count, size):
    """A state with so many tasks of so many bytes."""
    step = max(1, min(9000, 4_000_000 // (size + 80)))
    for first in range(0, count, step):
        client.commit(batch(*tasks(first, min(step, count - first), size)))


def rename(number, size=20):
    """A commit that changes the first task."""
    return action("tasks/rename", {"id": 0, "title": f"{number} " + "y" * size})
