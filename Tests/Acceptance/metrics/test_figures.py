"""The figures of /metrics equal what the test has done, number by number."""

import os
import pathlib
import time

from harness.actions import action, add, batch
from harness.expectations import expect, expect_equal, wait_until
from harness.films_server import Stub
from harness.messages import encode_request
from harness.metrics import figures_of
from harness.shims import Disk
from harness.streams import LINES, open_stream
from harness.tokens import bearer, make_token
from harness.waits import begin

OVERFLOW = add(2**63 - 1)


def bytes_of_journal(data):
    files = [path for path in pathlib.Path(data).iterdir() if path.name.startswith("journal.sqlite")]
    return sum(path.stat().st_size for path in files if not path.name.endswith("-shm"))


def test_actions_are_counted_by_type_and_outcome_and_problems_by_code(workspace):
    server = workspace.server()
    client = server.client()
    sent = 0

    def post(body, status, **fields):
        nonlocal sent
        sent += 1
        expect_equal(client.post(body, **fields).status, status, f"the status of {body[:60]}")

    for _ in range(7):
        post(add(1), 200)
    post(batch(add(1), add(1), add(1)), 200)
    for _ in range(2):
        post(OVERFLOW, 409)
    post(batch(add(1), OVERFLOW), 409)
    post(add(1), 200, Idempotency_Key="a")
    post(add(1), 200, Idempotency_Key="a")
    post(add(2), 422, Idempotency_Key="a")
    post(action("counter/add", {"amount": 1}, expect=[{"path": "/counter/value", "value": -1}]), 412)
    post(action("tasks/add", {"id": 1, "title": "one"}), 200)
    post(action("tasks/add", {"id": 1, "title": "one"}), 409)
    post(action("no/such", {}), 422)
    post(action("counter/add", {"amount": "x"}), 422)
    post(b"{", 400)
    for body, status in ((add(1), 200), (OVERFLOW, 409)):
        sent += 1
        expect_equal(client.request("POST", "/v1/actions?dry-run=true", body).status, status, "a dry run")
    sent += 1
    lines = client.request(
        "POST", "/v1/actions", b"\n".join([add(1), OVERFLOW, add(1), b"{", OVERFLOW]),
        {"Content-Type": "application/x-ndjson"},
    )
    expect_equal(lines.status, 200, "the status of a bulk load")
    for target, status in (("/v1/state/nothing", 404), ("/v1/state/nothing", 404), ("/v1/state?x=1", 400)):
        sent += 1
        expect_equal(client.get(target).status, status, f"the status of {target}")

    found = figures_of(client)

    expect_equal(
        found.by("actions_total", "type", "outcome"),
        {
            ("counter/add", "committed"): 7 + 3 + 1 + 2,
            ("counter/add", "rejected"): 2 + 2 + 1 + 2,
            ("counter/add", "replayed"): 1,
            ("counter/add", "key_reused"): 1,
            ("counter/add", "precondition_failed"): 1,
            ("counter/add", "dry_run"): 1,
            ("tasks/add", "committed"): 1,
            ("tasks/add", "rejected"): 1,
        },
        "the actions",
    )
    expect_equal(
        found.by("refusals_total", "code"),
        {
            ("counter.overflow",): 2 + 1 + 1 + 2,
            ("idempotency-key-reused",): 1,
            ("precondition-failed",): 1,
            ("tasks.duplicate",): 1,
            ("unknown-action",): 1,
            ("invalid-action",): 1,
            ("malformed-json",): 1 + 1,
            ("no-such-path",): 2,
            ("unknown-parameter",): 1,
        },
        "the problems",
    )
    commits = 7 + 1 + 1 + 1 + 2
    expect_equal(found["requests_total"], sent, "requests before this one")
    expect_equal(found["commits_total"], commits, "commits")
    expect_equal(found["version"], commits, "the version")
    expect_equal(found["journal_commits_total"], commits, "commits in the journal")
    expect_equal(found["history_commits"], commits, "commits in memory")
    expect_equal(found["oldest_version"], 0, "the oldest version")
    expect_equal(found["idempotency_keys"], 1, "idempotency keys")
    expect_equal(found["connections"], 1, "connections")
    # Of these requests, and lines, only those that are actions of the domain reach a turn; a dry run needs none.
    turns = 7 + 1 + 2 + 1 + 3 + 1 + 2 + 4
    expect_equal(found["turn_transactions_sum"], turns, "transactions in turns")
    expect_equal(found["turn_seconds_count"], found["turn_transactions_count"], "turns")
    expect(0 < found["turn_seconds_sum"] < 10, found["turn_seconds_sum"])
    appends = found["journal_append_seconds_count"]
    # The two commits of the bulk load may share an append.
    expect(commits - 1 <= appends <= commits and found["journal_append_seconds_sum"] > 0, appends)
    # What a request has taken is given back a moment behind its answer.
    for name in ("mailbox_actions", "journal_turns", "waiters", "memory_bytes", "memory_clients"):
        wait_until(lambda: server.metric(client, name) == 0, f"{name} to be 0")
    expect_equal(found["ready"], 1, "ready")


