"""nginx with the shipped file as a cache in front of the server: clients that wait for the same answer wait together."""

import json
import selectors
import time

import pytest
from harness.actions import add
from harness.expectations import expect, expect_equal, wait_until
from harness.messages import encode_request, parse_answer
from harness.proxies import NAME, Proxy
from harness.tools import need

STREAM = "/v1/streams/commits"


@pytest.fixture
def behind_nginx(workspace):
    need("nginx")
    server = workspace.server(data="none", allowed_hosts=NAME, access="open", wait_seconds_default=10)
    proxy = Proxy(workspace, "nginx", server.port).start()
    yield server, proxy
    proxy.end()


def answers(clients, seconds):
    """The answers of clients that wait, in the order in which they come."""
    selector = selectors.DefaultSelector()
    for client in clients:
        client.socket.setblocking(False)
        selector.register(client.socket, selectors.EVENT_READ, client)
    found, end = [], time.monotonic() + seconds
    while len(found) < len(clients):
        expect(time.monotonic() < end, f"only {len(found)} of {len(clients)} were answered within {seconds} s")
        for key, _ in selector.select(0.1):
            client = key.data
            try:
                client.buffer += client.socket.recv(1 << 16)
            except (BlockingIOError, OSError):
                continue
            parsed = parse_answer(client.buffer, "GET")
            if parsed:
                found.append(parsed[0])
                selector.unregister(client.socket)
    return found


def begin(proxy, target, count, **fields):
    clients = [proxy.client() for _ in range(count)]
    for client in clients:
        client.send(encode_request("GET", target, fields=fields, host=NAME))
    return clients


@pytest.mark.rounds(200, long=1000)
def test_many_long_polls_on_one_offset_reach_the_server_as_a_handful(behind_nginx, rounds, figures):
    server, proxy = behind_nginx
    with server.client() as client:
        client.commit(add(1))
        tail = client.get(f"{STREAM}?offset=now").fields["stream-next-offset"]
        clients = begin(proxy, f"{STREAM}?live=long-poll&offset={tail}", rounds)
        wait_until(lambda: server.metric(client, "waiters") >= 1, "a client waits")
        time.sleep(1)
        waiting = server.metric(client, "waiters")
        begun = time.monotonic()
        version = client.commit(add(5))["version"]
        found = answers(clients, 8)
        seconds = time.monotonic() - begun
        asked = server.metric(client, "waits_total")
    for answer in found:
        expect_equal(answer.status, 200, "the status")
        expect_equal([commit["version"] for commit in json.loads(answer.body)], [version], "the versions of an answer")
    expect(waiting <= 3 and asked <= 5, f"{waiting} clients wait at the server, which {asked} have asked")
    figures(f"{rounds} clients, {asked:.0f} requests at the server, all answered {seconds:.2f} s after the commit")


def test_nobody_is_given_a_stale_answer(behind_nginx):
    server, proxy = behind_nginx
    with server.client() as client, proxy.client() as reader:
        for number in range(1, 6):
            client.commit(add(1))
            for path in (f"{STREAM}?offset=-1", f"{STREAM}?offset=now", "/v1/streams/state?offset=-1"):
                answer = reader.get(path)
                expect_equal(answer.status, 200, f"the status of {path}")
                version = int(answer.fields["stream-next-offset"].split("_")[1], 16)
                expect_equal(version, number, f"the version that {path} reaches")
            head = reader.request("HEAD", STREAM)
            expect(head.fields["stream-next-offset"].endswith(f"{number:x}"), "HEAD names an old tail:", head.fields)


def test_a_whole_page_is_kept_and_its_client_goes_on(behind_nginx):
    server, proxy = behind_nginx
    with server.client() as client, proxy.client() as reader:
        lines = b"\n".join([add(1)] * 2500)
        client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
        start = client.get(f"{STREAM}?offset=now").fields["stream-next-offset"][:17] + "0" * 16
        for _ in range(2):
            versions, offset = [], start
            while True:
                answer = reader.get(f"{STREAM}?offset={offset}")
                versions += [commit["version"] for commit in json.loads(answer.body)]
                offset = answer.fields["stream-next-offset"]
                if "stream-up-to-date" in answer.fields:
                    break
                expect("immutable" in answer.fields["cache-control"], "a whole page may change:", answer.fields)
            expect_equal(versions, list(range(1, 2501)), "the versions through the cache")


def test_events_and_credentials_pass_the_cache(behind_nginx):
    server, proxy = behind_nginx
    with server.client() as client:
        tail = client.get(f"{STREAM}?offset=now").fields["stream-next-offset"]
        streams = begin(proxy, f"{STREAM}?offset={tail}&live=sse", 5)
        polls = begin(proxy, f"{STREAM}?live=long-poll&offset={tail}", 5, Authorization="Bearer whoever")
        wait_until(lambda: server.metric(client, "waiters") >= 10, "each of them waits at the server")
        client.commit(add(1))
        expect_equal({answer.status for answer in answers(polls, 5)}, {200}, "the statuses with a credential")
    for stream in streams:
        stream.close()
