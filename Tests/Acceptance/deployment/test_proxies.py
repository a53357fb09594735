"""The server behind nginx, HAProxy and Caddy, each with its file under config/proxies."""

import os
import socket
import statistics
import subprocess
import threading
import time

import pytest
from harness.actions import action, add
from harness.expectations import expect, expect_equal, wait_until
from harness.messages import HOST, encode_request
from harness.proxies import NAME, Proxy
from harness.streams import LINES, NothingCame
from harness.tokens import bearer, make_token
from harness.tools import need
from harness.waits import parked

# Far below any interval at which a proxy could flush its buffer, and far above what a busy machine needs.
EVENT_SECONDS_MAX = 0.05
BODY_BYTES_MAX = 8_388_608


def pass_on(server, stream, count=20):
    """How long each of so many commits takes from its request to the stream."""
    times = []
    with server.client() as client:
        for _ in range(count):
            begun = time.monotonic()
            version = client.commit(add(1))["version"]
            stream.until(lambda event, version=version: event.version == version, 5)
            times.append(time.monotonic() - begun)
    return times


@pytest.mark.prompt
@pytest.mark.parametrize(
    "target, form", [("/v1/state/counter", None), ("/v1/changes?since=now", LINES)], ids=["events", "lines"]
)
def test_an_event_comes_through_within_50_ms(proxy, server, target, form, figures):
    with proxy.stream(target, **({"form": form} if form else {})) as stream:
        times = pass_on(server, stream)
    expect(statistics.median(times) < EVENT_SECONDS_MAX, f"the median of {times}")
    figures(f"{1000 * statistics.median(times):.1f} ms (median), {1000 * max(times):.1f} ms at most")


def test_the_check_of_events_fails_behind_a_proxy_that_collects_them(places, server):
    need("nginx")
    collects = {"proxy_buffering off;": "proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;"}
    proxy = Proxy(places, "nginx", server.port, collects).start()

    with pytest.raises(NothingCame):
        proxy.stream("/v1/state/counter", seconds=1)

    proxy.end()


def test_an_event_comes_through_http_2_over_tls(proxy, server):
    command = proxy.curl("/v1/changes?since=now", "--http2", "--no-buffer", "-H", "Accept: text/event-stream", "-i")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as curl:
        try:
            lines = iter(curl.stdout.readline, b"")
            expect_equal(next(lines).split()[:2], [b"HTTP/2", b"200"], "the protocol and the status")
            next(line for line in lines if line.startswith(b"id: "))
            with server.client() as client:
                cursor = client.commit(add(1))["cursor"]
            begun = time.monotonic()
            next(line for line in lines if line == f"id: {cursor}\n".encode())
            # One event on a process's pipe; how fast events are is the matter of the test above.
            expect(time.monotonic() - begun < 1, "the event was late")
        finally:
            curl.terminate()


@pytest.mark.prompt
def test_each_of_100_streams_has_an_event_within_a_second(proxy, server, figures):
    streams = [proxy.stream("/v1/state/counter") for _ in range(100)]
    with server.client() as client:
        begun = time.monotonic()
        version = client.commit(add(1))["version"]
        for stream in streams:
            stream.until(lambda event: event.version == version, 5)
        seconds = time.monotonic() - begun
    for stream in streams:
        stream.close()
    expect(seconds < 1, f"the last event came after {seconds} s")
    figures(f"{1000 * seconds:.0f} ms to the last of 100")


