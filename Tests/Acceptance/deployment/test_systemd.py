"""The unit of config/systemd: systemd itself reads and rates it."""

import os
import pathlib
import socket

import pytest
from harness.expectations import expect, expect_equal, wait_until
from harness.server import Server
from harness.tools import CONFIG, need, run

# In tenths, of 100: what is left are the network and the addresses, which a server needs.
EXPOSURE_MAX = 14


def write_unit(workspace, change=lambda text: text):
    """A copy of the unit that starts the binary of this test; systemd looks at the program, too."""
    text = (CONFIG / "systemd/storekeeper.service").read_text()
    expect_equal(text.count("ExecStart=/usr/bin/storekeeper "), 1, "the program of the unit")
    unit = pathlib.Path(workspace.path("storekeeper.service"))
    unit.write_text(change(text.replace("/usr/bin/storekeeper", workspace.binary)))
    return unit


def test_systemd_understands_each_line_of_the_unit(workspace):
    need("systemd-analyze")

    expect_equal(run("systemd-analyze", "verify", "--man=no", write_unit(workspace)), (0, ""), "what systemd says")


def test_a_misspelt_line_is_found(workspace):
    need("systemd-analyze")
    unit = write_unit(workspace, lambda text: text.replace("ProtectHome=", "ProtectHomes="))

    _, said = run("systemd-analyze", "verify", "--man=no", unit)

    expect("ProtectHomes" in said, said)


def test_the_service_is_exposed_as_little_as_a_server_can_be(workspace, figures):
    need("systemd-analyze")
    arguments = ("security", "--offline=true", f"--threshold={EXPOSURE_MAX}")

    code, said = run("systemd-analyze", *arguments, write_unit(workspace))
    open_code, _ = run(
        "systemd-analyze", *arguments, write_unit(workspace, lambda text: text.replace("ProtectSystem=strict", ""))
    )

    expect_equal(code, 0, f"the exit code of systemd-analyze security: {said[-300:]}")
    expect(open_code != 0, "a unit without ProtectSystem passes as well")
    figures(said.strip().splitlines()[-1])


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_the_service_manager_learns_when_the_server_serves_and_when_it_stops(workspace, kind):
    name = workspace.path("notify") if kind == "path" else f"@storekeeper-acceptance-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0"))
        manager.settimeout(20)
        server = Server(workspace, workspace.path("data"), {})
        server.environment = {"NOTIFY_SOCKET": name}
        server.launch()

        expect_equal(manager.recv(100), b"READY=1", "the first notification")
        expect(server.ready(), "the server was not ready")
        with server.client() as client:
            expect_equal(client.get("/readyz").status, 200, "the status of a probe at once")
        server.terminate()
        expect_equal(manager.recv(100), b"STOPPING=1", "the second notification")
        expect_equal(server.wait(), 0, "the exit code")
        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.recv(100)


def test_a_service_manager_that_is_not_there_does_not_keep_the_server_from_serving(workspace):
    server = Server(workspace, "none", {})
    server.environment = {"NOTIFY_SOCKET": workspace.path("nothing")}
    server.start()
    wait_until(lambda: "service manager not notified" in server.log_text(), "a word in the log")
    server.stop()


def test_the_unit_waits_for_ready_and_does_not_start_again_where_that_is_in_vain():
    lines = (CONFIG / "systemd/storekeeper.service").read_text().splitlines()

    expect("Type=notify" in lines and "NotifyAccess=main" in lines, "the type of the service is not notify")
    expect("RestartPreventExitStatus=64 65 78" in lines, "the exit codes after which a start is in vain are others")
    # Not 75: with that a model ends the server that it does not let go.
    expect("SuccessExitStatus=70" in lines, "the exit codes of a stop are others")
