"""A server on a Unix socket, alone and beside TCP."""

import json
import os
import signal
import stat
import subprocess

from harness.actions import add
from harness.client import LocalClient
from harness.expectations import expect, expect_equal, wait_until
from harness.server import Server


def curl(path, target, *arguments):
    """The status and the body of curl's answer."""
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--max-time", "20", "--write-out", "\n%{http_code}", "--unix-socket", path]
        + [*arguments, "http://any.example" + target],
        capture_output=True,
        text=True,
    )
    expect_equal(done.returncode, 0, f"the exit code of curl, which says {done.stderr}")
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


def launch(workspace, listen, **settings):
    """A process that listens on this place; the command line of the harness has another."""
    server = Server(workspace, "none", settings)
    server.arguments = ["--listen", listen]
    return server.launch()


def answers(server, path):
    wait_until(server.ready, "the server is ready")
    expect_equal(curl(path, "/readyz")[0], 200, "the status of a probe")


def test_curl_reads_dispatches_waits_and_streams_over_a_socket_that_only_its_user_may_open(workspace):
    path = workspace.path("http.sock")
    server = launch(workspace, f"unix:{path}", waiters_per_client_max=1)
    answers(server, path)

    expect_equal(stat.S_IMODE(os.lstat(path).st_mode), 0o600, "the permissions of the file")
    status, body = curl(path, "/v1/actions", "--json", add(2).decode())
    expect_equal((status, json.loads(body)["version"]), (200, 1), "a commit under a name that no setting allows")
    expect_equal(curl(path, "/v1/state/counter"), (200, '{"value":2}\n'), "the counter")
    status, body = curl(path, "/v1/state/counter?wait=0.2", "--header", 'If-None-Match: *')
    expect_equal(status, 304, "the status of a wait")
    stream = subprocess.Popen(
        ["curl", "--silent", "--no-buffer", "--unix-socket", path, "--header", "Accept: text/event-stream"]
        + ["http://localhost/v1/state/counter"],
        stdout=subprocess.PIPE,
    )
    workspace.started.append(stream)
    lines = [stream.stdout.readline() for _ in range(5)]
    expect(any(line.startswith(b"data: ") for line in lines), "the first event is not there:", lines)
    # The user is the client: the stream has the one place of a waiter.
    expect_equal(curl(path, "/v1/state/counter?wait=1&until=9")[0], 429, "the status of a second waiter of this user")
    stream.kill()
    stream.wait()
    health = subprocess.run([workspace.binary, "health", "--listen", f"unix:{path}"], capture_output=True, timeout=20)
    expect_equal((health.returncode, health.stdout), (0, b"ready\n"), f"what health says: {health.stderr}")
    expect_equal(open(server.port_file).read(), "0\n", "the port of a server without one")
    expect(f'"socket":"{path}"' in server.log_text(), "the line ready does not name the socket:", server.log_text())

    server.stop()
    expect(not os.path.exists(path), "the file is still there")
    health = subprocess.run([workspace.binary, "health", "--listen", f"unix:{path}"], capture_output=True, timeout=20)
    expect(health.returncode == 1 and path.encode() in health.stderr, "health without a server says", health.stderr)


def test_the_file_of_a_killed_server_is_replaced_and_that_of_a_live_one_refuses_the_start(workspace):
    path = workspace.path("http.sock")
    first = launch(workspace, f"unix:{path}")
    answers(first, path)

    second = launch(workspace, f"unix:{path}")
    expect_equal(second.wait(), 1, "the exit code of a second server")
    expect(path in second.log_text() and "another process" in second.log_text(), second.log_text())
    answers(first, path)
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    expect(os.path.exists(path), "NOT CHECKED: a killed server has removed its file")
    third = launch(workspace, f"unix:{path}", socket_mode="0660")
    answers(third, path)
    expect_equal(stat.S_IMODE(os.lstat(path).st_mode), 0o660, "the permissions of the new file")
    third.stop()


def test_a_port_and_a_socket_are_served_together_and_names_count_on_the_port_only(workspace):
    path = workspace.path("http.sock")
    server = workspace.server(data="none", listen_also=f"unix:{path}")

    # Heads and answers that are kept for one place are not those of the other.
    head = b"GET /v1/state/counter HTTP/1.1\r\nHost: any.example\r\n\r\n"
    with LocalClient(path) as local, server.client() as client:
        for _ in range(5):
            local.send(head)
            expect_equal(local.receive().status, 200, "the status of another name on the socket")
            client.send(head)
            expect_equal(client.receive().status, 421, "the status of another name on the port")
        expect_equal(client.commit(add(1))["version"], 1, "a commit by the port")
    expect_equal(curl(path, "/v1/state/counter"), (200, '{"value":1}\n'), "the counter by the socket")
    server.stop()
    expect(not os.path.exists(path), "the file is still there")


def test_a_socket_is_open_and_a_socket_beside_another_address_than_loopback_is_not(workspace):
    path = workspace.path("http.sock")
    server = workspace.server(data=workspace.path("data"), address="0.0.0.0", listen_also=f"unix:{path}")
    expect_equal(curl(path, "/v1")[0], 401, "the status without a token")
    server.stop()
    server = launch(workspace, f"unix:{path}", access="tokens", tokens=workspace.path("tokens.json"))
    answers(server, path)
    expect_equal(curl(path, "/v1")[0], 401, "the status without a token")
    line = next(line for line in open(server.log) if "Authorization: Bearer" in line)
    command = json.loads(line)["use"] if "use" in json.loads(line) else json.loads(line)["metadata"]["use"]
    done = subprocess.run(command + " --silent", shell=True, capture_output=True, timeout=20)
    expect(b'"epoch"' in done.stdout, f"{command} says", done.stdout, done.stderr)
    server.stop()
