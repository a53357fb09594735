#!/usr/bin/env python3
"""Serves an adopter's domain and uses it: POST, GET, a view, a derived catalogue, SIGTERM, the same state after a restart.

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
        # `Logger` writes `port=8080`, a JSON log `"port":"8080"`.
        words = line.replace('"', "").replace(",", " ").replace(":", "=").split()
        for word in words:
            if word.startswith("port="):
                return process, int(word[5:])
    raise SystemExit("the server did not say that it was ready")


def call(port, path, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, body and json.dumps(body).encode(), timeout=10) as answer:
        return json.load(answer)


def stop(process):
    process.send_signal(signal.SIGTERM)
    assert process.wait(15) == 0, process.returncode


def main():
    binary = sys.argv[1]
    with tempfile.TemporaryDirectory() as data:
        process, port = start(binary, data)
        try:
            receipt = call(port, "/v1/actions", {"type": "inventory/receive", "payload": {"item": "bolt", "quantity": 5}})
            assert receipt["version"] == 1 and receipt["changed"], receipt
            assert call(port, "/v1/state/items/bolt/quantity") == 5
            assert call(port, "/v1/views/total") == 5
            types = [action["type"] for action in call(port, "/v1/actions")["actions"]]
            assert types == ["inventory/receive", "inventory/ship"], types
            stop(process)
            process, port = start(binary, data)
            assert call(port, "/v1/state") == {"items": {"bolt": {"quantity": 5}}, "ids": ["bolt"]}
            stop(process)
        finally:
            process.kill()
    print("the adopter's server: 1 passed, 0 failed")


main()