def test_what_an_action_leads_to_is_counted_too(workspace):
    """A load of films: an action, and what its effect dispatches."""
    stub = Stub(workspace)
    stub.will(stub.good)
    server = workspace.server(data="none", films_base_url=stub.address)
    client = server.client()

    answer = client.post(action("films/load"), Prefer="wait=20")

    caused = [kind for commit in answer.json["caused"] for kind in commit["types"]]
    found = figures_of(client)
    expect(caused, answer)
    wanted = {("films/load", "committed"): 1}
    wanted |= {(kind, "committed"): caused.count(kind) for kind in caused}
    expect_equal(found.by("actions_total", "type", "outcome"), wanted, "the actions")
    expect_equal(found["commits_total"], 1 + len(caused), "commits")
    expect_equal(found.by("waits_total", "route"), {("action",): 1}, "waits that began")
    expect_equal(found["journal_commits_total"], 0, "commits in a journal that is not there")


def test_waits_and_streams_are_counted_by_route_and_woken_ones_by_pass(workspace):
    server = workspace.server(data="none")
    client = server.client()
    client.commit(add(1))
    cursor = client.get("/v1").json["cursor"]
    state, view = "/v1/state/counter", "/v1/views/count"
    tags = {target: client.get(target).fields["etag"] for target in (state, view)}
    waits = [begin(server, f"{state}?wait=50", If_None_Match=tags[state]) for _ in range(3)]
    waits += [begin(server, f"{view}?wait=50", If_None_Match=tags[view]) for _ in range(2)]
    # At least a version is a wait for the state, and so is a keyed difference.
    waits += [begin(server, f"{state}?wait=50&at-least={cursor[:-1]}2")]
    waits += [begin(server, f"/v1/state/tasks?as=keyed&wait=50&since={cursor}")]
    waits += [begin(server, f"/v1/changes?since={cursor}&wait=50") for _ in range(4)]
    wait_until(lambda: server.metric(client, "waiters") == len(waits), "the waits")
    streams = [open_stream(server, state) for _ in range(2)]
    streams += [open_stream(server, view)]
    streams += [open_stream(server, "/v1/changes?since=now", form=LINES) for _ in range(3)]

    before = figures_of(client)

    by_route = {("state",): 5, ("view",): 2, ("changes",): 4}
    expect_equal(before.by("waits", "route"), by_route, "waits")
    expect_equal(before.by("waits_total", "route"), by_route, "waits that began")
    streams_by_route = {("state",): 2, ("view",): 1, ("changes",): 3}
    expect_equal(before.by("streams", "route"), streams_by_route, "streams")
    expect_equal(before.by("streams_total", "route"), streams_by_route, "streams that began")
    expect_equal(before["waiters"], 11 + 6, "waits and streams")
    for stream in streams:
        stream.close()
    wait_until(lambda: server.metric(client, "streams") == 0, "the streams to end")
    before = figures_of(client)

    client.commit(add(1))
    for wait in waits:
        if wait is not waits[6]:
            expect_equal(wait.receive().status, 200, "the answer to a wait")
    # A pass counts what it woke at its end, which can be after the answers have arrived; a view that is evaluated elsewhere is
    # a pass of its own.
    wait_until(lambda: server.metric(client, "woken_watches_sum") - before["woken_watches_sum"] == 10, "the pass's end")

    after = figures_of(client)
    expect_equal(after.by("waits", "route"), {("state",): 1}, "what still waits: the keyed difference of another part")
    expect_equal(after.by("waits_total", "route"), by_route, "waits that began")
    expect_equal(after.by("streams_total", "route"), streams_by_route, "streams that began")
    woken = after["woken_watches_sum"] - before["woken_watches_sum"]
    expect_equal(woken, 3 + 2 + 1 + 4, "woken waits")
    expect(1 <= after["woken_watches_count"] - before["woken_watches_count"] <= 2, "passes:", after)


