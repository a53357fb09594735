"""What a hook is sent: each commit that it sees, in order, signed, through every failure."""

import contextlib
import datetime
import email.utils
import json
import os
import random
import re
import socket
import ssl
import threading
import time

import pytest

from harness.actions import action, add, bulk
from harness.client import ConnectionLost, connect
from harness.expectations import expect, expect_equal, remains, wait_until
from harness.hooks import Receiver, hook, judge
from harness.server import start_refusal
from harness.tokens import bearer, make_token
from harness.tools import need, run

# How long a receiver that hangs holds a test up.
QUICK = {"hook_seconds_max": 1}


def fill(server, port, count, done):
    """Commits so many actions, of which a third concern tasks, through kills of the server."""
    client, number = None, 0
    while number < count:
        try:
            client = client or connect(lambda: port[0], timeout=20)
            kind = number % 3
            body = (
                action("tasks/add", {"id": number, "title": f"title {number} ä \""}, id=f"a{number}")
                if kind == 0
                else add(1, id=f"a{number}")
            )
            answer = client.post(body, Idempotency_Key=f"k{number}")
            expect_equal(answer.status, 200, "the status of an action")
            number += 1
        except ConnectionLost:
            client = None
    done.set()


@pytest.mark.rounds(1000, long=10_000)
@pytest.mark.seconds(long=1800)
def test_every_commit_comes_in_order_and_answers_are_committed_once_through_kills(workspace, figures, rounds):
    chance = random.Random(workspace.seed)
    data = workspace.path("data")
    faults = {"status": 0.003, "redirect": 0.003, "hang": 0.001, "lost": 0.01}
    all_of_it = Receiver(workspace, data, "--read", "*", faults=faults)
    asks = Receiver(
        workspace,
        data,
        *["--types", "tasks/add", "--read", "actions:tasks/*", "--read", "/tasks", "--dispatch", "counter/*"],
        faults=faults,
        answers={"tasks/add": [{"type": "counter/add", "payload": {"amount": 1000}}]},
    )
    server = workspace.server(data, **QUICK)
    port, done = [server.port], threading.Event()
    threading.Thread(target=fill, args=(server, port, rounds, done), daemon=True).start()
    kills = 0
    while not done.is_set() or kills < 6:
        time.sleep(chance.uniform(0.3, 1.2))
        kills += 1
        if kills % 3 == 0:
            port[0] = server.restart().port
        else:
            chance.choice([all_of_it, asks]).restart(down=chance.uniform(0, 0.3))
    tasks = len(range(0, rounds, 3))
    for receiver in [all_of_it, asks]:
        receiver.set(faults={"lost": 0.01})
    with server.client() as client:
        wait_until(lambda: client.get("/v1").json["version"] == rounds + tasks, "all answers are committed", 600)
        asks.wait_for(tasks, 600)
        all_of_it.wait_for(rounds + tasks, 600)
        expect_equal(client.get("/v1/state/counter/value").json, rounds - tasks + 1000 * tasks, "the counter")
        more = judge(all_of_it, client, list(range(1, rounds + tasks + 1))) - rounds - tasks
        commits = all_of_it.commits
        of_tasks = [commit for commit in commits if commit["action"]["type"] == "tasks/add"]
        expect_equal(
            [commit["version"] for commit in asks.commits], [commit["version"] for commit in of_tasks], "tasks' versions"
        )
        expect_equal(
            [commit["id"] for commit in asks.commits], [f"a{number}" for number in range(0, rounds, 3)], "their IDs"
        )
        answers = {commit["cause"]: commit for commit in commits if commit.get("cause")}
        expect_equal(set(answers), {commit["id"] for commit in of_tasks}, "the commits that were answered")
        expect_equal({commit["by"] for commit in answers.values()}, {f"hook:{asks.id}"}, "who has answered")
    figures(f"{rounds + tasks} commits to two receivers through {kills} kills; {more} came again")


