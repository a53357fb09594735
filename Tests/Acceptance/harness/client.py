"""A client on a raw socket: one kept-alive connection, one request after another."""

import socket

from harness.expectations import Failure, expect, wait_until
from harness.messages import HOST, encode_request, parse_answer


class ConnectionLost(Exception):
    """The connection ended before the answer was complete."""


class Client:
    """One kept-alive connection, one request after another."""

    def __init__(self, port, timeout=60, source=None):
        try:
            self.socket = socket.create_connection((HOST, port), timeout, source and (source, 0))
        except OSError as error:
            raise ConnectionLost(f"cannot connect: {error}") from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except TimeoutError:
            raise
        except OSError as error:
            raise ConnectionLost(f"while sending: {error}") from error

    def receive(self, method="GET"):
        while True:
            parsed = parse_answer(self.buffer, method)
            if parsed:
                answer, count = parsed
                del self.buffer[:count]
                return answer
            try:
                data = self.socket.recv(1 << 18)
            except TimeoutError:
                raise Failure(f"no answer within {self.socket.gettimeout()} s") from None
            except OSError as error:
                raise ConnectionLost(f"while receiving: {error}") from error
            if not data:
                raise ConnectionLost(f"closed after {len(self.buffer)} bytes of an answer")
            self.buffer += data

    def request(self, method, target, body=None, fields=None):
        self.send(encode_request(method, target, body, fields))
        return self.receive(method)

    def get(self, target, **fields):
        return self.request("GET", target, fields={name.replace("_", "-"): value for name, value in fields.items()})

    def post(self, body, target="/v1/actions", **fields):
        return self.request("POST", target, body, {name.replace("_", "-"): value for name, value in fields.items()})

    def commit(self, body, **fields):
        """Posts an action that has to be taken, and returns the receipt."""
        answer = self.post(body, **fields)
        expect(answer.status == 200, "an action was not taken:", answer)
        return answer.json

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def connect(port, timeout=60):
    """A client of a server that may be away; `port()` is where it is, and that may change meanwhile."""
    return wait_until(lambda: Client(port(), timeout), "a server takes connections", 60, past=ConnectionLost)


class LocalClient(Client):
    """A client on a Unix socket."""

    def __init__(self, path, timeout=60):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.buffer = bytearray()
