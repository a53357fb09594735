"""Listening sockets that a service manager has opened: sd_listen_fds(3), as config/systemd/storekeeper.socket has it."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess

import pytest
from harness.actions import add
from harness.client import Client, LocalClient
from harness.expectations import expect, expect_equal, wait_until
from harness.messages import HOST, encode_request
from harness.tools import CONFIG, need, run



def launch(workspace, sockets, place, prefix="LISTEN_PID=$$ LISTEN_FDS={count} ", data=None, **settings):
    """A server that finds these sockets from descriptor 3 on; returns the process and the path of its log."""
    number = workspace.count()
    log = workspace.path(f"log{number}")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("STOREKEEPER_")}
    environment |= {f"STOREKEEPER_{key.upper()}": str(value) for key, value in settings.items()}
    data = data or workspace.path(f"data{number}")
    words = [workspace.binary, "serve", "--domain", "showcase", "--listen", place, "--data", data]

    def inherit():
        for index, opened in enumerate(sockets):
            os.dup2(opened.fileno(), 3 + index)

    with open(log, "wb") as file:
        process = subprocess.Popen(
            ["sh", "-c", prefix.format(count=len(sockets)) + 'exec "$@"', "sh", *words],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=environment,
            preexec_fn=inherit,
            close_fds=False,
        )
    workspace.started.append(process)
    return process, log


def ready(process, log):
    """The fields of the line that says that the server is ready."""

    def line():
        expect(process.poll() is None, f"the server ended with {process.poll()}:", pathlib.Path(log).read_text())
        lines = [json.loads(line) for line in pathlib.Path(log).read_text().splitlines() if line.startswith("{")]
        return next((line for line in lines if line["message"] == "ready"), None)

    return wait_until(line, "the server is ready")


def stop(process):
    process.send_signal(signal.SIGTERM)
    expect_equal(process.wait(20), 0, "the exit code")


@pytest.mark.parametrize("loops", [1, 2])
def test_clients_connect_before_between_and_after_starts_of_the_server(workspace, loops):
    """No client is refused: the socket stays open, and a client that comes too early waits for the start."""
    data = workspace.path("data")
    with socket.create_server((HOST, 0), backlog=64) as opened:
        port = opened.getsockname()[1]
        for number in range(1, 4):
            with Client(port, 20) as early:
                early.send(encode_request("POST", "/v1/actions", add(1), {"Content-Type": "application/json"}))
                process, log = launch(workspace, [opened], f"{HOST}:{port}", data=data, loops=loops)
                expect_equal(early.receive().json["version"], number, "the version of a client that came early")
            expect_equal(ready(process, log)["port"], str(port), "the port in the log")
            with Client(port) as client:
                expect_equal(client.get("/v1/state/counter/value").json, number, "the value")
            stop(process)


def test_a_unix_socket_of_the_service_manager_keeps_its_file(workspace):
    path = workspace.path("a.sock")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(path)
        opened.listen(64)
        for _ in range(2):
            process, log = launch(workspace, [opened], f"unix:{path}", data="none")
            expect_equal(ready(process, log)["socket"], path, "the socket in the log")
            with LocalClient(path) as client:
                expect_equal(client.get("/v1/state/counter/value").status, 200, "the state")
            stop(process)
            expect(os.path.exists(path), "the server has removed the file of the service manager")


def test_both_places_take_their_sockets_in_any_order(workspace):
    path = workspace.path("a.sock")
    with socket.socket(socket.AF_UNIX) as local, socket.create_server((HOST, 0), backlog=64) as remote:
        local.bind(path)
        local.listen(64)
        port = remote.getsockname()[1]
        process, log = launch(
            workspace, [local, remote], f"{HOST}:{port}", data="none", listen_also=f"unix:{path}"
        )
        ready(process, log)
        with Client(port) as client, LocalClient(path) as other:
            expect_equal([client.get("/livez").status, other.get("/livez").status], [200, 200], "both places")
        stop(process)


@pytest.mark.parametrize(
    "prefix", ["", "LISTEN_PID=1 LISTEN_FDS=1 ", "LISTEN_PID=$$ LISTEN_FDS=0 ", "LISTEN_PID=$$ LISTEN_FDS=x "]
)
def test_the_sockets_of_another_process_are_not_taken(workspace, prefix):
    """The place is then in use, and the start is refused with a sentence."""
    with socket.create_server((HOST, 0), backlog=64) as opened:
        process, log = launch(workspace, [opened], f"{HOST}:{opened.getsockname()[1]}", prefix, data="none")
        expect_equal(process.wait(20), 1, "the exit code")
        expect("another process already does" in pathlib.Path(log).read_text(), "no sentence says why")


def test_a_socket_of_another_place_and_one_that_does_not_listen_are_not_taken(workspace):
    with socket.create_server((HOST, 0)) as other, socket.socket() as bound:
        bound.bind((HOST, 0))
        bound_port = bound.getsockname()[1]
        process, log = launch(workspace, [other, bound], f"{HOST}:0", data="none")
        port = int(ready(process, log)["port"])
        expect(port not in (other.getsockname()[1], bound_port), "the server has taken a socket of another place")
        with Client(port) as client:
            expect_equal(client.get("/livez").status, 200, "the server on its own socket")
        stop(process)


def test_systemd_starts_the_server_for_the_first_client(workspace):
    if not shutil.which("systemd-socket-activate"):
        pytest.skip("systemd-socket-activate is not installed")
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        ["systemd-socket-activate", "-l", f"{HOST}:{port}", workspace.binary, "serve", "--domain"]
        + ["showcase", "--listen", f"{HOST}:{port}", "--data", workspace.path("data")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    workspace.started.append(process)

    def answer():
        with Client(port, 20) as client:
            return client.get("/v1/state/counter/value")

    # At first systemd-socket-activate does not listen.
    expect_equal(wait_until(answer, "an answer", pause=0.05, past=Exception).json, 0, "the value")
    stop(process)


def test_systemd_understands_the_unit_of_the_socket(workspace):
    need("systemd-analyze")
    socket_text = (CONFIG / "systemd/storekeeper.socket").read_text()
    service_text = (CONFIG / "systemd/storekeeper.service").read_text()
    for name, text in [("storekeeper.socket", socket_text), ("storekeeper.service", service_text)]:
        pathlib.Path(workspace.path(name)).write_text(text.replace("/usr/bin/storekeeper", workspace.binary))
    settings = json.loads((CONFIG / "storekeeper.json").read_text())

    said = run("systemd-analyze", "verify", "--man=no", workspace.path("storekeeper.socket"))

    expect_equal(said, (0, ""), "what systemd says")
    expect(f"ListenStream={settings['listen']}\n" in socket_text, "the socket is of another place than the settings")