def test_the_bytes_are_those_that_changes_shows_the_grant(workspace):
    data = workspace.path("data")
    token = make_token(workspace, data, "kim", "--read", "/tasks", "--read", "actions:tasks/*", "--others")
    admin = make_token(workspace, data, "root", "--all")
    receiver = Receiver(workspace, data, "--read", "/tasks", "--read", "actions:tasks/*")
    server = workspace.server(data)
    with server.client() as client:
        own = bearer(admin)
        for number in range(20):
            client.commit(add(1), **own)
            client.commit(action("tasks/add", {"id": number, "title": "é \\ \u2028"}), **own)
        receiver.wait_for(20)
        expect_equal([commit["version"] for commit in receiver.commits], list(range(2, 41, 2)), "the versions")
        shown = client.get("/v1/changes?since=oldest", **bearer(token)).body
        for line in receiver.taken:
            expect(line["body"].encode() in shown, "changes does not show", line["body"])


def test_a_hook_that_hangs_slows_no_post_and_no_other_hook(workspace):
    data = workspace.path("data")
    hanging = Receiver(workspace, data, "--read", "*", faults={"hang": 1}, hang=60)
    good = Receiver(workspace, data, "--read", "*")
    server = workspace.server(data)
    with server.client() as client:
        times = []
        for _ in range(300):
            begun = time.monotonic()
            client.commit(add(1))
            times.append(time.monotonic() - begun)
        good.wait_for(300, 30)
        expect_equal(len(hanging.taken), 0, "how many the hanging one has taken")
        expect(max(times) < 2, f"a POST has taken {max(times)} s")
    begun = time.monotonic()
    server.stop()
    expect(time.monotonic() - begun < 8, "the stop waits for the receiver")


@pytest.mark.parametrize(
    "fault, says",
    [
        ("status", "the receiver has answered 500"),
        ("redirect", "the receiver has answered 302"),
        ("hang", "the receiver has not answered within 1 s"),
        ("huge", "the answer has more than 1048576 bytes"),
    ],
)
def test_a_failure_is_named_counted_and_tried_again(workspace, fault, says):
    data = workspace.path("data")
    receiver = Receiver(workspace, data, "--read", "*", faults={fault: 1}, hang=5)
    server = workspace.server(data, **QUICK)
    memory = server.memory_bytes()
    with server.client() as client:
        client.commit(add(1))
        client.commit(add(2))
        line = wait_until(lambda: says in receiver.listed() and receiver.listed(), "the list says what fails", 20)
        expect("2 behind" in line and "attempts since" in line, line)
        (reported,) = client.get("/v1/operations").json["hooks"]
        expect_equal((reported["id"], reported["failing"], reported["paused"]), (receiver.id, True, False), "the report")
        expect_equal(reported["origin"], f"http://127.0.0.1:{receiver.settings['port']}", "where the receiver is")
        expect(says in reported["condition"] and "2 behind" in reported["condition"], reported)
        expect(f"[!]hooks: 1, 1 failing: {receiver.id}" in client.get("/readyz?verbose").body.decode(), "readiness")
        expect(server.metric(client, "hook_attempts_total", outcome="failed") >= 1, "the metric of failures")
        expect_equal(server.metric(client, "hooks_failing"), 1, "the metric of failing hooks")
        expect_equal(server.metric(client, "hook_behind_versions"), 2, "the metric of what is behind")
        receiver.set(faults={})
        receiver.wait_for(2, 30)
        judge(receiver, client, [1, 2])
        wait_until(lambda: "up to date" in receiver.listed(), "the list says that it goes on")
        expect("[+]hooks: 1\n" in client.get("/readyz?verbose").body.decode(), "readiness")
    expect(server.memory_peak_bytes() - memory < 64 << 20, "the server has taken the long answer")


def test_an_operator_passes_over_pauses_and_resumes(workspace):
    data = workspace.path("data")
    receiver = Receiver(workspace, data, "--read", "*", faults={"status": 1})
    server = workspace.server(data)
    with server.client() as client:
        for _ in range(3):
            client.commit(add(1))
        wait_until(lambda: "failing" in receiver.listed(), "it fails")
        epoch = client.get("/v1").json["cursor"].split(".")[0]
        says = f"resumed: {receiver.id}, from {epoch}.2\n"
        expect_equal(receiver.hook("resume", "--from", f"{epoch}.2"), says, "what it says")
        wait_until(lambda: f"failing at {epoch}.2" in receiver.listed(), "the next one fails")
        receiver.hook("pause")
        wait_until(lambda: server.metric(client, "hooks_paused") == 1, "it is paused")
        receiver.set(faults={})
        remains(lambda: receiver.taken == [], "a paused hook takes nothing", 1.5)
        expect("paused: by hand" in receiver.listed(), receiver.listed())
        hook(workspace, data, "resume", "--all")
        receiver.wait_for(2)
        judge(receiver, client, [2, 3])
        wait_until(lambda: "failing" not in receiver.listed(), "it goes on")
        receiver.hook("delete")
        wait_until(lambda: server.metric(client, "hooks") == 0, "it is deleted")
        client.commit(add(1))
        remains(lambda: len(receiver.taken) == 2, "a deleted hook takes nothing", 0.5)


