"""Queries that are meant to cost much time or memory, beside a client of another address that asks for little."""

import json
import selectors
import socket
import threading
import time
import urllib.parse

import pytest
from harness.actions import action
from harness.client import Client
from harness.expectations import expect, expect_equal
from harness.messages import HOST, encode_request
from harness.quiet import HOSTILE_HOST, PERIOD, PERIOD_SHORT_FORM, Line, get
from harness.siege import SECONDS_BOUND, SECONDS_BOUND_SHORT, judge_siege, reset_peak, siege
from harness.streams import EVENTS

MEBIBYTE = 1 << 20
SORTED = ",".join(f"/k{number}" for number in range(16))


def target(place, **parameters):
    return f"/v1/state{place}?" + urllib.parse.urlencode(parameters, safe="@|")


def numbers(count):
    return b"[" + b",".join([b"0"] * count) + b"]"


def put(client, path, value):
    body = b'{"type":"document/set","payload":{"path":%s,"value":%s}}' % (json.dumps(path).encode(), value)
    expect_equal(client.post(body).status, 200, f"the set of {path}")


def patterned(count):
    """Members with a pattern each that takes some milliseconds to compile."""
    return json.dumps({str(number): {"t": "a", "p": "[\\p{L}%d]{15}" % number} for number in range(count)}).encode()


def named(count):
    """One member that has many."""
    return b'[{' + b",".join(b'"m%d":0' % number for number in range(count)) + b"}]"


# What lies at the place, the query, and how much processor time it may take with the encoding of what lies there.
COSTLY = {
    "patterns in the data": (lambda: patterned(1200), {"filter": "match(@.t,@.p)", "limit": 0}),
    "a long pattern in the data": (
        lambda: json.dumps({str(number): {"t": "a", "p": "\\p{L}" * 5000} for number in range(100)}).encode(),
        {"filter": "match(@.t,@.p)", "limit": 0},
    ),
    "many names among many members": (
        lambda: named(400_000),
        {"filter": "||".join(f"@.n{number:x}" for number in range(900)), "limit": 0},
    ),
    "a sort by many pointers": (lambda: numbers(1_000_000), {"sort": SORTED, "limit": 1}),
}


@pytest.mark.alone
@pytest.mark.parametrize("kind", COSTLY)
def test_a_query_takes_two_seconds_of_a_processor_at_most_and_ends_with_its_client(workspace, kind):
    value, parameters = COSTLY[kind]
    server = workspace.server(domain="document", data="none")
    with server.client() as client, Client(server.port, source=HOSTILE_HOST) as hostile:
        put(client, "/p", value())
        put(client, "/small", b'{"x":{"n":1}}')
        server.await_idle()
        begun = server.cpu_seconds()
        answer = hostile.get(target("/p", **parameters))
        seconds = server.cpu_seconds() - begun
        expect(answer.status == 200 or answer.json["code"] == "query-too-costly", f"{answer.status}: {answer.body[:200]}")
        expect(seconds < 3.5, f"the query has taken {seconds:.1f} s of a processor")

        begun = server.cpu_seconds()
        for offset in range(6):
            with socket.create_connection((HOST, server.port), 5, (HOSTILE_HOST, 0)) as gone:
                gone.sendall(encode_request("GET", target("/p", **{**parameters, "offset": offset})))
        answer = client.get(target("/small", filter="@.n == 1"))
        expect_equal(len(answer.json["members"]), 1, "the members of a small query")
        time.sleep(2)
        seconds = server.cpu_seconds() - begun
        expect(seconds < 3, f"six queries of clients that have gone have taken {seconds:.1f} s of a processor")


def test_a_client_that_has_only_finished_sending_gets_its_answer(workspace):
    server = workspace.server(domain="document", data="none")
    with server.client() as client:
        put(client, "/p", b"[" + b",".join(b'{"n":%d}' % number for number in range(20_000)) + b"]")
        with Client(server.port) as half:
            half.send(encode_request("GET", target("/p", filter="@.n > 10", limit=1, count="")))
            half.socket.shutdown(socket.SHUT_WR)
            answer = half.receive()
            expect_equal((answer.status, answer.json["count"]), (200, 19_989), "the answer")


@pytest.mark.alone
def test_a_sort_keeps_the_members_of_its_window(workspace):
    server = workspace.server(domain="document", data="none", memory_bytes_max=160 * MEBIBYTE)
    with server.client() as client:
        put(client, "/p", numbers(800_000))
        time.sleep(1)
        client.get(target("/p", sort="/a", limit=1))
        reset_peak(server)
        before = server.memory_bytes()
        answer = client.get(target("/p", sort=SORTED, limit=1))
        expect(answer.status == 200 or answer.json["code"] == "query-too-costly", f"{answer.status}")
        grown = server.memory_peak_bytes() - before
        expect(grown < 64 * MEBIBYTE, f"a sort of 800,000 members takes {grown / MEBIBYTE:.0f} MiB")
        answer = client.get(target("/p", sort="/a,/b,/c,/d", limit=1, offset=700_000))
        expect_equal((answer.status, answer.json["code"]), (429, "too-many-bytes"), "a window far behind")


