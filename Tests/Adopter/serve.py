#!/usr/bin/env python3
"""Serves an adopter's domain and uses it: POST, GET, a view, a derived catalogue, SIGTERM, the same state after a restart, and the
commands that the program has besides.

Usage: python3 Tests/Adopter/serve.py PATH_TO_BINARY
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request


def start(binary, data):
    environment = dict(os.environ, STOREKEEPER_LISTEN="127.0.0.1:0", STOREKEEPER_DATA=data)
    process = subprocess.Popen([binary], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in process.stdout:
        record = json.loads(line)
        if record["message"] == "ready":
            return process, int(record["port"])
    raise SystemExit("the server did not say that it was ready")


def call(port, path, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, body and json.dumps(body).encode(), timeout=10) as answer:
        return json.load(answer)


def stop(process):
    process.send_signal(signal.SIGTERM)
    assert process.wait(15) == 0, process.returncode


def command(binary, *arguments, **variables):
    """What a command of the program ends with: its exit code, its standard output and its standard error."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("STOREKEEPER_")}
    done = subprocess.run(
        [binary, *arguments], env=environment | variables, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


def expect_command(binary, *arguments, code=0, says=(), **variables):
    ended, out, error = command(binary, *arguments, **variables)
    assert ended == code, f"{arguments} ended with {ended}: {out}{error}"
    for text in says:
        assert text in (out if code == 0 else error), f"{arguments} does not say {text}: {out}{error}"
    return out


def judge_commands(binary):
    """The command line, without a server."""
    name = os.path.basename(binary)
    shown = expect_command(
        binary, "--help", says=[f"USAGE: {name} <subcommand>", "serve", "check", "health", "journal", "token"]
    )
    assert "films" not in shown
    shown = expect_command(
        binary, "serve", "--help", says=["--listen", "--inventory-trap <text>", "The item at which the reducer traps"]
    )
    assert "--grace-seconds" not in shown and "films" not in shown and "--domain" not in shown, shown
    expect_command(binary, "serve", "--help-hidden", says=["--grace-seconds <number>", "by default 10."])
    assert expect_command(binary, "--version") == "1.2.3\n"
    # A setting of the adopter's own comes from each source, as those of the package do.
    line = 'inventory_trap = "bolt"'
    expect_command(binary, "check", "--inventory-trap", "bolt", says=[line, "# flag"])
    expect_command(
        binary, "check", STOREKEEPER_INVENTORY_TRAP="bolt", says=[line, "# STOREKEEPER_INVENTORY_TRAP"]
    )
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write('{"inventory_trap": "bolt", "grace_seconds": 3}')
        file.flush()
        shown = expect_command(binary, "check", "--config", file.name, says=[line, file.name, "grace_seconds = 3"])
        assert "films" not in shown and "domain" not in shown, shown
    # A bad setting is a sentence and the exit code 78, be it of the package or of the adopter; a misspelled option is 64.
    for arguments, variables, sentence in [
        (["check"], {"STOREKEEPER_INVENTORY_TRAPS": "x"}, "did you mean STOREKEEPER_INVENTORY_TRAP?"),
        (["check"], {"STOREKEEPER_FILMS_RETRIES": "1"}, "STOREKEEPER_FILMS_RETRIES, which is not a setting"),
        (["check", "--grace-seconds", "9999"], {}, "grace_seconds (flag) must be a whole number from 0 to 3600"),
        (["check", "--inventory-trap", "all"], {}, "inventory_trap must be one item"),
        (["serve", "--inventory-trap", "all", "--data", "none"], {}, "inventory_trap must be one item"),
        (["--log-level", "loud"], {}, "log_level (flag) must be one of trace, debug"),
        (["health", "--listen", "nowhere"], {}, "listen (flag) must be an address and a port"),
        (["journal", "info", "--data", "none"], {}, "there is no journal in none"),
    ]:
        expect_command(binary, *arguments, code=78, says=["Error: ", sentence], **variables)
    expect_command(binary, "serve", "--inventory-trip", "bolt", code=64, says=["--inventory-trip", "--inventory-trap"])
    expect_command(binary, "health", "--listen", "127.0.0.1:1", code=1, says=["no server listens"])


def main():
    binary = sys.argv[1]
    judge_commands(binary)
    with tempfile.TemporaryDirectory() as data:
        process, port = start(binary, data)
        try:
            receipt = call(port, "/v1/actions", {"type": "inventory/receive", "payload": {"item": "bolt", "quantity": 5}})
            assert receipt["version"] == 1 and receipt["changed"], receipt
            assert call(port, "/v1/state/items/bolt/quantity") == 5
            assert call(port, "/v1/views/total") == 5
            types = [action["type"] for action in call(port, "/v1/actions")["actions"]]
            assert types == ["inventory/receive", "inventory/ship", "storekeeper/restore"], types
            stop(process)
            process, port = start(binary, data)
            assert call(port, "/v1/state") == {"items": {"bolt": {"quantity": 5}}, "ids": ["bolt"]}
            assert expect_command(binary, "health", "--listen", f"127.0.0.1:{port}") == "ready\n"
            expect_command(binary, "journal", "info", "--data", data, says=["latest version       1\n", "in use               yes"])
            stop(process)
            expect_command(binary, "journal", "verify", "--data", data, says=["verified: versions 0 to 1, 1 commits"])
        finally:
            process.kill()
    print("the adopter's server: 1 passed, 0 failed")


main()
