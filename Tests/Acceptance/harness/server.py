"""A server process on a free port."""

import json
import os
import signal
import subprocess
import time

from harness.client import Client
from harness.expectations import Failure, expect, shorten, wait_until
from harness.messages import HOST
from harness.metrics import series_of
from harness.programs import Restarting, environment


class Server(Restarting):
    """A storekeeper process on a free port: of the example domains, where the settings name no other."""

    def __init__(self, workspace, data, settings, prepare=None, address=HOST):
        if "model" not in settings:
            settings = {"domain": "showcase", **settings}
        # None leaves a setting out.
        settings = {name: value for name, value in settings.items() if value is not None}
        self.workspace, self.data, self.settings, self.prepare = workspace, data, settings, prepare
        self.address = address
        # Further arguments, and variables that are not settings.
        self.arguments, self.environment = [], {}
        self.process = None
        self.port = 0
        # The port to listen on; 0 for a free one each time.
        self.fixed_port = 0
        self.starts = 0

    def launch(self):
        """Starts the process without waiting for it."""
        self.starts += 1
        name = f"server{self.workspace.count()}"
        self.port_file = os.path.join(self.workspace.directory, name + ".port")
        self.log = os.path.join(self.workspace.directory, name + ".log")
        variables = environment(**self.settings) | self.environment
        journal = self.workspace.journal_of(self.data)
        tokens = os.path.join(self.data, "tokens.json")
        if journal != self.data and os.path.exists(tokens):
            variables.setdefault("STOREKEEPER_TOKENS", tokens)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [self.workspace.binary, "serve", "--listen", f"{self.address}:{self.fixed_port}", "--data", journal]
                + ["--port-file", self.port_file, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=variables,
                preexec_fn=self.prepare,
            )
        self.workspace.started.append(self.process)
        return self

    def start(self, seconds=30):
        self.launch()

        def is_ready():
            is_ready = self.ready()
            expect(is_ready or self.process.poll() is None, f"the server ended with {self.process.poll()}:", self.log_text())
            return is_ready

        wait_until(is_ready, lambda: f"the server is ready: {self.log_text()}", seconds, pause=0.005)
        return self

    def stand_still(self, seconds):
        """Stops the process for so many seconds."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def ready(self):
        """Whether the server has said where it listens."""
        if not os.path.exists(self.port_file):
            return False
        with open(self.port_file) as file:
            self.port = int(file.read())
        return True

    @property
    def pid(self):
        return self.process.pid

    def client(self, timeout=60):
        return Client(self.port, timeout)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds=20):
        """The exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"the server still runs {seconds} s later: {self.log_text()}") from None

    def stop(self):
        """Ends the server in good order."""
        self.terminate()
        code = self.wait()
        expect(code == 0, f"SIGTERM ended the server with exit code {code}:", self.log_text())

    def log_text(self):
        with open(self.log, errors="replace") as file:
            return shorten(file.read()[-2000:], 2000)

    def cpu_seconds(self):
        """User and system time of the process so far, to the nanosecond: /proc counts in hundredths of a second."""
        # As clock_getcpuclockid(3) makes it of a process ID.
        return time.clock_gettime(~self.pid << 3 | 2)

    def cpu_seconds_of(self, seconds):
        """How much time of a processor the process takes in so many seconds from now."""
        before = self.cpu_seconds()
        time.sleep(seconds)
        return self.cpu_seconds() - before

    def await_idle(self):
        wait_until(lambda: self.cpu_seconds_of(0.2) < 0.02, "the server is idle", 30)

    def memory_bytes(self):
        """The resident memory of the process."""
        return self._memory("VmRSS")

    def memory_peak_bytes(self):
        """The most resident memory that the process has had."""
        return self._memory("VmHWM")

    def _memory(self, name):
        with open(f"/proc/{self.pid}/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name + ":"))

    def descriptors(self):
        """How many file descriptors the process has open, but for the timers: libdispatch opens one for each clock that is
        in use, on a thread of its own and so at any time, and keeps it."""
        count = 0
        for entry in os.scandir(f"/proc/{self.pid}/fd"):
            try:
                count += os.readlink(entry.path) != "anon_inode:[timerfd]"
            except FileNotFoundError:
                pass  # It was closed behind the listing.
        return count

    def metric(self, client, name, **labels):
        """The sum of the metrics with this name and these labels."""
        name = f"storekeeper_{name}"
        found = [
            value
            for series, value in series_of(client.get("/metrics").body).items()
            if series.name == name and labels.items() <= dict(series.labels).items()
        ]
        if not found:
            raise Failure(f"/metrics has no {name} with {labels}")
        return sum(found)


def log_when_ready(server):
    """The log with everything that the server has said at its start: a thread of its own writes it."""
    wait_until(lambda: '"ready"' in server.log_text(), "the server is ready")
    return server.log_text()


def starts(server):
    """How often the process has said that it is ready."""
    with open(server.log, errors="replace") as file:
        return file.read().count('"message":"ready"')


def codes(answer):
    """Status and code of a problem."""
    return answer.status, answer.json.get("code")


def start_refusal(workspace, data, says, prepare=None, **settings):
    """Starts a server that must refuse, and returns what it says."""
    server = Server(workspace, data, settings, prepare).launch()
    code = server.wait(20)
    text = server.log_text()
    expect(code != 0, "it ended with exit code 0:", text)
    expect(code > 0, f"it was ended by signal {-code}:", text)
    expect(says in text, f"it ended with {code}, without a word about {says!r}:", text)
    expect("Fatal error" not in text, "it crashed:", text)
    return text


def shorten_line(text):
    line = text.strip().splitlines()[-1]
    try:
        return json.loads(line)["message"]
    except (ValueError, KeyError):
        return line[:160]
