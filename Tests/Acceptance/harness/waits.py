"""Requests that wait."""

import time

from harness.expectations import wait_until
from harness.messages import encode_request


def begin(server, target, method="GET", **fields):
    """A client whose request is under way."""
    client = server.client(timeout=20)
    client.begun = time.monotonic()
    client.send(
        encode_request(method, target, fields={name.replace("_", "-"): value for name, value in fields.items()})
    )
    return client


def finish(client, method="GET"):
    """The answer, and how many seconds it took from the request."""
    answer = client.receive(method)
    return answer, time.monotonic() - client.begun


def parked(server, client, count):
    wait_until(lambda: server.metric(client, "waiters") == count, f"{count} waiters")


def ends(client, seconds=5):
    """Whether the server has closed the connection, with nothing more on it."""
    client.socket.settimeout(seconds)
    try:
        return not client.buffer and client.socket.recv(1 << 16) == b""
    except (ConnectionResetError, BrokenPipeError):
        return True
    except TimeoutError:
        return False