def test_bytes_are_those_of_unfinished_bodies_and_of_the_journals_files(workspace):
    data = workspace.path("data")
    server = workspace.server(data=data, memory_bytes_max=128 << 20)
    client = server.client()
    head = encode_request("POST", "/v1/actions", b"x").replace(b"Content-Length: 1\r\n", b"Content-Length: 200000\r\n")
    expect(b"200000" in head, head)

    uploads = []
    for count in (1, 2):
        uploads.append(server.client())
        # A body above 64 KiB counts with the memory that is reserved for it, at first 256 KiB.
        uploads[-1].send(head + b"x" * 99_999)
        wait_until(lambda: server.metric(client, "memory_bytes") == count << 18, f"{count} bodies in hand")
        found = figures_of(client)
        expect_equal(found["memory_clients"], 1, "clients with bodies in hand")
        expect_equal(found["memory_share_bytes"], count << 18, "the bytes of the one client")
    expect_equal(found["memory_limit_bytes"], 128 << 20, "the limit")
    for upload in uploads:
        upload.close()
    wait_until(lambda: server.metric(client, "memory_bytes") == 0, "the bodies to be given up")
    expect_equal(server.metric(client, "memory_clients"), 0, "clients with bodies in hand")

    for _ in range(3):
        client.commit(add(1))
        while True:
            size, found = bytes_of_journal(data), figures_of(client)["journal_bytes"]
            # Now and then the journal writes how far the time of its history has come.
            if bytes_of_journal(data) == size:
                break
        expect_equal(found, size, "the bytes of the journal's files")


def test_limits_and_the_build_are_metrics(workspace):
    begun = time.time()
    server = workspace.server(
        connections_max=40, waiters_max=7, mailbox_actions_max=50, idempotency_keys_max=60, body_bytes_max=1 << 20,
        memory_bytes_max=17 << 20,
    )
    client = server.client()

    found = figures_of(client)

    limits = {"connections": 40, "waiters": 7, "mailbox_actions": 50, "idempotency_keys": 60}
    for name, limit in limits.items():
        expect_equal(found[f"{name}_limit"], limit, f"the limit of {name}")
    expect_equal(found["memory_limit_bytes"], 17 << 20, "the limit of the memory")
    (version,) = found.by("build_info", "version")
    expect_equal(f"{version[0]}\n", os.popen(f"{server.workspace.binary} --version").read(), "the version")
    expect(int(begun) <= found["start_time_seconds"] <= time.time(), found["start_time_seconds"])


def test_answers_are_counted_by_method_and_status_and_timed_unless_they_wait(workspace):
    server = workspace.server()
    with server.client() as client:
        before = figures_of(client)
        expect_equal(before.by("answers_total", "method", "status"), {}, "answers before the first")
        client.commit(add(1))
        tag = client.get("/v1/state/counter").fields["etag"]
        for _ in range(5):
            client.get("/v1/state/counter")
        client.get("/v1/state/counter", If_None_Match=tag)
        client.get("/v1/state/nothing")
        client.request("HEAD", "/v1/state/counter")
        client.request("OPTIONS", "/v1/state/counter")
        client.request("PUT", "/v1/state/counter", b"1")
        client.get("/v1/state/counter?wait=0.2", If_None_Match=tag)
        # Long enough that a thread beside the loop commits it.
        client.request("POST", "/v1/actions", b"\n".join([add(1)] * 500), {"Content-Type": "application/x-ndjson"})
        found = figures_of(client)
    wanted = {
        # One is the answer to the first request for metrics.
        ("GET", "2xx"): 7, ("GET", "3xx"): 2, ("GET", "4xx"): 1, ("HEAD", "2xx"): 1, ("POST", "2xx"): 2,
        ("OPTIONS", "2xx"): 1, ("other", "4xx"): 1,
    }
    expect_equal(found.by("answers_total", "method", "status"), wanted, "the answers")
    # The wait counts, and took as long as it was to take.
    waited = sum(wanted.values()) - found["answer_seconds_count"]
    expect_equal(waited, 1, "the answers without a time")
    expect(0 < found["answer_seconds_sum"] < 5, found["answer_seconds_sum"])