def test_410_pauses_the_hook_until_it_is_resumed(workspace):
    data = workspace.path("data")
    receiver = Receiver(workspace, data, "--read", "*", status=410)
    server = workspace.server(data)
    with server.client() as client:
        client.commit(add(1))
        wait_until(lambda: "paused: the receiver has answered 410 (Gone)" in receiver.listed(), "it is paused")
        tries = len(receiver.taken)
        remains(lambda: len(receiver.taken) <= tries + 1, "it does not go on", 2)
        receiver.set(status=None)
        receiver.hook("resume")
        wait_until(lambda: "up to date" in receiver.listed(), "it goes on")
        judge(receiver, client, [1])


def test_both_secrets_sign_during_a_rotation(workspace):
    data = workspace.path("data")
    receiver = Receiver(workspace, data, "--read", "*")
    server = workspace.server(data)
    with server.client() as client:
        client.commit(add(1))
        receiver.wait_for(1)
        new = receiver.hook("rotate").strip()
        wait_until(lambda: server.log_text().count("hooks read") == 2, "the server knows the new secret")
        client.commit(add(1))
        receiver.wait_for(2)
        receiver.set(secret=new)
        client.commit(add(1))
        receiver.wait_for(3)
        receiver.hook("rotate", "--finish")
        wait_until(lambda: server.log_text().count("hooks read") == 3, "the server has dropped the old secret")
        client.commit(add(1))
        receiver.wait_for(4)
        judge(receiver, client, [1, 2, 3, 4])


def test_a_hook_behind_the_history_gets_a_reset_and_goes_on(workspace):
    data = workspace.path("data")
    receiver = Receiver(workspace, data, "--read", "*")
    server = workspace.server(
        data, journal_commits_max=100, journal_snapshots_max=2, history_commits_max=50, journal_bytes_max=1 << 20
    )
    with server.client() as client:
        client.commit(add(1))
        receiver.wait_for(1)
        receiver.hook("pause")
        wait_until(lambda: server.metric(client, "hooks_paused") == 1, "it is paused")
        title = "x" * 8000
        client.commit(action("tasks/add", {"id": 1, "title": title}))

        def is_gone():
            bulk(client, [action("tasks/rename", {"id": 1, "title": f"{n} {title}"}) for n in range(200)])
            return client.get("/v1/changes?since=" + receiver.commits[0]["cursor"]).status == 410

        wait_until(is_gone, "the history begins behind the hook", 60)
        receiver.hook("resume")
        receiver.wait_for(2)
        latest = client.get("/v1").json["cursor"]
        expect_equal(
            receiver.commits[1],
            {"type": "storekeeper.reset", "reason": "cursor-expired", "cursor": latest},
            "the delivery that tells of the gap",
        )
        expect_equal(server.metric(client, "hook_resets_total"), 1, "the metric of resets")
        expect("hook has missed commits" in server.log_text(), server.log_text())
        version = client.commit(add(1))["version"]
        receiver.wait_for(3)
        expect_equal(receiver.commits[2]["version"], version, "the next commit")


def test_a_hook_begins_behind_its_creation_and_goes_on_behind_a_stop(workspace):
    data = workspace.path("data")
    server = workspace.server(data)
    with server.client() as client:
        client.commit(add(1))
    receiver = Receiver(workspace, data, "--read", "*")
    with server.client() as client:
        client.commit(add(1))
        receiver.wait_for(1)
    server.stop()
    server.start()
    with server.client() as client:
        client.commit(add(1))
        receiver.wait_for(2)
        expect_equal([commit["version"] for commit in receiver.commits], [2, 3], "the versions")
        remains(lambda: len(receiver.taken) == 2, "there were two deliveries", 0.5)


