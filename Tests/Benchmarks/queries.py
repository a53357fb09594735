#!/usr/bin/env python3
"""The first answer to a query on 100,000 tasks, beside Node with parsed objects and PostgreSQL with jsonb: in one document
(40 MB), and in a table of a Swift domain.

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
# A name, the filter, the same for Node and for Python.
QUERIES = [
    ("owner, by date, 20", '@.owner == "u7"', "t.owner === 'u7'", lambda task: task["owner"] == "u7"),
    ("open, by date, 20", "@.done == false", "t.done === false", lambda task: not task["done"]),
    ("title has a word", 'search(@.title, "9 x")', "/9 x/.test(t.title)", lambda task: "9 x" in task["title"]),
]
# A task of the Swift domain has a title and whether it is done.
TABLE_QUERIES = [
    ("table: one owner, 20", 'search(@.title, " u7 ")', "/ u7 /.test(t.title)", lambda task: " u7 " in task["title"]),
    ("table: open, 20", "@.done == false", "t.done === false", lambda task: not task["done"]),
]
NODE = """
const tasks = JSON.parse(require('fs').readFileSync(0)), answers = []
for (const test of [%s]) {
    const times = []
    let text
    for (let round = 0; round < %d; round++) {
        const begun = performance.now()
        const found = Object.entries(tasks).filter(([, t]) => test(t))
        found.sort(([, a], [, b]) => (a.%s < b.%s ? -1 : a.%s > b.%s ? 1 : 0))
        text = JSON.stringify({ members: found.slice(0, 20).map(([key, value]) => ({ key, value })) })
        times.push(performance.now() - begun)
    }
    answers.push([times, JSON.parse(text).members.map(({ key }) => key)])
}
console.log(JSON.stringify(answers))
"""
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


def table_tasks():
    chance = random.Random(8)
    return {
        str(number): {"title": f"{chance.randrange(10**9):09} u{number % OWNERS} " + "x" * 250, "done": chance.random() < 0.5}
        for number in range(TASKS)
    }


def document_of(made):
    yield json.dumps({"type": "document/set", "payload": {"path": "/tasks", "value": made}}), "application/json"


def lines_of(made):
    """The loads that make a table of the showcase."""
    add = [{"type": "tasks/add", "payload": {"id": int(key), "title": task["title"]}} for key, task in made.items()]
    complete = [{"type": "tasks/complete", "payload": {"id": int(key)}} for key, task in made.items() if task["done"]]
    for actions in (add, complete):
        yield "\n".join(map(json.dumps, actions)), "application/x-ndjson"


def node(made, queries, key):
    script = NODE % (", ".join(f"(t) => {test}" for _, _, test, _ in queries), ROUNDS, key, key, key, key)
    return json.loads(subprocess.run(["node", "-e", script], input=json.dumps(made).encode(), stdout=subprocess.PIPE, check=True).stdout)


def storekeeper(binary, domain, loads, place, queries, key):
    with tempfile.TemporaryDirectory() as folder:
        port_file = folder + "/port"
        options = ["--domain", domain, "--data", "none", "--listen", "127.0.0.1:0", "--port-file", port_file]
        options += ["--body-bytes-max", str(128 << 20), "--memory-bytes-max", str(4 << 30), "--log-level", "warning"]
        server = subprocess.Popen([binary, "serve", *options], stdout=subprocess.DEVNULL)
        try:
            while not (os.path.exists(port_file) and os.path.getsize(port_file)):
                time.sleep(0.01)
            port = int(open(port_file).read().rpartition(":")[2])
            client = http.client.HTTPConnection("127.0.0.1", port)

            def request(method, target, body=None, kind="application/json"):
                client.request(method, target, body, {"Content-Type": kind})
                answer = client.getresponse()
                content = answer.read()
                assert answer.status == 200, content[:500]
                return content

            for body, kind in loads:
                request("POST", "/v1/actions", body, kind)
            others, is_over = [], threading.Event()

            def read_beside():
                other = http.client.HTTPConnection("127.0.0.1", port)
                while not is_over.wait(0.002):
                    begun = time.perf_counter()
                    other.request("GET", place + "/" + ("t000007" if domain == "document" else "7"))
                    other.getresponse().read()
                    others.append(1000 * (time.perf_counter() - begun))

            beside = threading.Thread(target=read_beside)
            beside.start()
            results = []
            for _, text, _, _ in queries:
                times = []
                for number in range(ROUNDS):
                    # Another query each time, which the server has not answered before, with the same answer.
                    asked = {"filter": f"{text} && @.{key} != 'n{number}'", "sort": f"/{key}", "limit": 20}
                    begun = time.perf_counter()
                    answer = request("GET", place + "?" + urllib.parse.urlencode(asked))
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


def show(queries, made, key, *results):
    for index, (name, _, _, test) in enumerate(queries):
        wanted = sorted((found for found in made if test(made[found])), key=lambda found: made[found][key])[:20]
        columns = [each[index] for each in results if each]
        for _, keys in columns:
            assert keys == wanted, f"{name}: {keys} is not {wanted}"
        medians = [statistics.median(times) for times, _ in columns] + [float("nan")] * (3 - len(columns))
        print(f"{name:<24}{medians[0]:>12.0f}{medians[1]:>8.0f}{medians[2]:>12.0f}{medians[0] / medians[1]:>13.2f}")


def main():
    made, table, binary = tasks(), table_tasks(), sys.argv[1]
    ours = storekeeper(binary, "document", document_of(made), "/v1/state/tasks", QUERIES, "due")
    ours_of_table = storekeeper(binary, "showcase", lines_of(table), "/v1/state/tasks/entities", TABLE_QUERIES, "title")
    print(f"{'milliseconds, median':<24}{'storekeeper':>12}{'Node':>8}{'PostgreSQL':>12}{'ours / Node':>13}")
    show(QUERIES, made, "due", ours, node(made, QUERIES, "due"), postgresql(made))
    show(TABLE_QUERIES, table, "title", ours_of_table, node(table, TABLE_QUERIES, "title"))


main()