def test_what_linux_says_of_the_process_has_the_names_of_prometheus(workspace):
    server = workspace.server()
    with server.client() as client:
        crowd = [server.client() for _ in range(50)]
        for each in crowd:
            each.get("/livez")
        found = {series.name: value for series, value in figures_of(client).series.items() if "process_" in series.name}
        expect(abs(found["process_open_fds"] - server.descriptors()) <= 2, found["process_open_fds"])
        expect(abs(found["process_resident_memory_bytes"] - server.memory_bytes()) < 8 << 20, found)
        expect(abs(found["process_cpu_seconds_total"] - server.cpu_seconds()) < 0.5, found)
        expect(abs(found["process_start_time_seconds"] - time.time()) < 60, found)
        limit = next(line for line in open(f"/proc/{server.pid}/limits") if line.startswith("Max open files"))
        expect_equal(found["process_max_fds"], int(limit.split()[3]), "the limit of open files")


def test_a_journal_that_fails_shows_in_metrics_and_in_readiness(workspace):
    server = workspace.server()
    server.stop()
    disk = Disk(workspace, server)
    server.start()
    client = server.client()
    client.commit(add(1))
    expect_equal(client.get("/readyz?verbose").status, 200, "readiness before")

    disk.fail("write")
    expect_equal(client.post(add(1)).status, 503, "an action while the disk fails")

    found = figures_of(client)
    code = sum(found.by("refusals_total", "code").values())
    outcomes = {outcome for (kind, outcome) in found.by("actions_total", "type", "outcome")}
    expect_equal((code, len(outcomes)), (1, 2), "one refusal, beside a committed action")
    expect(outcomes <= {"committed", "not_recorded", "unknown"}, outcomes)
    expect_equal((found["journal_up"], found["ready"], found["journal_failures_total"]), (0, 0, 1), "the journal")
    expect_equal((found["journal_commits_total"], found["commits_total"]), (1, 1), "commits")
    answer = client.get("/readyz?verbose")
    lines = answer.body.decode().splitlines()
    expect_equal((answer.status, lines[-1]), (503, "not ready"), "the verdict")
    (reason,) = [line for line in lines if line.startswith("[-]")]
    expect(reason.startswith("[-]journal: ") and "journal.sqlite" in reason, reason)
    expect_equal(client.get("/readyz").json["code"], "not-durable", "the probe")

    disk.heal()
    wait_until(lambda: client.get("/readyz?verbose").status == 200, "readiness after")
    expect_equal(figures_of(client)["ready"], 1, "ready")


def test_metrics_and_reasons_are_for_a_token_that_operates(workspace):
    data = workspace.path("data")
    tokens = {
        name: make_token(workspace, data, name, *options)
        for name, options in {"all": ["--all"], "op": ["--operate"], "ci": ["--read", "*"]}.items()
    }
    server = workspace.server(data=data)
    with server.client() as client:
        for target, refused in (("/metrics", 404), ("/readyz?verbose", 400)):
            expect_equal(client.get(target).status, 401, f"{target} without a token")
            statuses = {name: client.get(target, **bearer(token)).status for name, token in tokens.items()}
            expect_equal(statuses, {"all": 200, "op": 200, "ci": refused}, target)
        expect_equal(client.get("/readyz").status, 200, "the probe without a token")


def test_a_trace_is_in_the_answer_the_problem_and_the_log(workspace):
    server = workspace.server(data="none", log_level="debug")
    client = server.client()
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    parent = f"00-{trace}-00f067aa0ba902b7-01"
    fields = {"traceparent": parent}

    for method, target, body in (("GET", "/v1/state", None), ("GET", "/livez", None), ("POST", "/v1/actions", add(1))):
        # Thrice: the second time the head is known, and the third time its answer is.
        for _ in range(3):
            answer = client.request(method, target, body, fields)
            expect_equal((answer.status, answer.fields.get("traceparent")), (200, parent), f"the answer of {target}")
            expect("traceparent" not in client.request(method, target, body).fields, f"{target} without a trace")
    for method, target, body in (("GET", "/v1/state/nothing", None), ("POST", "/v1/actions", OVERFLOW)):
        problem = client.request(method, target, body, fields)
        expect_equal(problem.json["traceId"], trace, f"the trace in the problem of {target}")
        expect("traceId" not in client.request(method, target, body).json, f"{target} without a trace")

    wait_until(lambda: trace in server.log_text(), "the trace in the log")
    lines = [line for line in server.log_text().splitlines() if trace in line]
    expect(all('"request_id"' in line and '"trace_id"' in line for line in lines), lines)
