#!/usr/bin/env python3
"""A reducer that traps, a client that retries for ever, a supervisor that starts the server again: two crashes, then service.

Usage: python3 Tests/Adopter/poison.py PATH_TO_INVENTORY_SERVER PATH_TO_STOREKEEPER
"""

import http.client
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Acceptance"))

from harness.expectations import expect, wait_until  # noqa: E402
from harness.programs import Restarting  # noqa: E402

BOMB = {"type": "inventory/receive", "payload": {"item": "bomb", "quantity": 1}}
BOLT = {"type": "inventory/receive", "payload": {"item": "bolt", "quantity": 5}}
JSON, LINES = "application/json", "application/x-ndjson"


class Supervised(Restarting):
    """A server that is started again whenever it has crashed."""

    def __init__(self, binary, data, trap="bomb"):
        self.binary, self.data, self.trap = binary, data, trap
        self.crashes = 0
        self.start()

    def start(self):
        environment = dict(os.environ, STOREKEEPER_LISTEN="127.0.0.1:0", STOREKEEPER_DATA=self.data)
        environment["STOREKEEPER_INVENTORY_TRAP"] = self.trap
        environment["SWIFT_BACKTRACE"] = "enable=no"
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([self.binary], env=environment, stdout=self.log, stderr=subprocess.STDOUT)
        self.port = int(wait_until(self.ready, lambda: f"the server is ready: {self.text()}", 20)[1])

    def ready(self):
        """What the server says of its port."""
        found = re.search(r'\bport"?[:=]"?(\d+)\b', self.text())
        expect(found or self.process.poll() is None, self.text())
        return found

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def post(self, body, kind=JSON, **fields):
        """The answer's status and body; nothing where the server has crashed, which is then running again."""
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("POST", "/v1/actions", text, {"Content-Type": kind, **fields})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (http.client.HTTPException, ConnectionError):
            assert self.process.wait(20) < 0, f"it ended with {self.process.returncode}: {self.text()}"
            self.crashes += 1
            self.start()
            return None
        finally:
            connection.close()

    def reasons(self):
        """The lines of /readyz?verbose."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("GET", "/readyz?verbose")
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        lines = answer.read().decode().splitlines()
        connection.close()
        return lines

    def post_for_ever(self, *arguments, **fields):
        """Retries until there is an answer, as a client does."""
        for _ in range(20):
            answer = self.post(*arguments, **fields)
            if answer:
                return answer
        raise SystemExit("the server crashes for ever")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(15) == 0, self.process.returncode


def quarantine(storekeeper, data, *arguments):
    done = subprocess.run(
        [storekeeper, "journal", "quarantine", *arguments, "--data", data], capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def problem(answer):
    status, body = answer
    return status, json.loads(body).get("code")


def two_crashes_then_service(binary, storekeeper):
    """Each way to name the same action; another one passes before, between and after."""
    lines = b"\n".join(json.dumps(line).encode() for line in (BOLT, BOMB, BOLT))
    for name, arguments, fields, by in [
        ("content", (BOMB,), {}, "content"),
        ("key", (BOMB,), {"Idempotency-Key": '"order 7"'}, "key order 7"),
        ("id", ({**BOMB, "id": "order-7"},), {}, "id order-7"),
        ("batch", ([BOLT, BOMB],), {}, "content"),
        ("batch with a key", ([BOLT, BOMB],), {"Idempotency-Key": '"batch"'}, "key batch"),
        ("lines", (lines, LINES), {}, "content"),
        ("lines with a key", (lines, LINES), {"Idempotency-Key": '"load"'}, "key load line 2"),
    ]:
        with tempfile.TemporaryDirectory() as data:
            server = Supervised(binary, data)
            try:
                assert server.post(BOLT)[0] == 200
                status, body = server.post_for_ever(*arguments, **fields)
                assert server.crashes == 2, f"{name}: {server.crashes} crashes"
                if "lines" in name:
                    answers = [json.loads(line) for line in body.splitlines()]
                    assert [answer.get("code") for answer in answers] == [None, "action-quarantined", None], answers
                    assert answers[1]["status"] == 422, answers
                else:
                    assert problem((status, body)) == (422, "action-quarantined"), (name, status, body)
                assert "action quarantined" in server.text(), server.text()
                assert server.post(BOLT)[0] == 200
                for _ in range(3):
                    server.post_for_ever(*arguments, **fields)
                [found] = quarantine(storekeeper, data, "list")
                assert f"[!]quarantine: 1 action, {found[0]}" in server.reasons(), server.reasons()
                assert found[1:3] == ["refused", "2 crashes"] and found[4:] == ["inventory/receive", by], found
                server.stop()
                server.start()
                server.post_for_ever(*arguments, **fields)
                assert server.crashes == 2, f"{name}: {server.crashes} crashes after a restart"
                server.stop()
            finally:
                server.kill()


def retry_and_drop(binary, storekeeper):
    """Both take effect while the server runs: after a retry one crash suffices, after a drop it takes two."""
    with tempfile.TemporaryDirectory() as data:
        server = Supervised(binary, data)
        try:
            server.post_for_ever(BOMB)
            [[name, *_]] = quarantine(storekeeper, data, "list")
            for command, crashes in [("retry", 1), ("drop", 2)]:
                before = server.crashes
                quarantine(storekeeper, data, command, name)
                time.sleep(1)
                assert problem(server.post_for_ever(BOMB)) == (422, "action-quarantined")
                assert server.crashes - before == crashes, (command, server.crashes - before)
            quarantine(storekeeper, data, "retry", name)
            server.stop()
            server.trap = "none"
            server.start()
            assert "[+]quarantine: 0 actions" in server.reasons(), server.reasons()
            assert server.post(BOMB)[0] == 200, "the bug is fixed, and the action passes"
            server.stop()
        finally:
            server.kill()


def kills_are_no_fault_of_an_action(binary, storekeeper):
    """kill -9 beside equal actions without key and ID, until three have met one that was being reduced: none is set aside."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as data:
        server = Supervised(binary, data, trap="none")
        suspects, chance = 0, random.Random(seed)
        lines = b"\n".join([json.dumps(BOLT).encode()] * 5000)
        try:
            for kills in range(1, 201):
                connections = []
                for _ in range(4):
                    connections.append(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20))
                    connections[-1].request("POST", "/v1/actions", lines, {"Content-Type": LINES})
                # The longer none was met, the longer the machine may take until it reduces.
                server.kill(after=chance.uniform(0.02, 0.3 + 0.02 * kills))
                for connection in connections:
                    connection.close()
                server.start()
                suspects += "the process ended while it reduced an action" in server.text()
                status, _ = server.post(BOLT)
                assert status == 200, status
                if suspects == 3:
                    break
            assert quarantine(storekeeper, data, "list") == []
            assert suspects == 3, f"{suspects} of {kills} kills came while an action was reduced"
            server.stop()
            print(f"{suspects} of {kills} kills came while an action was reduced")
        finally:
            server.kill()


def main():
    binary, storekeeper = sys.argv[1:]
    two_crashes_then_service(binary, storekeeper)
    retry_and_drop(binary, storekeeper)
    kills_are_no_fault_of_an_action(binary, storekeeper)
    print("poison actions: 3 passed, 0 failed")


main()
