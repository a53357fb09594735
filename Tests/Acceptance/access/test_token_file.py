"""The token file: each change of it counts, it stays the server's own, and one that cannot be read opens nothing."""

import json
import os
import stat
import subprocess
import threading
import time

import pytest

from harness.client import Client
from harness.expectations import expect, expect_equal, wait_until
from harness.messages import encode_request
from harness.server import log_when_ready, start_refusal
from harness.tokens import bearer, make_token, token_names

OTHER = 65534  # nobody
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run the server as another user")


@pytest.fixture
def shared(workspace):
    """A workspace in which the other user may write, too."""
    os.chmod(workspace.directory, 0o777)
    return workspace


def tool(workspace, data, *words, user=None):
    """Runs `token`; returns its exit code, standard output and standard error."""
    result = subprocess.run(
        [workspace.binary, "token", *words, "--data", data],
        capture_output=True,
        text=True,
        timeout=60,
        user=user,
        extra_groups=[] if user else None,
        cwd="/",
        env={"PATH": os.environ["PATH"]},
    )
    return result.returncode, result.stdout.strip(), result.stderr


def entries(data):
    with open(os.path.join(data, "tokens.json")) as file:
        return json.load(file)["tokens"]


def at_once(*works):
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_creates_and_revocations_at_once_all_count(workspace):
    data = workspace.path("data")
    created, revoked, victims, failures = set(), set(), [], []

    def create(subject):
        code, token, error = tool(workspace, data, "create", "--subject", subject, "--all")
        if code == 0:
            expect(token.startswith("sk_"), f"{token!r}")
            created.add(subject)
        else:
            failures.append(error)

    def revoke(name):
        code, text, error = tool(workspace, data, "revoke", name)
        if code == 0:
            expect(text == f"revoked: {name}", f"{text!r}")
            revoked.add(name)
        else:
            failures.append(error)

    for number in range(12):
        works = [lambda s=f"s{number}-{index}": create(s) for index in range(8 if number % 2 == 0 else 5)]
        works += [lambda n=name: revoke(n) for name in victims[:3]]
        del victims[:3]
        at_once(*works)
        names = {entry["subject"]: entry["id"] for entry in entries(data)}
        expect(set(names.values()).isdisjoint(revoked), "a revocation is undone")
        victims = [name for name in names.values()]
    expect(failures == [], f"{failures}")
    left = {entry["subject"] for entry in entries(data)}
    expect(len(created) == len(left) + len(revoked), f"{len(created)} made, {len(revoked)} revoked, {len(left)} left")
    expect(os.listdir(data) == ["tokens.json"], f"{os.listdir(data)}")