@pytest.mark.parametrize("end", ["stop", "go on"])
def test_progress_that_could_not_be_written_is_written_without_another_delivery(workspace, end):
    data = workspace.path("data")
    receiver = Receiver(workspace, data, "--read", "*")
    server = workspace.server(data)
    progress = os.path.join(data, "hooks-progress.json")
    with server.client() as client:
        client.commit(add(1))
        wait_until(lambda: "up to date" in receiver.listed(), "the progress is written")
        # A directory in the place of the file is a write that fails.
        os.remove(progress)
        os.mkdir(progress)
        cursor = client.commit(add(1))["cursor"]
        receiver.wait_for(2)
        wait_until(lambda: "progress of hooks not written" in server.log_text(), "the write fails")
    os.rmdir(progress)
    if end == "stop":
        server.stop()
    wait_until(lambda: os.path.exists(progress), "the file is there", 30)
    with open(progress) as file:
        expect_equal([hook["cursor"] for hook in json.load(file)["hooks"]], [cursor], "how far the hook has come")


def test_a_receiver_whose_certificate_nobody_vouches_for_gets_nothing(workspace):
    need("openssl")
    certificate, data, got = workspace.path("certificate.pem"), workspace.path("data"), []
    options = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost".split()
    run("openssl", *options, "-keyout", certificate + ".key", "-out", certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate + ".key")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                with context.wrap_socket(listener.accept()[0], server_side=True) as connection:
                    got.append(connection.recv(1 << 16))
            except OSError as error:
                if not isinstance(error, ssl.SSLError):
                    return

    threading.Thread(target=serve, daemon=True).start()
    workspace.at_close.append(listener.close)
    url = f"https://localhost:{listener.getsockname()[1]}/"
    hook(workspace, data, "create", "--url", url, "--read", "*")
    server = workspace.server(data)
    with server.client() as client:
        client.commit(add(1))
        wait_until(lambda: "the receiver cannot be reached" in hook(workspace, data, "list"), "it fails")
    expect("certificate" in hook(workspace, data, "list"), hook(workspace, data, "list"))
    expect(not any(got), "the receiver has got", got)


def test_a_file_of_hooks_with_a_fault_is_named_and_changes_nothing(workspace):
    data = workspace.path("data")
    receiver = Receiver(workspace, data, "--read", "*")
    server = workspace.server(data)
    path = os.path.join(data, "hooks.json")
    with open(path) as file:
        good = file.read()
    with open(path, "w") as file:
        file.write(good.replace("127.0.0.1", "127.0.0.1:x"))
    with server.client() as client:
        wait_until(lambda: "[!]hooks: the file" in client.get("/readyz?verbose").body.decode(), "readiness says so")
        client.commit(add(1))
        receiver.wait_for(1)
    server.stop()
    start_refusal(workspace, data, f"has a fault in {receiver.id}")


@pytest.mark.parametrize(
    "after, least, most",
    [
        ("3", 2.9, 30),
        ("-5", 0, 2.5),
        ("soon", 0, 2.5),
        (lambda: email.utils.formatdate(time.time() + 100, usegmt=True), 50, 101),
        ("9223372036854775807", 3500, 3601),
        # More than 64 bits hold is a long time as well, and leading zeros make none.
        ("9223372036854775808", 3500, 3601),
        ("99999999999999999999", 3500, 3601),
        ("00000000000000000000003", 2.9, 30),
    ],
)
def test_a_receiver_says_when_to_come_again(workspace, after, least, most):
    data = workspace.path("data")
    receiver = Receiver(workspace, data, "--read", "*", faults={"status": 1})
    receiver.set(faults={"status": 1}, status_fields={"Retry-After": after() if callable(after) else after})
    server = workspace.server(data, **QUICK)
    with server.client() as client:
        client.commit(add(1))
        (failing,) = wait_until(lambda: [each for each in failing_hooks(data) if "500" in each["reason"]], "the hook fails")
        since, following = (datetime.datetime.fromisoformat(failing[name]) for name in ("since", "next"))
        expect((following - since).total_seconds() >= least, "the pause:", failing)
        # It counts from the last attempt, which was before now.
        last = since if failing["attempts"] == 1 else datetime.datetime.now(datetime.timezone.utc)
        expect((following - last).total_seconds() <= most, "the pause:", failing)