def test_100_streams_share_one_http_2_connection(proxy, server):
    target = "/v1/state/counter?debounce=[1-100]"
    # A file for each stream: in one output the lines of two streams can be cut by each other.
    folder = server.workspace.path(f"streams{server.workspace.count()}")
    os.mkdir(folder)
    command = proxy.curl(target, "--http2", "--no-buffer", "-H", "Accept: text/event-stream", "--parallel")
    command += ["--parallel-max", "100", "--max-time", "20", "--output", f"{folder}/#1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with process as curl, server.client() as client:
        try:
            wait_until(lambda: server.metric(client, "streams") >= 100, "100 streams")
            line = f"id: {client.commit(add(1))['cursor']}\n"
            told = lambda: [name for name in os.listdir(folder) if line in open(f"{folder}/{name}").read()]
            wait_until(lambda: len(told()) == 100, "each stream has the event", 15)
            files = [os.readlink(f"/proc/{curl.pid}/fd/{number}") for number in os.listdir(f"/proc/{curl.pid}/fd")]
        finally:
            curl.terminate()
    # curl has a few sockets for itself.
    expect(sum(file.startswith("socket:") for file in files) < 10, "connections:", files)


def begin_wait(server, client, other):
    """Sends a request that waits, and returns when the server has parked it and nothing else."""
    parked(server, other, 0)
    tag = client.get("/v1/state/counter").fields["etag"]
    client.send(encode_request("GET", "/v1/state/counter?wait=25", fields={"If-None-Match": tag}, host=NAME))
    parked(server, other, 1)


def test_a_long_poll_is_woken(proxy, server):
    with proxy.client() as client, server.client() as other:
        begin_wait(server, client, other)
        begun = time.monotonic()
        version = other.commit(add(1))["version"]
        answer = client.receive()
    expect_equal((answer.status, answer.version), (200, version), "status and version")
    expect(time.monotonic() - begun < 1, "the answer was late")


def test_a_long_poll_without_a_change_ends_with_304_and_the_connection_goes_on(proxy):
    with proxy.client() as client:
        tag = client.get("/v1/state/counter").fields["etag"]
        answer = client.get("/v1/state/counter?wait=0.5", If_None_Match=tag)
        expect_equal((answer.status, answer.fields["etag"]), (304, tag), "status and tag")
        expect_equal(client.get("/v1/state/counter").status, 200, "the next answer")


def test_the_wait_of_a_client_that_leaves_ends_at_the_server(proxy, server):
    with server.client() as other:
        with proxy.client() as client:
            begin_wait(server, client, other)
        parked(server, other, 0)


def post_by_curl(proxy, body, *options):
    """The status and the body of the answer; curl sends so much only after `100 Continue`, unless it is told to."""
    command = proxy.curl("/v1/actions", "--http1.1", "-H", "Content-Type: application/json", *options)
    done = subprocess.run(
        [*command, "--data-binary", "@-", "-w", "\n%{http_code}"], input=body, capture_output=True, timeout=30
    )
    text, _, status = done.stdout.rpartition(b"\n")
    return int(status), text


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="declared"),
        pytest.param(["-H", "Transfer-Encoding: chunked"], id="chunked", marks=pytest.mark.chunks),
    ],
)
def test_a_body_above_the_limit_is_413_and_one_at_the_limit_reaches_the_server(proxy, options):
    for count, wanted, code in ((BODY_BYTES_MAX, 422, b"empty-batch"), (BODY_BYTES_MAX + 1, 413, b"body-too-large")):
        status, text = post_by_curl(proxy, b"[" + b" " * (count - 2) + b"]", *options)
        expect_equal((status, b'"code":"%s"' % code in text), (wanted, True), f"the answer to {count} bytes: {text}")


def test_a_head_as_long_as_the_server_takes_comes_through(proxy):
    with proxy.client() as client:
        expect_equal(client.get("/v1/state/counter", Cookie="c" * 6000).status, 200, "the status")


# In forms that a proxy and the server could take for different paths.
PRIVATE = (
    *("/metrics", "/livez", "/readyz", "/metrics?", "/metrics/", "/%6detrics", "/%6Detrics", "//metrics", "/./metrics"),
    *("/%2e/metrics", "/v1/../metrics", "/v1/%2e%2e/metrics", "/v1/..%2fmetrics", "/v1%2f../metrics"),
    *("/v1;/../metrics", "/V1/../metrics", "/metrics/../v1", "/metrics#/v1"),
    *(f"https://{NAME}/metrics", f"http://{NAME}/%6detrics"),
)


def test_probes_and_metrics_are_not_public(proxy):
    for target in PRIVATE:
        with proxy.client() as client:
            answer = client.get(target)
        expect(answer.status in (400, 404), target, answer)
        expect(b"storekeeper_" not in answer.body, target, answer)


