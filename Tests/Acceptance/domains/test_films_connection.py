"""The connection to the films server: TLS, proxies, cancellation, a response whose body does not come, no libcurl."""

import os
import socket
import ssl
import subprocess
import threading
import time

import pytest

from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until
from harness.films_server import SECRET, Stub
from harness.messages import HOST
from harness.server import Server


class SecureStub(Stub):
    """A films server over TLS, with a self-signed certificate."""

    def __init__(self, workspace):
        super().__init__(workspace)
        key, certificate = workspace.path("key.pem"), workspace.path("certificate.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={HOST}"]
            + ["-addext", f"subjectAltName=IP:{HOST}", "-keyout", key, "-out", certificate],
            check=True,
            capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.address = self.address.replace("http:", "https:")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)


class WatchingStub(Stub):
    """A films server that does not answer whole, and notes when its client closes the connection."""

    def __init__(self, workspace):
        super().__init__(workspace)
        self.closed_at = None
        self.closed = threading.Event()

    def watch(self, handler):
        handler.connection.settimeout(60)
        if handler.connection.recv(1) == b"":
            self.closed_at = time.monotonic()
            self.closed.set()

    def fail_without_body(self, handler):
        handler.send_response(500)
        handler.send_header("Content-Length", str(len(SECRET)))
        handler.end_headers()
        self.is_over.wait(60)


def load_films(client):
    client.post(action("films/load"), Prefer="wait=20")
    return client.get("/v1/state/films").json


def test_films_do_not_come_from_a_server_whose_certificate_is_not_trusted(workspace):
    stub = SecureStub(workspace)
    stub.will(stub.good)
    server = workspace.server(films_base_url=stub.address, films_retries=0)
    with server.client() as client:
        films = load_films(client)
    expect_equal((films["phase"], films["films"]), ("failed", []), "phase and films")
    expect("connection" in films["reason"] and "certificate" in films["reason"], "the reason is another:", films)
    expect_equal(stub.count, 0, "requests")
    server.stop()


def test_films_are_fetched_without_the_proxy_of_the_environment(workspace, monkeypatch):
    with socket.create_server((HOST, 0)) as proxy:
        for name in ["http_proxy", "all_proxy", "ALL_PROXY"]:
            monkeypatch.setenv(name, f"http://{HOST}:{proxy.getsockname()[1]}")
        stub = Stub(workspace)
        stub.will(stub.good)
        server = workspace.server(films_base_url=stub.address, films_timeout_seconds=2, films_retries=0)
        with server.client() as client:
            films = load_films(client)
        expect_equal(films["phase"], "finished", f"phase of {films}")
        server.stop()


@pytest.mark.prompt
def test_a_cancelled_load_closes_its_connection_at_once(workspace):
    stub = WatchingStub(workspace)
    stub.will(stub.watch)
    server = workspace.server(films_base_url=stub.address, films_timeout_seconds=60)
    with server.client() as client:
        for _ in range(2):
            stub.closed.clear()
            count = stub.count
            client.commit(action("films/load"))
            wait_until(lambda: stub.count > count, "the films server is asked")
            # The timers of connecting are over by then: only the cancel itself wakes the transfer.
            time.sleep(0.4)
            start = time.monotonic()
            client.commit(action("films/cancel"))
            expect(stub.closed.wait(10), "the connection is open 10 s after a cancel")
            seconds = stub.closed_at - start
            expect(seconds < 0.3, f"the connection was open for {seconds:.3f} s after a cancel")
    server.stop()


def test_a_status_of_500_ends_a_load_before_its_body_has_come(workspace):
    stub = WatchingStub(workspace)
    stub.will(stub.fail_without_body)
    server = workspace.server(films_base_url=stub.address, films_timeout_seconds=60, films_retries=0)
    with server.client() as client:
        films = load_films(client)
    expect("status 500" in films.get("reason", ""), "the reason is another:", films)
    server.stop()


@pytest.mark.parametrize("kind", ["no library", "another library"])
def test_a_server_without_libcurl_serves_and_refuses_only_to_fetch_films(workspace, kind):
    folder = workspace.path("libraries")
    os.mkdir(folder)
    with open(f"{folder}/libcurl.so.4", "w"):
        pass
    if kind == "another library":
        os.remove(f"{folder}/libcurl.so.4")
        os.symlink(next(path for path in mapped(os.getpid()) if "/libm.so" in path), f"{folder}/libcurl.so.4")

    def server(**settings):
        made = Server(workspace, "none", settings)
        made.environment = {"LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
        return made

    without = server().start()
    with without.client() as client:
        films = load_films(client)
    refused = server(films_base_url="http://localhost:1").launch()

    expect_equal(films["phase"], "failed", f"phase of {films}")
    expect(not any("libcurl" in path for path in mapped(without.pid)), "libcurl is open")
    expect_equal(refused.wait(), 78, "the exit code of a server that fetches films")
    missing = "libcurl.so.4" if kind == "no library" else "curl_global_init"
    for words in ("films_base_url is set, and libcurl", missing, "install libcurl4"):
        expect(words in refused.log_text(), "the log has no", words, refused.log_text())
    without.stop()


def mapped(pid):
    """The paths of the files that a process has mapped."""
    with open(f"/proc/{pid}/maps") as file:
        return {line.split()[-1] for line in file if "/" in line}
