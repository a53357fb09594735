"""Checks of what happens when the world fails: no room on the disk, a damaged journal, two processes on one directory."""

import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import threading

from harness.actions import action, add
from harness.expectations import Failure, expect, expect_equal, wait_until
from harness.followers import judge_history
from harness.journal import edit_journal
from harness.messages import HOST
from harness.records import Record
from harness.refusals import Case, judge_problem
from harness.server import start_refusal


def full_disk_by_limit(workspace):
    """When the journal cannot grow (file size limit), actions are answered 503, the state is as it was, and it recovers."""

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))

    server = workspace.server(prepare=limited)
    return fill_up(server, lambda: None, lambda: resource.prlimit(
        server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))


def full_disk_by_mount(workspace):
    """When the disk is full (a small tmpfs), actions are answered 503, the state is as it was, and it recovers."""
    place = workspace.path("small")
    os.mkdir(place)
    c = ctypes.CDLL(None, use_errno=True)
    if c.mount(b"none", place.encode(), b"tmpfs", 0, b"size=3m") != 0:
        return f"NOT CHECKED, this user may not mount: {os.strerror(ctypes.get_errno())}"
    workspace.at_close.append(lambda: c.umount2(place.encode(), 2))
    server = workspace.server(data=place + "/data")
    ballast = place + "/ballast"

    def fill():
        with open(ballast, "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass  # this is what it is for

    return fill_up(server, fill, lambda: os.remove(ballast))


def fill_up(server, make_full, make_room):
    """Commits until the journal takes no more, then makes room, then restarts; judges the state at every step."""
    client = server.client()
    start = client.get("/v1/state")
    acknowledged = {}
    tasks = 0

    def post():
        nonlocal tasks
        tasks += 1
        answer = client.post(action("tasks/add", {"id": tasks, "title": f"{tasks} " + "x" * 8000}, id=f"t{tasks}"))
        if answer.status == 200:
            acknowledged[answer.json["version"]] = f"t{tasks}"
        return answer

    for _ in range(10):
        expect_equal(post().status, 200, "an action while there is room")
    make_full()
    while (refused := post()).status == 200:
        expect(tasks < 2000, "2,000 large actions were taken: the disk was never full")
    judge_problem(refused, Case("", b"", 503, "not-durable", says="nothing was committed"))
    expect("retry-after" in refused.fields, "503 without Retry-After:", refused)
    before = client.get("/v1/state")
    expect_equal(before.version, len(acknowledged), "the version, after as many acknowledged actions")
    expect_equal(len(before.json["tasks"]["ids"]), len(acknowledged), "the number of tasks")
    tag = client.get("/v1/state/tasks/ids").fields["etag"]
    waiter = []
    sleeper = threading.Thread(
        target=lambda: waiter.append(server.client().get("/v1/state/tasks/ids?wait=1", If_None_Match=tag)), daemon=True)
    sleeper.start()
    for _ in range(20):
        # Large ones: a small one may find a little room that is left.
        judge_problem(post(), Case("", b"", 503, "not-durable"))
    after = client.get("/v1/state")
    expect_equal((after.version, after.body == before.body), (before.version, True), "version and state after refusals")
    sleeper.join(10)
    expect_equal([answer.status for answer in waiter], [304], "a waiter's answer while nothing is committed")
    expect_equal(client.get("/readyz").status, 503, "/readyz while the journal takes nothing")
    expect_equal(client.get("/livez").status, 200, "/livez")
    key = {"Idempotency_Key": "while-full"}
    large = action("tasks/add", {"id": 1_000_000, "title": "y" * 8000}, id="keyed")
    expect_equal(client.post(large, **key).status, 503, "an action with a key")

    make_room()
    wait_until(lambda: client.get("/readyz").status == 200, "/readyz is 200 again after there is room", 5)
    again = client.post(large, **key)
    expect_equal((again.status, "idempotency-replayed" in again.fields), (200, False), "the same key when there is room")
    acknowledged[again.json["version"]] = "keyed"
    for _ in range(5):
        expect_equal(post().status, 200, "an action after there is room")
    final = client.get("/v1/state")
    server.kill()
    server.start()
    client = server.client()
    history = judge_history(client, start.json, start.cursor)
    seen = {version: identifier for version, (identifier, _) in history.by_version().items()}
    expect_equal(seen, acknowledged, "the history after a restart, against what was acknowledged")
    expect_equal(client.get("/v1/state").body, final.body, "the state after a restart")
    return f"{len(acknowledged)} taken, {tasks + 2 - len(acknowledged)} refused"


def full_disk_at_start(workspace):
    """A server that finds no room at its start says so in a sentence and ends with an exit code other than 0."""

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    start_refusal(workspace, workspace.path("data"), "journal", prepare=limited)


def load_until_snapshot(server, client):
    """Commits until the journal has a second snapshot, and a little more."""
    lines = b"\n".join(
        add(1) if number % 2 else action("tasks/add", {"id": number, "title": "t"}) for number in range(10_500))
    answer = client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
    expect_equal((answer.status, answer.body.count(b'"changed":true')), (200, 10_500), "the bulk load")

    wait_until(
        lambda: edit_journal(server, "SELECT count(*) FROM snapshots")[0] == [(2,)], "a second snapshot in the journal")
    for _ in range(100):
        client.commit(add(2))
    client.commit(add(2), Idempotency_Key="kept")


def damaged_snapshot(workspace):
    """With a damaged snapshot an older one is used: same state, epoch and history; with none left the server refuses."""
    server = workspace.server()
    with server.client() as client:
        load_until_snapshot(server, client)
        before = client.get("/v1/state")
    damages = [
        ("its bytes", "UPDATE snapshots SET state = replace(CAST(state AS TEXT), '\"value\":', '\"value\":1')"),
        ("cut off", "UPDATE snapshots SET state = substr(state, 1, length(state) / 2)"),
        ("its hash", "UPDATE snapshots SET hash = 'aaaa'"),
        ("empty", "UPDATE snapshots SET state = x''"),
        ("gone", "DELETE FROM snapshots"),
    ]
    server.stop()
    whole = workspace.path("whole.sqlite")
    shutil.copy(os.path.join(server.data, "journal.sqlite"), whole)
    for name, damage in damages:
        shutil.copy(whole, os.path.join(server.data, "journal.sqlite"))
        _, count = edit_journal(server, damage + " WHERE version = (SELECT max(version) FROM snapshots)")
        expect_equal(count, 1, f"rows that were damaged ({name})")
        server.start()
        with server.client() as client:
            after = client.get("/v1/state")
            expect_equal((after.cursor, after.body == before.body), (before.cursor, True), f"cursor and state ({name})")
            expect_equal(after.fields["etag"], before.fields["etag"], f"the ETag ({name})")
            expect(name == "gone" or "damaged" in server.log_text(), f"not a word in the log ({name}):", server.log_text())
            judge_history(client, workspace.empty_state(), before.cursor.rpartition(".")[0] + ".0")
            expect_equal(client.commit(add(1))["version"], before.version + 1, "the next version")
        server.stop()
    edit_journal(server, "UPDATE snapshots SET hash = 'aaaa'")
    return shorten_line(start_refusal(workspace, server.data, "snapshot"))


def damaged_file(workspace):
    """A journal that is no database, or lacks a commit, is refused in a sentence; it is not begun anew."""
    server = workspace.server()
    with server.client() as client:
        for _ in range(50):
            client.commit(add(1))
    server.stop()
    path = os.path.join(server.data, "journal.sqlite")
    with open(path, "rb") as file:
        whole = file.read()
    edit_journal(server, "DELETE FROM commits WHERE version = 20")
    edit_journal(server, "DELETE FROM snapshots WHERE version > 0")
    start_refusal(workspace, server.data, "journal")
    with open(path, "wb") as file:
        file.write(b"this is not a database, whatever its name says. " * 200)
    for suffix in ("-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.remove(path + suffix)
    text = start_refusal(workspace, server.data, "journal")
    with open(path, "rb") as file:
        expect(file.read().startswith(b"this is not"), "the file was overwritten")
    with open(path, "wb") as file:
        file.write(whole)
    edit_journal(server, "PRAGMA user_version = 1000")
    start_refusal(workspace, server.data, "format")
    return shorten_line(text)


def gap_in_history(workspace):
    """A commit that is missing from the journal, before the newest snapshot, is never skipped without a word."""
    server = workspace.server()
    with server.client() as client:
        load_until_snapshot(server, client)
        epoch = client.get("/v1").json["epoch"]
    server.stop()
    edit_journal(server, "DELETE FROM commits WHERE version = 20")
    server.launch()
    wait_until(lambda: server.ready() or server.process.poll() is not None, "the server is ready or has refused", 20)
    if server.process.poll() is not None:
        expect(server.process.returncode > 0, "it ended with", server.process.returncode)
        return "it refuses to start"
    with server.client() as client:
        record = Record(workspace.empty_state(), f"{epoch}.0")
        while record.version < 100:
            answer = client.get(f"/v1/changes?since={epoch}.{record.version}&limit=7")
            if answer.status != 200:
                return f"a follower is answered {answer.status} {answer.json['code']} at version {record.version}"
            record.take(answer.json)
        raise Failure("a follower went past the gap")


def unknown_action_in_record(workspace):
    """An action type that the program no longer knows, in an old record, does no harm: same state, history as it was."""
    server = workspace.server()
    with server.client() as client:
        start = client.get("/v1/state")
        for number in range(1, 11):
            client.commit(add(number, id=f"a{number}"))
        before = client.get("/v1/state")
    server.stop()
    _, changed = edit_journal(
        server, "UPDATE commits SET types = 'gone/vanish', action = CAST(replace(CAST(action AS TEXT), 'counter/add',"
        " 'gone/vanish') AS BLOB) WHERE version IN (3, 7)")
    expect_equal(changed, 2, "records that were changed")
    server.start()
    with server.client() as client:
        after = client.get("/v1/state")
        expect_equal((after.cursor, after.body), (before.cursor, before.body), "cursor and state")
        history = judge_history(client, start.json, start.cursor)
        expect_equal([what["type"] for _, what in history.seen].count("gone/vanish"), 2, "old records in the history")
        expect_equal(client.get("/v1/actions/a3").json["action"]["type"], "gone/vanish", "the outcome of the old action")
        filtered = client.get(f"/v1/changes?since={start.cursor}&types=counter/add").json
        expect_equal(len(filtered["changes"]), 8, "changes of a type that is known")
        expect_equal(client.commit(add(1))["version"], 11, "the next version")


def second_process(workspace):
    """A second process on the same data refuses with a sentence and a non-zero exit code; the first goes on."""
    server = workspace.server()
    with server.client() as client:
        client.commit(add(1))
        text = start_refusal(workspace, server.data, "another process")
        client.commit(add(1))
        expect_equal(client.get("/v1/state/counter").json, {"value": 2}, "the counter of the first")
    server.kill()
    server.start()  # the lock goes with the process, however it ends
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter").json, {"value": 2}, "the counter after a kill")
    return shorten_line(text)


def bad_settings(workspace):
    """A bad setting, a busy port or a directory that cannot be made ends the start with a sentence that names it."""
    server = workspace.server(data="none")
    start_refusal(workspace, "none", "body_bytes_max", body_bytes_max="many")
    start_refusal(workspace, "none", "WAITERS_MAX", waiter_max=4)
    start_refusal(workspace, "/proc/nothing/here", "/proc/nothing/here")
    for arguments, says in ([["--listen", f"{HOST}:{server.port}"], str(server.port)], [["--listen", "nowhere"], "listen"],
                            [["--domain", "nothing"], "showcase"], [["--config", "/nothing.json"], "/nothing.json"]):
        run = subprocess.run(
            [workspace.binary, "serve", "--data", "none", *arguments], capture_output=True, timeout=20, text=True)
        said = run.stderr + run.stdout
        expect(run.returncode > 0 and says in said, f"{arguments}: exit code {run.returncode}:", said)


def shorten_line(text):
    line = text.strip().splitlines()[-1]
    try:
        return json.loads(line)["message"]
    except (ValueError, KeyError):
        return line[:160]