def streams_of(place, count, reads, parameters):
    """An attack: streams that are all different, of a place of which a member changes each second."""

    def attack(port, ends):
        selector, statuses = selectors.DefaultSelector(), {}
        for number in range(count):
            connection = socket.create_connection((HOST, port), 10, (HOSTILE_HOST, 0))
            if not reads:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(encode_request("GET", place + parameters(number), fields={"Accept": EVENTS}))
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ)
        changed, version = time.monotonic(), 0
        with Client(port, source=HOSTILE_HOST) as client:
            while not ends():
                for key, _ in selector.select(0.05) if reads else []:
                    try:
                        received = key.fileobj.recv(1 << 20)
                    except OSError:
                        received = b""
                    statuses.setdefault(key.fileobj, received[9:12])
                    if not received:
                        selector.unregister(key.fileobj)
                if not reads:
                    time.sleep(0.05)
                if time.monotonic() - changed > 1:
                    changed, version = time.monotonic(), version + 1
                    client.post(action("document/set", {"path": "/big/5/v", "value": "z" * 7000 + str(version)}))
        found = list(statuses.values())
        return f"statuses {({str(status): found.count(status) for status in set(found)})}"

    return attack


@pytest.mark.alone
@pytest.mark.long_form
@pytest.mark.parametrize("reads", [True, False], ids=["read", "unread"])
def test_streams_of_many_queries_on_a_large_state_stay_within_the_memory(workspace, figures, request, reads):
    server = workspace.server(domain="document", data="none", memory_bytes_max=160 * MEBIBYTE)
    with server.client() as client:
        put(client, "/big", json.dumps({str(number): {"v": "y" * 7000} for number in range(1000)}).encode())
        put(client, "/n", b"0")
    is_long = request.config.getoption("--long")
    period = PERIOD if is_long else PERIOD_SHORT_FORM
    lines = [
        Line("POST", encode_request("POST", "/v1/actions", action("document/increment", {"path": "/n"})), period=period),
        get("GET", "/v1/state/n", period=period),
    ]
    attack = streams_of(
        "/v1/state/big", 256, reads, lambda number: f"?limit=1000&filter=%40!={number}"
    )
    figures(
        judge_siege(
            siege(
                workspace, server, attack, 20 if is_long else 12, lines, memory_bytes_max=160 * MEBIBYTE,
                seconds_bound=SECONDS_BOUND if is_long else SECONDS_BOUND_SHORT,
            )
        )
    )


MODEL = """
const big = createSlice({ name: 'big', initialState: { n: 0 }, reducers: { inc(state) { state.n++; } } });
view('copies', (state, { by }) => ('x'.repeat(3000000) + by + ':' + state.big.n), {
  reads: ['big'], parameters: { type: 'object', properties: { by: { type: 'integer' } }, required: ['by'] } });
"""


@pytest.mark.alone
@pytest.mark.long_form
def test_streams_of_many_large_views_stay_within_the_memory(workspace, figures, request):
    path = workspace.path("model.js")
    with open(path, "w") as file:
        file.write(MODEL)
    server = workspace.server(model=path, data="none", memory_bytes_max=160 * MEBIBYTE)
    is_long = request.config.getoption("--long")
    lines = [get("GET", "/v1/state/big", period=PERIOD if is_long else PERIOD_SHORT_FORM)]
    attack = streams_of("/v1/views/copies", 128, True, lambda number: f"?by={number}")
    figures(
        judge_siege(
            siege(
                workspace, server, attack, 20 if is_long else 12, lines, memory_bytes_max=160 * MEBIBYTE,
                seconds_bound=SECONDS_BOUND if is_long else SECONDS_BOUND_SHORT,
            )
        )
    )


@pytest.mark.alone
def test_patterns_in_the_data_hold_no_other_wait(workspace):
    server = workspace.server(domain="document", data="none")
    stop = threading.Event()
    with server.client() as client:
        put(client, "/p", patterned(3))
        put(client, "/w", b"0")

        def wake(value):
            """How long after a commit of /w a wait for it ends."""
            with server.client() as waiting:
                tag = waiting.get("/v1/state/w").fields["etag"]
                waiting.send(encode_request("GET", "/v1/state/w?wait=30", fields={"If-None-Match": tag}))
                time.sleep(0.15)
                begun = time.monotonic()
                put(client, "/w", str(value).encode())
                waiting.receive()
                return time.monotonic() - begun

        quiet = max(wake(number) for number in range(1, 5))
        streams = []
        for number in range(60):
            stream = socket.create_connection((HOST, server.port), 5, (HOSTILE_HOST, 0))
            filter_text = f"match(@.t,@.p) && @.x != {number}"
            stream.sendall(
                encode_request("GET", target("/p", limit=0, count="", filter=filter_text), fields={"Accept": EVENTS})
            )
            streams.append(stream)
        time.sleep(2)

        def change():
            with Client(server.port, source=HOSTILE_HOST) as hostile:
                for number in range(1000):
                    if stop.wait(0.3):
                        return
                    # About a kilobyte, and another one each time.
                    pattern = "\\p{L}" * 150 + str(number)
                    hostile.post(action("document/set", {"path": "/p/0", "value": {"t": "a", "p": pattern}}))

        thread = threading.Thread(target=change)
        thread.start()
        try:
            time.sleep(1)
            taken = max(wake(number) for number in range(11, 17))
        finally:
            stop.set()
            thread.join()
            for stream in streams:
                stream.close()
        expect(taken < max(0.3, 5 * quiet), f"a wait of another client wakes {taken:.2f} s late, {quiet:.3f} s before")