@needs_root
def test_root_changes_the_file_of_another_user_and_it_stays_so(shared):
    data = shared.path("data")
    os.makedirs(data, mode=0o700)
    os.chown(data, OTHER, OTHER)
    kept, gone = (make_token(shared, data, subject, "--all") for subject in ("kept", "gone"))
    path = os.path.join(data, "tokens.json")
    expect(os.stat(path).st_uid == OTHER, "a file that root has made in the directory of a user is not the user's")
    os.chmod(path, 0o640)
    code, text, _ = tool(shared, data, "revoke", token_names(data)["gone"])
    status = os.stat(path)
    expect((code, text[:8]) == (0, "revoked:"), f"{code} {text}")
    expect((status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (OTHER, OTHER, 0o640), f"{status}")
    code, _, error = tool(shared, data, "list", user=OTHER)
    expect(code == 0, error)


@needs_root
def test_another_user_is_told_the_command_line_to_use(shared):
    data = shared.path("data")
    token = make_token(shared, data, "kept", "--all")
    os.chmod(data, 0o777)
    os.chmod(os.path.join(data, "tokens.json"), 0o644)
    name = token_names(data)["kept"]
    before = entries(data)
    code, text, error = tool(shared, data, "revoke", name, user=OTHER)
    expect(code == 78 and text == "" and token, f"{code} {text}")
    expect("sudo " in error and f"token revoke {name}" in error, error)
    expect(entries(data) == before, "a revocation that failed has changed the file")
    expect(os.listdir(data) == ["tokens.json"], f"{os.listdir(data)}")


@needs_root
@pytest.mark.prompt
def test_a_server_that_cannot_read_its_tokens_is_not_ready_and_then_takes_none(shared):
    data = shared.path("data")
    os.makedirs(data)
    os.chown(data, OTHER, OTHER)
    path = os.path.join(data, "tokens.json")
    token = make_token(shared, data, "ci", "--all")
    server = shared.server(data="none", tokens=path, prepare=lambda: os.setuid(OTHER))
    with server.client() as client, Client(server.port, timeout=30) as waiting:
        expect(client.get("/readyz").status == 200, "not ready")
        waiting.send(encode_request("GET", "/v1/state/counter?wait=50", None, bearer(token) | {"If-None-Match": "*"}))
        os.chown(path, 0, 0)
        os.chmod(path, 0o600)
        begun = time.monotonic()
        wait_until(lambda: client.get("/readyz").status == 503, "it is not ready", 2)
        answer = client.get("/readyz")
        expect(answer.json["code"] == "tokens-unreadable", f"{answer}")
        text = client.get("/readyz?verbose", **bearer(token)).body.decode()
        expect("[-]tokens: " in text and "Permission denied" in text, text)
        expect(client.get("/v1/state/counter", **bearer(token)).status == 200, "the token is refused at once")
        wait_until(lambda: client.get("/v1/state/counter", **bearer(token)).status == 503, "it is refused", 14)
        expect(time.monotonic() - begun > 9, "the token was refused too early")
        for fields in ({}, bearer(token), bearer("x")):
            answer = client.get("/v1/state/counter", **fields)
            expect((answer.status, answer.json["code"]) == (503, "tokens-unreadable"), f"{answer}")
        expect(waiting.receive().status == 503, "the wait goes on")
        os.chown(path, OTHER, OTHER)
        wait_until(lambda: client.get("/v1/state/counter", **bearer(token)).status == 200, "it is taken again", 3)
        expect(client.get("/readyz").status == 200, "not ready again")


@needs_root
@pytest.mark.parametrize("setting", ["tokens", "jwt_keys"])
def test_a_file_in_a_directory_that_the_server_may_not_enter_refuses_the_start(shared, setting):
    closed = shared.path("closed")
    os.makedirs(closed, mode=0o700)
    make_token(shared, closed, "ci", "--all")
    settings = {setting: os.path.join(closed, "tokens.json")}
    start_refusal(
        shared, "none", "Permission denied", prepare=lambda: os.setuid(OTHER), **settings
    )


def test_a_path_through_a_file_refuses_the_start(workspace):
    file = workspace.path("file")
    with open(file, "w"):
        pass
    start_refusal(workspace, "none", "Not a directory", tokens=os.path.join(file, "tokens.json"))


def test_the_first_token_says_what_follows_and_how_to_get_in(workspace):
    server = workspace.server(data=workspace.path("data"))
    code, _, error = tool(workspace, server.data, "create", "--subject", "a", "--read", "/counter")
    expect(code == 0 and "without jwt_keys was open to every client" in error and "token create --all" in error, error)
    log = lambda: open(server.log).read()
    wait_until(lambda: "the server is no longer open" in log(), "the log says that the server is shut", 2)
    expect("no token can do everything" in log(), log())
    code, _, error = tool(workspace, server.data, "create", "--subject", "b", "--all")
    file = os.path.join(server.data, "tokens.json")
    expect_equal(error, f"{file}: the server with this data directory, process {server.pid}, reads it within a second.\n", "what it says")
    names = token_names(server.data)
    code, _, error = tool(workspace, server.data, "revoke", names["b"])
    expect(code == 0 and "no token can do everything" in error, error)
    code, _, error = tool(workspace, server.data, "revoke", names["a"])
    expect(code == 0 and "no token is left" in error, error)
    server.stop()
    server = workspace.server(data=server.data)
    expect("no token can do everything" in log_when_ready(server), "the next start does not say it")


def test_a_token_in_a_directory_of_no_server_says_that_none_reads_it(workspace):
    server = workspace.server(data=workspace.path("data"))
    other = workspace.path("other")
    code, token, error = tool(workspace, other, "create", "--subject", "a", "--all")
    none = f"no running server reads {other}/tokens.json: none has this data directory."
    expect(code == 0 and none in error and "--data" in error and "was open" not in error, error)
    with server.client() as client:
        expect_equal(client.get("/v1/state").status, 200, "the status of an open server")
    code, _, error = tool(workspace, other, "revoke", token_names(other)["a"])
    expect(code == 0 and none in error, error)
    for data in [server.data, workspace.path("nowhere")]:
        code, text, error = tool(workspace, data, "list")
        expect((code, text, error) == (0, "", f"There is no token file {data}/tokens.json.\n"), error)
    # The file that the setting names is read by each server with that setting.
    named = workspace.path("named.json")
    code, _, error = tool(workspace, other, "create", "--subject", "a", "--all", "--tokens", named)
    expect(f"{named}: each server whose setting tokens names this file reads it within a second." in error, error)
    server.kill()
    code, _, error = tool(workspace, server.data, "create", "--subject", "a", "--all")
    expect(code == 0 and "no running server reads" in error and "that starts with it asks each client" in error, error)


def test_the_help_of_token_lists_what_it_uses(workspace):
    for words in [["create"], ["list"], ["revoke"]]:
        shown = subprocess.run([workspace.binary, "token", *words, "--help"], capture_output=True, text=True, timeout=20).stdout
        found = {word for word in shown.split() if word.startswith("--")} & {
            "--config", "--data", "--tokens", "--listen", "--log-level", "--domain", "--model", "--films-retries", "--open"}
        expect_equal(found, {"--config", "--data", "--tokens"}, f"the options of a server in the help of {words[0]}")
    data = workspace.path("data")
    code, _, error = tool(workspace, data, "create", "--subject", "a", "--read", "/anything", "--domain", "document")
    expect(code == 0 and "no such part" not in error, error)


@pytest.mark.parametrize(
    "options, says",
    [
        (["--read", "/taskss"], "read /taskss: the state has no such part; did you mean /tasks?"),
        (["--dispatch", "taks/*"], "dispatch taks/*: no action type begins so; did you mean tasks/*?"),
        (["--read", "view:nosuch"], "read view:nosuch: there is no such view"),
        ([], "the token allows nothing"),
    ],
)
def test_a_grant_of_nothing_has_a_warning_with_the_nearest_name(workspace, options, says):
    data = workspace.path("data")
    options = [*options, "--domain", "showcase"]
    code, token, error = tool(workspace, data, "create", "--subject", "a", *options)
    expect(code == 0 and token.startswith("sk_"), f"{code} {token}")
    expect(f"Warning: {says}" in error, error)
    code, _, error = tool(workspace, data, "create", "--subject", "b", "--read", "/tasks", "--dispatch", "tasks/*", *options[-2:])
    expect("Warning: read" not in error and "Warning: dispatch" not in error, error)