class Recorder:
    """A server that records the heads of requests, and counts its connections."""

    def __init__(self, workspace):
        self.heads, self.connections_count = [], 0
        self.socket = socket.create_server((HOST, 0))
        self.port = self.socket.getsockname()[1]
        workspace.at_close.append(self.socket.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections_count += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        buffer = b""
        while data := self._receive(connection):
            buffer += data
            while b"\r\n\r\n" in buffer:
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                self.heads.append(head.decode().split("\r\n"))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")

    @staticmethod
    def _receive(connection):
        try:
            return connection.recv(1 << 16)
        except ConnectionResetError:  # how HAProxy ends an idle connection
            return b""


@pytest.fixture(scope="module")
def recorded(kind, places):
    """What a proxy sends to the server: a recorder, and the proxy in front of it."""
    recorder = Recorder(places)
    proxy = Proxy(places, kind, recorder.port).start()
    yield recorder, proxy
    proxy.end()


def test_the_server_gets_the_name_and_the_address_of_the_client_and_not_what_the_client_says_of_it(recorded):
    recorder, proxy = recorded
    forged = {"X-Forwarded-For": "192.0.2.6", "Forwarded": "for=192.0.2.7"}

    with proxy.client() as client:
        client.request("GET", "/v1/state/a%2Fb?wait=1&x=%20", fields=forged)

    first, *lines = recorder.heads[-1]
    fields = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    expect_equal(first, "GET /v1/state/a%2Fb?wait=1&x=%20 HTTP/1.1", "the request line")
    found = {name: [value for each, value in fields if each == name] for name in ("host", "x-forwarded-for")}
    expect_equal(found, {"host": [NAME], "x-forwarded-for": [HOST]}, f"the fields of {lines}")
    expect(not {"forwarded", "accept-encoding"} & {name for name, _ in fields}, "fields too many:", lines)


def test_each_client_behind_a_proxy_has_a_share_of_its_own(kind, places):
    trusting = places.known(trusted_proxies=HOST)
    server = places.server(data="none", allowed_hosts=NAME, access="open", waiters_per_client_max=1, **trusting)
    proxy = Proxy(places, kind, server.port).start()
    forged = {"X-Forwarded-For": "192.0.2.6", "Forwarded": "for=192.0.2.6"}

    with proxy.client(source="127.0.0.2") as one, proxy.client(source="127.0.0.3") as other, server.client() as watcher:
        begin_wait(server, one, watcher)
        tag_field = {"If-None-Match": other.get("/v1/state/counter").fields["etag"]}
        second = other.request("GET", "/v1/state/counter?wait=0.1", fields=tag_field)
        with proxy.client(source="127.0.0.2") as again:
            third = again.request("GET", "/v1/state/counter?wait=0.1", fields=tag_field | forged)
    proxy.end()
    server.stop()

    expect_equal((second.status, third.status), (304, 429), "the waits of another client, and of the first one again")


def test_a_server_behind_the_proxy_asks_for_the_token_of_the_guide(kind, places):
    data = places.path(f"guide-{kind}")
    token = make_token(places, data, "admin", "--all")
    server = places.server(data=data, allowed_hosts=NAME, trusted_proxies=HOST)
    proxy = Proxy(places, kind, server.port).start()

    with proxy.client() as client:
        statuses = [client.get("/v1").status, client.request("POST", "/v1/actions", add(1)).status]
        with_token = client.get("/v1", **bearer(token)).status
    proxy.end()
    server.stop()

    expect_equal((statuses, with_token), ([401, 401], 200), "the answers without and with the token")


def test_an_open_server_on_loopback_is_closed_behind_a_proxy_that_its_settings_do_not_name(kind, places):
    server = places.server(data="none")
    # The name of the server in place of the public one, as a proxy without `Host` of its own sends it.
    host = {
        "nginx": {"proxy_set_header Host $http_host;": "proxy_set_header Host localhost;"},
        "haproxy": {"http-request del-header Forwarded": "http-request set-header Host localhost"},
        "caddy": {"header_up -Forwarded": "header_up Host localhost"},
    }
    proxy = Proxy(places, kind, server.port, host[kind]).start()

    with proxy.client() as client:
        answer = client.get("/v1/state")
    with server.client() as client:
        direct = client.get("/v1/state").status
    proxy.end()
    server.stop()

    expect_equal((answer.status, direct), (401, 200), "the answers through the proxy and beside it")
    expect("token create" in answer.json["detail"] and "--open" in answer.json["detail"], "what to do:", answer)


def test_a_connection_to_the_server_serves_many_clients(recorded):
    recorder, proxy = recorded
    before = len(recorder.heads)
    for _ in range(20):
        with proxy.client() as client:
            expect_equal(client.get("/v1").status, 200, "the status")
    expect_equal(len(recorder.heads) - before, 20, "requests")
    # Each worker or thread of a proxy has connections of its own.
    expect(recorder.connections_count < 12, f"{recorder.connections_count} connections for 20 requests")


@pytest.mark.long_form
def test_the_longest_wait_and_a_silent_stream_outlast_the_time_limits(proxy, server, pytestconfig):
    """Seconds for CI; with --long a wait of 55 s, and a stream with nothing but heartbeats for longer than 75 s."""
    is_long = pytestconfig.getoption("--long")
    begun = time.monotonic()
    with proxy.stream("/v1/state/tasks") as stream, proxy.client(timeout=70) as client:
        stream.next()
        tag = client.get("/v1/state/tasks").fields["etag"]
        answer = client.get(f"/v1/state/tasks?wait={55 if is_long else 0.5}", If_None_Match=tag)
        expect_equal(answer.status, 304, "the status of a wait")
        expect(time.monotonic() - begun > (51 if is_long else 0.4), "the wait was short")
        expect_equal(stream.watch(30 if is_long else 0.1), [], "events")
        expect(not stream.has_ended, "the stream was ended")
        with server.client() as other:
            version = other.commit(action("tasks/add", {"id": int(1000 * begun), "title": "late"}))["version"]
        stream.until(lambda event: event.version == version, 5)
