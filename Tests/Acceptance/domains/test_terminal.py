"""The program at a terminal: what it serves without an option, what it says, and a model that is loaded when it is saved."""

import os
import pty
import select
import signal
import subprocess

import pytest

from harness.expectations import expect, expect_equal, wait_until

MODEL = """import { createSlice } from '@reduxjs/toolkit'
export default createSlice({
  name: 'counter', initialState: { value: 0 },
  reducers: { add(state) { state.value += 1 } },
})
"""


class Terminal:
    """A program whose standard error is a terminal."""

    def __init__(self, workspace, *arguments):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("STOREKEEPER_")}
        self.master, slave = pty.openpty()
        self.port_file = workspace.path("port")
        self.process = subprocess.Popen(
            [workspace.binary, "--listen", "127.0.0.1:0", "--port-file", self.port_file, *arguments],
            cwd=workspace.directory, env=environment, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
        )
        os.close(slave)
        workspace.started.append(self.process)
        self.text = ""

    def until(self, said, seconds=20):
        """What the program has said when it says this."""

        def is_said():
            if said not in self.text and select.select([self.master], [], [], 0.1)[0]:
                self.text += os.read(self.master, 65536).decode().replace("\r\n", "\n")
            return said in self.text

        wait_until(is_said, lambda: f"it says {said!r}: {self.text}", seconds)
        return self.text

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        expect_equal(self.process.wait(20), 0, "the exit code")
        os.close(self.master)


def test_five_lines_say_how_to_begin_and_their_commands_work(workspace):
    terminal = Terminal(workspace)
    terminal.until("  Access ")
    lines = {line.split()[0]: line[10:] for line in terminal.text.splitlines() if line.startswith("  ")}
    expect_equal(list(lines), ["Serves", "Page", "Read", "Write", "Access"], terminal.text)
    expect_equal(lines["Serves"], "one JSON document, with its journal in ./data", "what it serves")
    for command, printed in [("Read", "{}\n"), ("Write", '"version":1'), ("Read", '{"hello":"world"}\n')]:
        found = subprocess.run(["bash", "-c", lines[command]], capture_output=True, text=True, timeout=20).stdout
        expect(printed in found, f"{lines[command]} prints", found)
    page = subprocess.run(["curl", "-sH", "Accept: text/html", lines["Page"]], capture_output=True, text=True, timeout=20).stdout
    expect("<!doctype html>" in page.lower(), page[:200])
    terminal.stop()
    expect(os.path.isdir(workspace.path("data")), "there is no journal in ./data")


@pytest.mark.parametrize("options, says", [
    (["--data", "none", "--domain", "counter"], "Serves  counter, in memory only"),
    (["--data", "none", "--listen", "unix:{}"], "Read    curl --unix-socket {} localhost/v1/state"),
])
def test_the_lines_name_the_domain_and_the_socket(workspace, options, says):
    path = workspace.path("s")
    terminal = Terminal(workspace, *[option.format(path) for option in options])
    terminal.until(says.format(path))
    terminal.stop()


def test_a_model_is_loaded_when_it_is_saved_and_its_fault_is_shown(workspace):
    path = workspace.path("things.js")

    def save(text):
        """As an editor does: another file under the name."""
        with open(path + "~", "w") as file:
            file.write(text)
        os.rename(path + "~", path)

    save(MODEL)
    terminal = Terminal(workspace, "--data", "none", "--model", path, "--watch")
    terminal.until("  Access ")
    save(MODEL.replace("+= 1", "+= one"))
    terminal.until("model loaded again")
    save(MODEL.replace("state.value += 1", "state.value =+ ;"))
    terminal.until("things.js:4")
    said = terminal.until("the old one goes on")
    expect("\n      reducers: { add(state) { state.value =+ ; } }" in terminal.until("=+ ; } },\n"), said)
    terminal.stop()


def test_watch_needs_a_file(workspace):
    terminal = Terminal(workspace, "--data", "none", "--watch")
    terminal.until("--watch needs a model or a schema")
    expect_equal(terminal.process.wait(20), 1, "the exit code")
