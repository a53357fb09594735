"""The Debian package on a Debian 12 that systemd has booted: when systemd starts the server again, and what is in the journal.

Only with --long: it installs systemd and the engine of a model, and needs root, systemd-nspawn and a mirror of Debian.
"""

import json
import pathlib
import shutil
import subprocess

import pytest
from harness.actions import action
from harness.client import Client, ConnectionLost
from harness.etcd import free_ports
from harness.expectations import expect, expect_equal, wait_until
from harness.roots import Root
from harness.server import codes
from harness.tools import made, need, run

HOSTILE = pathlib.Path(__file__).parents[1] / "models/hostile.js"


class Booted:
    """A system whose systemd runs the service of the package."""

    def __init__(self, root, settings):
        self.root, self.log = root, open(root.folder / "nspawn.log", "w+")
        path = root.folder / "etc/storekeeper/storekeeper.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | settings))
        command = ["systemd-nspawn", f"--directory={root.folder}", "--register=no", "--keep-unit", "--console=pipe", "--boot"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def wait(self):
        """Waits until the service takes requests."""
        wait_until(lambda: self.run("systemctl", "is-active", "storekeeper")[1] == "active\n", "the service", seconds=60)

    def run(self, *command):
        """Runs a program inside, and returns its exit code and what it prints."""
        leader = run("pgrep", "--parent", str(self.process.pid))[1].strip()
        return run("nsenter", "--mount", "--pid", "--uts", "--ipc", f"--target={leader}", *command) if leader else (1, "")

    def lines(self):
        """What the server has written to the journal."""
        return self.run("journalctl", "--identifier=storekeeper", "--output=cat", "--no-pager")[1].splitlines()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


@pytest.fixture
def port():
    return free_ports(1)[0]


@pytest.fixture
def booted(port):
    need("systemd-nspawn")
    root = Root("bookworm")
    try:
        shutil.copy(made("storekeeper_*_amd64.deb"), root.folder / "storekeeper.deb")
        root.run("apt-get", "update", "-q")
        packages = ("systemd-sysv", "libjavascriptcoregtk-4.1-0", "/storekeeper.deb")
        root.run("apt-get", "install", "-y", "-q", "--no-install-recommends", *packages)
        shutil.copy(HOSTILE, root.folder / "etc/storekeeper/model.js")
        (root.folder / "etc/storekeeper/model.js").chmod(0o644)
        booted = Booted(root, {"listen": f"127.0.0.1:{port}", "model": "/etc/storekeeper/model.js"})
        try:
            booted.wait()
            yield booted
        finally:
            booted.stop()
    finally:
        root.remove()


# It installs systemd and the engine of a model.
@pytest.mark.long_form(only=True)
def test_systemd_starts_a_server_again_that_its_model_or_a_signal_has_ended(booted, port):
    def answer(kind):
        return Client(port).post(action(kind))

    def restarts():
        return int(booted.run("systemctl", "show", "--property=NRestarts", "--value", "storekeeper")[1])

    for count in (1, 2):
        with pytest.raises(ConnectionLost):
            answer("evil/uninterruptible")
        wait_until(lambda: restarts() == count, "systemd starts the server again", seconds=20)
        booted.wait()
    expect_equal(codes(answer("evil/uninterruptible")), (422, "action-quarantined"), "the answer after two ends")
    expect_equal(answer("good/add").status, 200, "the status of an action of another slice")

    booted.run("systemctl", "kill", "--signal=KILL", "storekeeper")
    wait_until(lambda: restarts() == 3, "systemd starts the server again", seconds=20)
    booted.wait()
    expect_equal(Client(port).get("/v1/state/good/n").json, 1, "what was acknowledged")

    booted.run("systemctl", "stop", "storekeeper")
    expect_equal(booted.run("systemctl", "show", "--property=Result", "--value", "storekeeper"), (0, "success\n"), "the stop")
    lines = booted.lines()
    expect(len(lines) > 10, "the server has written no log", lines)
    expect_equal([line for line in lines if not line.startswith('{"')], [], "lines that are no JSON")
