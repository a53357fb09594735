#!/usr/bin/env python3
"""What an action costs with its history in etcd, beside one on a disk, and beside a bare put of the same bytes in etcd.

    python3 Tests/Benchmarks/cluster.py [PATH_TO_STOREKEEPER]

It starts one and three etcds on loopback. For 250 clients it needs wrk. On a machine that has other work the ratios mean
nothing.
"""

import base64
import http.client
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Acceptance"))

from harness.actions import add  # noqa: E402
from harness.etcd import Etcds  # noqa: E402
from harness.workspace import Workspace  # noqa: E402

BLOCKS, CALLS = 20, 100
WRK = """
wrk.method, wrk.body = "POST", '{"type":"counter/add","payload":{"amount":1}}'
wrk.headers["Content-Type"] = "application/json"
"""


def in_turn(*calls):
    """The times of each of these calls in milliseconds, in one list for each block of calls.

    The blocks take turns, so that what else the machine does falls on all of them. The first ones are not counted.
    """
    blocks = [[] for _ in calls]
    for _ in range(1 + BLOCKS):
        for mine, call in zip(blocks, calls):
            mine.append([])
            for _ in range(CALLS):
                begun = time.perf_counter()
                call()
                mine[-1].append(1000 * (time.perf_counter() - begun))
    return [mine[1:] for mine in blocks]


def row(name, blocks, actions=""):
    times = sorted(sum(blocks, []))
    return f"{name:<24}{statistics.median(times):>12.2f}{times[int(0.99 * len(times))]:>10.2f}   {actions}"


def bare_put(etcds):
    """The transaction of an append: the key is not there, the one before is, put."""
    connection = http.client.HTTPConnection("127.0.0.1", etcds.ports[0], timeout=10)
    name = lambda number: base64.b64encode(f"bare/{number:020}".encode()).decode()
    value = base64.b64encode(os.urandom(90)).decode()
    etcds.put(f"bare/{0:020}", b"x")
    number = 0

    def put():
        nonlocal number
        number += 1
        compare = [
            {"key": name(number), "target": "CREATE", "result": "EQUAL", "create_revision": "0"},
            {"key": name(number - 1), "target": "CREATE", "result": "GREATER", "create_revision": "0"},
        ]
        message = {"compare": compare, "success": [{"request_put": {"key": name(number), "value": value}}]}
        connection.request("POST", "/v3/kv/txn", json.dumps(message))
        assert json.loads(connection.getresponse().read())["succeeded"]

    return put


def rate(port):
    """Actions a second of 250 clients."""
    if not shutil.which("wrk"):
        return "wrk is missing"
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(WRK)
        script.flush()
        command = ["wrk", "-t1", "-c250", "-d5s", "-s", script.name, f"http://127.0.0.1:{port}/v1/actions"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=30).stdout
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    return f"{float(re.search(r'Requests/sec: +([0-9.]+)', said)[1]):,.0f}" + (f", {refused[1]} refused" if refused else "")


def main():
    binary = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".build/release/storekeeper")
    workspace = Workspace(binary, 1)
    print(f"{'':<24}{'median ms':>12}{'p99 ms':>10}   250 clients, actions/s")
    try:
        for count in (0, 1, 3):
            etcds = Etcds(workspace, count) if count else None
            server = workspace.server(data=etcds.address("bench") if etcds else None)
            with server.client() as client:
                calls = [lambda: client.commit(add(1))] + ([bare_put(etcds)] if etcds else [])
                own, *puts = in_turn(*calls)
            print(row(f"history in {count} etcd" if etcds else "SQLite on a disk", own, rate(server.port)))
            server.stop()
            for put in puts:
                print(row("  a bare put", put))
                ratio = statistics.median(map(lambda a, b: statistics.median(a) / statistics.median(b), own, put))
                print(f"{'  ratio, block by block':<24}{ratio:>12.2f}")
            if etcds:
                etcds.stop_all()
    finally:
        workspace.close()


main()
