#!/usr/bin/env python3
"""A program with StateClient that follows the inventory and takes goods in, while the server is killed and started again: each
commit comes once and in order, each action commits once, the last total comes. A revoked token ends it with a problem.

Usage: python3 Tests/Adopter/follow.py FOLDER_OF_THE_PROGRAMS [--long]
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Acceptance"))

from harness.expectations import wait_until  # noqa: E402
from harness.programs import Restarting, free_port  # noqa: E402
from harness.tokens import read_tokens  # noqa: E402

PROGRAMS = pathlib.Path(sys.argv[1])
LONG = "--long" in sys.argv
COMMITS, KILLS = (10_000, 20) if LONG else (1_000, 4)


class Server(Restarting):
    """The inventory on a data directory and a port of its own, which it keeps when it is started again."""

    def __init__(self, data):
        self.data, self.port = data, free_port()
        self.start()

    def start(self):
        environment = dict(os.environ, STOREKEEPER_LISTEN=f"127.0.0.1:{self.port}", STOREKEEPER_DATA=self.data)
        self.process = subprocess.Popen(
            [PROGRAMS / "inventory-server"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(lambda: self.version() is not None, "the server is there", 30)

    def version(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1", timeout=5) as answer:
                return json.load(answer)["version"]
        except urllib.error.HTTPError:
            return 0
        except OSError:
            assert self.process.poll() is None, self.process.returncode
            return None

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(15) == 0, self.process.returncode


class Follower:
    """The program, and the lines that it has printed."""

    def __init__(self, server, count, *token):
        self.output = tempfile.NamedTemporaryFile()
        self.process = subprocess.Popen(
            [PROGRAMS / "inventory-follower", f"http://127.0.0.1:{server.port}", str(count), *token], stdout=self.output
        )

    def said(self, word):
        # To read from the file that the program writes to would move the place where it writes.
        lines = [line.split() for line in pathlib.Path(self.output.name).read_text().split("\n")[:-1]]
        return [line[1:] for line in lines if line[0] == word]


def through_kills(data):
    server = Server(data)
    follower = Follower(server, COMMITS)
    try:
        for kill in range(1, KILLS + 1):
            wait_until(lambda: server.version() >= kill * COMMITS // (KILLS + 1), "the writers go on", 60)
            server.restart(down=0.1 * (kill % 3))
        assert follower.process.wait(120) == 0, follower.said("problem")
        commits, receipts, totals = follower.said("commit"), follower.said("receipt"), follower.said("total")
        assert [int(version) for version, *_ in commits] == list(range(1, COMMITS + 1)), "the versions that it has seen"
        assert all(identifier.startswith(item + "-") for _, identifier, item in commits), "the actions"
        assert sorted(receipts) == sorted([version, identifier] for version, identifier, _ in commits), "the receipts"
        assert len({identifier for _, identifier in receipts}) == COMMITS, "an action is there twice"
        assert server.version() == COMMITS, server.version()
        totals = [int(total) for total, in totals]
        assert totals == sorted(set(totals)) and totals[-1] == COMMITS, totals
        waits = len(follower.said("waits"))
        assert waits >= KILLS, f"only {waits} requests had no answer in {KILLS} kills"
        print(f"{COMMITS} commits once each, {waits} requests without an answer in {KILLS} kills, {len(totals)} totals")
        server.stop()
    finally:
        follower.process.kill()
        server.kill()


def through_a_standstill(data):
    """A server that takes requests and answers none: an action is sent again after 20 s, and commits once."""
    server = Server(data)
    follower = Follower(server, 5_000)
    try:
        wait_until(lambda: len(follower.said("receipt")) > 100, "the writers go on", 30)
        server.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: follower.said("waits"), "an action is sent again", 25)
        server.process.send_signal(signal.SIGCONT)
        assert follower.process.wait(120) == 0, follower.said("problem")
        assert [int(version) for version, *_ in follower.said("commit")] == list(range(1, 5_001))
        server.stop()
    finally:
        follower.process.kill()
        server.kill()


def token(*arguments):
    done = subprocess.run(
        [PROGRAMS / "inventory-server", "token", *arguments], capture_output=True, text=True, timeout=20, check=True
    )
    return done.stdout.strip()


def until_revoked(data):
    mine = token("create", "--subject", "follower", "--all", "--data", data)
    server = Server(data)
    # It waits for one commit more than there is to be.
    follower = Follower(server, 3, mine)
    try:
        wait_until(lambda: len(follower.said("commit")) == 2, "the follower waits", 30)
        [name] = [each["id"] for each in read_tokens(data)]
        token("revoke", name, "--data", data)
        assert follower.process.wait(10) == 1
        assert follower.said("problem") == [["401", "unauthorized"]], follower.said("problem")
        server.stop()
    finally:
        follower.process.kill()
        server.kill()


def links(program):
    return subprocess.run(["ldd", PROGRAMS / program], capture_output=True, text=True, check=True).stdout


def main():
    with tempfile.TemporaryDirectory() as data:
        through_kills(data)
    with tempfile.TemporaryDirectory() as data:
        until_revoked(data)
    # What the server needs, a client does not.
    for library in ("libmicrohttpd", "libsqlite3"):
        assert library in links("inventory-server") and library not in links("inventory-follower"), library
    if LONG:
        with tempfile.TemporaryDirectory() as data:
            through_a_standstill(data)
    print(f"a process that follows: {4 if LONG else 3} passed, 0 failed")


main()
