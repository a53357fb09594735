#!/usr/bin/env python3
"""The first answer to a query on 100,000 tasks (40 MB), beside Node with parsed objects and PostgreSQL with jsonb.

    python3 Tests/Benchmarks/queries.py PATH_TO_STOREKEEPER

PostgreSQL is optional (Debian: `postgresql`). On a machine that has other work the ratios mean nothing.
"""

import http.client
import json
import os
import pathlib
import pwd
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

TASKS, OWNERS, ROUNDS = 100_000, 2_000, 9
QUERIES = [
    ("owner, by date, 20", '@.owner == "u7"', lambda task: task["owner"] == "u7"),
    ("open, by date, 20", "@.done == false", lambda task: not task["done"]),
    ("title has a word", 'search(@.title, "9 x")', lambda task: "9 x" in task["title"]),
]
NODE = """
const tasks = JSON.parse(require('fs').readFileSync(0)), answers = []
const tests = [(t) => t.owner === 'u7', (t) => t.done === false, (t) => /9 x/.test(t.title)]
for (const test of tests) {
    const times = []
    let text
    for (let round = 0; round < %d; round++) {
        const begun = performance.now()
        const found = Object.entries(tasks).filter(([, t]) => test(t))
        found.sort(([, a], [, b]) => (a.due < b.due ? -1 : a.due > b.due ? 1 : 0))
        text = JSON.stringify({ members: found.slice(0, 20).map(([key, value]) => ({ key, value })) })
        times.push(performance.now() - begun)
    }
    answers.push([times, JSON.parse(text).members.map(({ key }) => key)])
}
console.log(JSON.stringify(answers))
""" % ROUNDS
WHERE = ["value->>'owner' = 'u7'", "value->>'done' = 'false'", "value->>'title' ~ '9 x'"]


def tasks():
    chance = random.Random(7)
    return {
        f"t{number:06}": {
            "title": f"task {number} " + "x" * 250, "owner": f"u{number % OWNERS}", "done": chance.random() < 0.5,
            "due": f"{chance.randrange(10**9):09}", "tags": ["a", "b"],
        }
        for number in range(TASKS)
    }


def storekeeper(binary, made):
    with tempfile.TemporaryDirectory() as folder:
        port_file = folder + "/port"
        options = ["--domain", "document", "--data", "none", "--listen", "127.0.0.1:0", "--port-file", port_file]
        options += ["--body-bytes-max", str(128 << 20), "--memory-bytes-max", str(4 << 30), "--log-level", "warning"]
        server = subprocess.Popen([binary, "serve", *options], stdout=subprocess.DEVNULL)
        try:
            while not (os.path.exists(port_file) and os.path.getsize(port_file)):
                time.sleep(0.01)
            port = int(open(port_file).read().rpartition(":")[2])
            client = http.client.HTTPConnection("127.0.0.1", port)

            def request(method, target, body=None):
                client.request(method, target, body, {"Content-Type": "application/json"})
                answer = client.getresponse()
                content = answer.read()
                assert answer.status == 200, content[:500]
                return content

            request("POST", "/v1/actions", json.dumps({"type": "document/set", "payload": {"path": "/tasks", "value": made}}))
            others, is_over = [], threading.Event()

            def read_beside():
                other = http.client.HTTPConnection("127.0.0.1", port)
                while not is_over.wait(0.002):
                    begun = time.perf_counter()
                    other.request("GET", "/v1/state/tasks/t000007/owner")
                    other.getresponse().read()
                    others.append(1000 * (time.perf_counter() - begun))

            beside = threading.Thread(target=read_beside)
            beside.start()
            results = []
            for name, text, _ in QUERIES:
                times = []
                for number in range(ROUNDS):
                    # Another query each time, which the server has not answered before, with the same answer.
                    asked = {"filter": f"{text} && @.due != 'n{number}'", "sort": "/due", "limit": 20}
                    begun = time.perf_counter()
                    answer = request("GET", "/v1/state/tasks?" + urllib.parse.urlencode(asked))
                    times.append(1000 * (time.perf_counter() - begun))
                results.append([times, [member["key"] for member in json.loads(answer)["members"]]])
            is_over.set()
            beside.join()
            others.sort()
            print(f"GETs of another client meanwhile: p50 {others[len(others) // 2]:.2f} ms, p99 {others[int(0.99 * len(others))]:.2f} ms")
            return results
        finally:
            server.terminate()
            server.wait()


def postgresql(made):
    bin_folder = next(iter(sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
    if bin_folder is None:
        return None
    folder = tempfile.mkdtemp()
    try:
        # It does not run as root.
        user = {"user": "postgres"} if os.getuid() == 0 else {}
        if user:
            os.chown(folder, pwd.getpwnam("postgres").pw_uid, -1)

        def run(*command, **options):
            return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True, cwd=folder, **user, **options).stdout

        run(bin_folder / "initdb", "-D", folder + "/data", "-A", "trust")
        run(bin_folder / "pg_ctl", "-D", folder + "/data", "-o", f"-c listen_addresses='' -k {folder}", "-l", folder + "/log", "-w", "start")
        try:
            psql = [bin_folder / "psql", "-h", folder, "-d", "postgres", "-AtqX"]
            run(*psql, "-c", "create table tasks (key text primary key, value jsonb)")
            lines = "".join(f"{key}\t{json.dumps(value)}\n" for key, value in made.items())
            run(*psql, "-c", "copy tasks from stdin", input=lines)
            run(*psql, "-c", "analyze tasks")
            results = []
            for where in WHERE:
                query = f"select key, value from tasks where {where} order by value->>'due' limit 20"
                said = run(*psql, input="\\timing on\n" + f"{query};\n" * ROUNDS)
                times = [float(line.split()[1]) for line in said.splitlines() if line.startswith("Time:")]
                results.append([times, [line.partition("|")[0] for line in said.splitlines() if line.startswith("t0")][-20:]])
            return results
        finally:
            run(bin_folder / "pg_ctl", "-D", folder + "/data", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def main():
    made = tasks()
    node = json.loads(subprocess.run(["node", "-e", NODE], input=json.dumps(made).encode(), stdout=subprocess.PIPE, check=True).stdout)
    ours, theirs = storekeeper(sys.argv[1], made), postgresql(made)
    print(f"{'milliseconds, median':<24}{'storekeeper':>12}{'Node':>8}{'PostgreSQL':>12}{'ours / Node':>13}")
    for index, (name, _, test) in enumerate(QUERIES):
        wanted = sorted((key for key in made if test(made[key])), key=lambda key: made[key]["due"])[:20]
        columns = [each[index] for each in (ours, node, theirs) if each]
        for _, keys in columns:
            assert keys == wanted, f"{name}: {keys} is not {wanted}"
        medians = [statistics.median(times) for times, _ in columns] + [float("nan")] * (3 - len(columns))
        print(f"{name:<24}{medians[0]:>12.0f}{medians[1]:>8.0f}{medians[2]:>12.0f}{medians[0] / medians[1]:>13.2f}")


main()
