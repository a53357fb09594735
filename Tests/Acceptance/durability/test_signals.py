"""Signals from the first moment of a start on, also to process 1, which gets none that it has no handler for."""

import json
import os
import shutil
import signal
import subprocess

import pytest

from harness.expectations import expect, expect_equal, wait_until


SIGNALS = {"TERM": signal.SIGTERM, "INT": signal.SIGINT, "HUP": signal.SIGHUP}


class Beginning:
    """A start that stands still before it reads anything, as process 1 of a namespace or as any other process."""

    def __init__(self, workspace, is_first):
        self.directory = os.path.join(workspace.directory, f"signals{workspace.count()}")
        os.mkdir(self.directory)
        self.log, port_file = (os.path.join(self.directory, name) for name in ("log", "port"))
        # Whoever opens a pipe for writing waits until another one reads it.
        self.trial = port_file + ".trial"
        os.mkfifo(self.trial)
        command = [workspace.binary, "serve", "--listen", "127.0.0.1:0", "--port-file", port_file]
        command += ["--data", os.path.join(self.directory, "data")]
        wrapper = ["unshare", "--pid", "--fork", "--kill-child"] if is_first else []
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([*wrapper, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        workspace.started.append(self.process)
        self.pid = self.process.pid
        if is_first:
            children = f"/proc/{self.pid}/task/{self.pid}/children"
            self.pid = int(wait_until(lambda: open(children).read(), "the child of unshare"))
        binary = os.path.realpath(workspace.binary)
        wait_until(lambda: os.readlink(f"/proc/{self.pid}/exe") == binary, "the program runs")
        wait_until(self.has_handlers, "the program has handlers")

    def has_handlers(self):
        with open(f"/proc/{self.pid}/status") as status:
            caught = int(status.read().split("SigCgt:")[1].split()[0], 16)
        return all(caught >> (number - 1) & 1 for number in SIGNALS.values())

    def go_on(self):
        os.close(os.open(self.trial, os.O_RDONLY))

    def messages(self):
        with open(self.log) as log:
            return [json.loads(line)["message"] for line in log if line.startswith("{")]


@pytest.mark.parametrize("is_first", [False, True], ids=["any process", "process 1"])
@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_at_the_first_moment_of_a_start_is_received(workspace, is_first, name):
    if is_first and (os.geteuid() != 0 or not shutil.which("unshare")):
        pytest.skip("a namespace of its own needs root and unshare")
    server = Beginning(workspace, is_first)

    os.kill(server.pid, SIGNALS[name])

    if name == "HUP":
        server.go_on()
        wait_until(lambda: "ready" in server.messages(), "the server is ready", 30)
        os.kill(server.pid, signal.SIGTERM)
    expect_equal(server.process.wait(30), 0, "the exit code")
    last = server.messages()[-1]
    ends = ["stopped"] if name == "HUP" else ["stopped before the server was ready"]
    expect(last in ends, "the last line of the log:", last)
