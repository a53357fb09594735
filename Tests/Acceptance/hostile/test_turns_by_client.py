"""Much slow work of one client beside little of another: evaluations, encodings and reads go in turn by client.

The quiet client has another address. What it watches and reads is small; the hostile one's takes long, and is asked for again and
again. The times of the quiet client stay within a quarter of a second, or five times what they were before.
"""

import http.client
import socket
import threading
import time

import pytest
from harness.actions import action
from harness.expectations import expect
from harness.messages import HOST
from harness.quiet import HOSTILE_HOST, QUIET_HOST

COUNT = 150_000
SMALL = "/v1/state/small?filter=%40.n%3E0"
BOUND = 0.25


def connect(server, host=QUIET_HOST):
    return http.client.HTTPConnection(HOST, server.port, timeout=60, source_address=(host, 0))


def ask(connection, target, **fields):
    connection.request("GET", target, headers={name.replace("_", "-"): value for name, value in fields.items()})
    answer = connection.getresponse()
    return answer.status, answer.getheader("ETag"), answer.read()


def change(client, place, value):
    client.commit(action("document/set", {"path": place, "value": value}))


def wake(server, client, number):
    """How long after a commit a wait for a small query has its answer."""
    connection = connect(server)
    _, tag, _ = ask(connection, SMALL)
    result = []

    def wait():
        status, _, _ = ask(connection, SMALL + "&wait=50", If_None_Match=tag)
        result.append((status, time.monotonic()))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    begun = time.monotonic()
    change(client, "/small/0/n", number + 2)
    thread.join()
    connection.close()
    status, ended = result[0]
    expect(status == 200, f"status {status}")
    return ended - begun


def read(server, number):
    """How long a read of a query takes that nobody has asked before."""
    connection = connect(server)
    begun = time.monotonic()
    status, _, _ = ask(connection, f"/v1/state/small?filter=%40.n%3E-{number + 1}")
    connection.close()
    expect(status == 200, f"status {status}")
    return time.monotonic() - begun


def times(server, client, begin):
    found = []
    for number in range(begin, begin + 8):
        found += [wake(server, client, number), read(server, number)]
    return found


def open_stream(server, target):
    connection = socket.create_connection((HOST, server.port), source_address=(HOSTILE_HOST, 0))
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: {HOST}\r\nAccept: text/event-stream\r\n\r\n".encode())
    threading.Thread(target=drain, args=(connection,), daemon=True).start()
    return connection


def drain(connection):
    try:
        while connection.recv(1 << 20):
            pass
    except OSError:
        pass


def queries_on_an_array(server, stopped):
    return [
        open_stream(server, f"/v1/state/big?limit=1&count&filter=%40.n!%3D{number + 10}") for number in range(24)
    ]


def large_values(server, stopped):
    return [open_stream(server, f"/v1/state/big{'?pretty' * (number % 2)}") for number in range(4)]


def reads(server, stopped):
    def go_on(number):
        while not stopped.is_set():
            connection = connect(server, HOSTILE_HOST)
            try:
                ask(connection, f"/v1/state/big?limit=1&count&filter=%40.n!%3D{number}")
            except OSError:
                pass
            connection.close()
            number += 16

    for number in range(16):
        threading.Thread(target=go_on, args=(number + 100,), daemon=True).start()
    return []


@pytest.mark.alone
@pytest.mark.parametrize("attack", [queries_on_an_array, large_values, reads])
def test_the_slow_work_of_one_client_does_not_hold_that_of_another(workspace, figures, attack):
    server = workspace.server(domain="document", data="none", body_bytes_max=16 << 20)
    stopped = threading.Event()
    with server.client() as client:
        change(client, "/big", [{"n": 1}] * COUNT)
        change(client, "/small", [{"n": 1}, {"n": 2}])
        server.await_idle()
        quiet = times(server, client, 0)
        streams = attack(server, stopped)
        time.sleep(4)

        def disturb():
            with server.client() as other:
                number = 1
                while not stopped.wait(0.3):
                    number += 1
                    change(other, "/big/0/n", number)

        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            time.sleep(0.5)
            beside = times(server, client, 100)
        finally:
            stopped.set()
            thread.join()
            for stream in streams:
                stream.close()
    bound = max(BOUND, 5 * max(quiet))
    late = [round(each, 2) for each in beside if each > bound]
    expect(not late, f"{late} s; before {max(quiet):.3f} s")
    figures(f"at most {max(beside) * 1000:.0f} ms beside it, and {max(quiet) * 1000:.0f} ms before")