def failing_hooks(data):
    with contextlib.suppress(FileNotFoundError), open(os.path.join(data, "hooks-progress.json")) as file:
        return [hook["failing"] for hook in json.load(file)["hooks"] if "failing" in hook]
    return []


def test_a_hook_sends_the_fields_that_its_receiver_asks_for_and_shows_them_to_nobody(workspace):
    data = workspace.path("data")
    fields = ["--header", "Authorization: Basic a2ltOnNlY3JldA==", "--header", "X-Key: abc"]
    receiver = Receiver(workspace, data, "--read", "*", *fields, keeps_fields=True)
    server = workspace.server(data, **QUICK)
    with server.client() as client:
        client.commit(add(1))
        receiver.wait_for(1)
        sent = receiver.taken[0]["fields"]
        expect_equal((sent["authorization"], sent["x-key"]), ("Basic a2ltOnNlY3JldA==", "abc"), "the fields")
        for shown in (receiver.listed(), client.get("/v1/operations").body.decode(), server.log_text()):
            expect("a2ltOnNlY3JldA" not in shown and "abc" not in shown.replace(receiver.id, ""), "it is shown:", shown)
        expect("header=Authorization header=X-Key" in receiver.listed(), receiver.listed())


def test_a_command_with_a_fault_makes_no_hook(workspace):
    data = workspace.path("data")
    for options, says in [
        (["--url", "http://example.org/", "--read", "*"], "is not https"),
        (["--url", "example.org", "--read", "*"], "is not the address of a receiver"),
        (["--url", "https://kim:secret@example.org/", "--read", "*"], "--header 'Authorization: Basic ...'"),
        (["--url", "https://example.org/", "--read", "*", "--header", "X"], "must be a name, a colon and a value"),
        (["--url", "https://example.org/", "--read", "*", "--header", "X: a\nY: b"], "must be a name"),
        (["--url", "https://example.org/", "--read", "*", "--header", "X Y: secret"], "must be a name"),
        (["--url", "https://example.org/", "--read", "*", "--header", "host: a"], "host is one of the server's own"),
        (["--url", "https://example.org/", "--read", "*", "--header", "Webhook-Id: a"], "the server's own"),
        (["--url", "https://example.org/"], "it sees nothing"),
        (["--url", "https://example.org/", "--read", "tasks"], "cannot be read"),
        (["--url", "https://example.org/", "--read", "*", "--path", "tasks"], "path tasks"),
        (["--url", "https://example.org/", "--read", "*", "--types", "a*b"], "is not an action type"),
    ]:
        text = hook(workspace, data, "create", *options, code=78)
        expect(says in text, f"{options}: {text}")
    expect("need a journal" in hook(workspace, "none", "list", code=78), "hooks without a journal")
    expect("there is no hook h1" in hook(workspace, data, "pause", "h1", code=78), "a hook that is not there")
    os.mkdir(workspace.path("damaged"))
    with open(os.path.join(workspace.path("damaged"), "journal.sqlite"), "w") as file:
        file.write("this is not a database, whatever its name says. " * 200)
    options = ["--url", "https://example.org/", "--read", "*"]
    says = hook(workspace, workspace.path("damaged"), "create", *options, code=1)
    expect("journal.sqlite" in says, "a journal that cannot be read:", says)
    expect(not os.path.exists(os.path.join(workspace.path("damaged"), "hooks.json")), "there is a file of hooks")
    printed = hook(workspace, data, "create", "--url", "http://example.org/", "--read", "*", "--insecure")
    expect(re.fullmatch(r"h[0-9a-f]{10}\nwhsec_[A-Za-z0-9+/]{43}=\n", printed), printed)
    expect_equal(os.stat(os.path.join(data, "hooks.json")).st_mode & 0o777, 0o600, "who may read the secrets")
    expect(printed.split()[1] not in hook(workspace, data, "list"), "the list shows the secret")
