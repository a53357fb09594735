"""A journal that has no room to grow."""

import ctypes
import os
import resource
import signal
import subprocess
import threading

import pytest

from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until
from harness.followers import judge_history
from harness.journal import journal_output
from harness.refusals import Case, judge_problem
from harness.server import log_when_ready
from harness.tokens import make_token


def test_actions_get_503_while_the_journal_file_cannot_grow_and_the_server_recovers(workspace, figures):
    """A limit on the file size; the state stays as it was."""

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))

    server = workspace.server(prepare=limited)
    figures(
        fill_up(
            server,
            lambda: None,
            lambda: resource.prlimit(
                server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            ),
        )
    )


def test_actions_get_503_while_the_disk_is_full_and_the_server_recovers(workspace, figures):
    """A small tmpfs; the state stays as it was."""
    place, fill, make_room = small_disk(workspace)
    server = workspace.server(data=place + "/data")
    figures(fill_up(server, fill, make_room))


def small_disk(workspace):
    """A tmpfs of 3 MB, with what fills it and makes room again."""
    place = workspace.path("small")
    os.mkdir(place)
    c = ctypes.CDLL(None, use_errno=True)
    if c.mount(b"none", place.encode(), b"tmpfs", 0, b"size=3m") != 0:
        pytest.skip(f"this user may not mount: {os.strerror(ctypes.get_errno())}")
    workspace.at_close.append(lambda: c.umount2(place.encode(), 2))
    ballast = place + "/ballast"

    def fill():
        with open(ballast, "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass  # this is what it is for

    return place, fill, lambda: os.remove(ballast)


@pytest.mark.alone
@pytest.mark.parametrize("end", ["stop", "kill", "full stop"])
def test_a_server_starts_on_a_full_disk_and_behaves_as_one_whose_disk_fills_while_it_runs(workspace, end):
    """After a stop, a kill, and a stop on the full disk; then a second start without room, and one more with it."""
    place, fill, make_room = small_disk(workspace)
    server = workspace.server(data=place + "/data")
    with server.client() as client:
        for number in range(20):
            expect_equal(client.post(action("tasks/add", {"id": number, "title": "x" * 8000})).status, 200, "an action")
        state = client.get("/v1/state")
    if end == "full stop":
        fill()
    server.kill() if end == "kill" else server.stop()
    if end != "full stop":
        fill()
    refused = action("tasks/add", {"id": 100, "title": "y" * 8000}, id="later")
    for _ in range(2):
        server.start()
        with server.client() as client:
            read = client.get("/v1/state")
            expect_equal((read.version, read.body == state.body), (20, True), "the state of a start without room")
            expect_equal(len(client.get("/v1/changes?since=oldest").json["changes"]), 20, "its history")
            judge_problem(client.get("/readyz"), Case("", b"", 503, "not-durable"))
            expect_equal(client.get("/livez").status, 200, "/livez")
            expect("the disk is full" in client.get("/readyz?verbose").body.decode(), "no word about the disk")
            judge_problem(client.post(refused), Case("", b"", 503, "not-durable", says="nothing was committed"))
            expect_equal(client.get("/v1/state").version, 20, "the version after a refused action")
        server.stop()
    server.start()
    with server.client() as client:
        make_room()
        wait_until(lambda: client.get("/readyz").status == 200, "/readyz is 200 again after there is room", 5)
        expect_equal(client.post(refused).json["version"], 21, "the version of an action after there is room")
        state = client.get("/v1/state")
    server.restart()
    with server.client() as client:
        read = client.get("/v1/state")
        expect_equal((read.version, read.body == state.body), (21, True), "the state after a kill")
    server.stop()
    expect_equal(
        journal_output(workspace, "verify", server.data), b"verified: versions 0 to 21, 21 commits\n", "what verify says"
    )


@pytest.mark.alone
def test_a_full_disk_is_told_in_few_lines_and_a_token_stays_until_there_is_room(workspace):
    place, fill, make_room = small_disk(workspace)
    server = workspace.server(data=place + "/data")
    large = action("tasks/add", {"id": 1, "title": "y" * 8000})
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 0, "title": "x"}))
        fill()
        for _ in range(30):
            judge_problem(client.post(large), Case("", b"", 503, "not-durable"))
        expect(1 <= server.log_text().count("journal failed") <= 3, "lines about 30 refusals:", server.log_text())
        expect("takes commits again" not in server.log_text(), "a line about the end before it:", server.log_text())
        make_room()
        wait_until(lambda: client.post(large).status == 200, "an action is taken after there is room", 5)
        wait_until(lambda: "takes commits again" in server.log_text(), "a line about the end", 5)
    server.stop()
    expect_equal(server.log_text().count("takes commits again"), 1, "lines about the end")
    make_token(workspace, server.data, "ann", "--all")
    listed = subprocess.run([workspace.binary, "token", "list", "--data", server.data], capture_output=True, check=True)
    name = listed.stdout.split()[0].decode()
    revoke = [workspace.binary, "token", "revoke", name, "--data", server.data]
    fill()
    done = subprocess.run(revoke, capture_output=True)
    expect_equal((done.returncode, done.stdout), (74, b""), "a revocation without room")
    expect("No space left" in done.stderr.decode() and "still good" in done.stderr.decode(), done.stderr.decode())
    server.start()
    expect("no: cannot" in log_when_ready(server).rpartition('"ready"')[2], "the line of a start without room:", server.log_text())
    server.stop()
    make_room()
    expect_equal(subprocess.run(revoke, capture_output=True).returncode, 0, "a revocation with room")


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
        target=lambda: waiter.append(server.client().get("/v1/state/tasks/ids?wait=1", If_None_Match=tag)), daemon=True
    )
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
    expect_equal(
        (again.status, "idempotency-replayed" in again.fields), (200, False), "the same key when there is room"
    )
    acknowledged[again.json["version"]] = "keyed"
    for _ in range(5):
        expect_equal(post().status, 200, "an action after there is room")
    final = client.get("/v1/state")
    server.restart()
    client = server.client()
    history = judge_history(client, start.json, start.cursor)
    seen = {version: identifier for version, (identifier, _) in history.by_version().items()}
    expect_equal(seen, acknowledged, "the history after a restart, against what was acknowledged")
    expect_equal(client.get("/v1/state").body, final.body, "the state after a restart")
    return f"{len(acknowledged)} taken, {tasks + 2 - len(acknowledged)} refused"
