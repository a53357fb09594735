"""The programs of a page as processes."""

import json
import os
import random
import signal
import socket
import subprocess
import time

# Where the programs of the pages look for the server.
HERE = "localhost:8080"


def environment(**settings):
    """The variables of a program: those of this process, with no settings but these."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("STOREKEEPER_")}
    return plain | {f"STOREKEEPER_{name.upper()}": str(value) for name, value in settings.items()}


def storekeeper(workspace, *words, **settings):
    """Runs a command of the program to its end."""
    return subprocess.run(
        [workspace.binary, *words], capture_output=True, text=True, timeout=60, env=environment(**settings)
    )


def free_port():
    """A port on which the server can listen again and again: below those that a system gives to clients."""
    while True:
        port = random.randint(20_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def free_ports(count):
    ports = set()
    while len(ports) < count:
        ports.add(free_port())
    return list(ports)


class Restarting:
    """A process that can be killed and started."""

    def kill(self, after=0.0):
        """Kills it after so many seconds."""
        time.sleep(after)
        self.process.kill()
        self.process.wait()

    def restart(self, after=0.0, down=0.0, by=None):
        """Kills it after so many seconds, or ends it by another function, and starts it so many seconds later."""
        by() if by else self.kill(after)
        time.sleep(down)
        return self.start()


class Program:
    """A loop as a process, which prints to a file in a directory of its own."""

    def __init__(self, workspace, command, directory):
        self.command, self.directory = command, directory
        self.output = os.path.join(directory, "output")
        workspace.at_close.append(self.end)
        self.start()

    def start(self):
        with open(self.output, "ab") as output, open(os.path.join(self.directory, "errors"), "ab") as errors:
            self.process = subprocess.Popen(
                self.command, cwd=self.directory, stdout=output, stderr=errors, start_new_session=True
            )

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def start_again(self):
        """Ends the process in the midst of what it does, and starts another one in the same directory."""
        self.end()
        self.start()

    def errors(self):
        with open(os.path.join(self.directory, "errors"), errors="replace") as file:
            return file.read()[-2000:]

    def printed(self):
        """The lines of JSON that are there whole."""
        with open(self.output) as file:
            return [json.loads(line) for line in file.read().split("\n")[:-1] if line]
