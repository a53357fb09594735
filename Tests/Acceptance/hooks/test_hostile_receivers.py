"""Receivers that answer what no server should, and clients that would be a hook."""

import os
import shutil
import socket
import stat
import subprocess
import threading
import time

from harness.actions import action, add
from harness.expectations import expect, expect_equal, wait_until
from harness.hooks import Receiver, hook
from harness.tokens import make_token

PRECONDITION = {
    "type": "counter/add", "payload": {"amount": 1},
    "expect": [{"path": "/\u001b[31mEVIL\u202e\n\nh0000000000  http://fake  up to date" + "k" * 100_000, "value": 1}],
}


class RawReceiver(threading.Thread):
    """A receiver that answers each delivery by a function of its socket."""

    def __init__(self, answer):
        super().__init__(daemon=True)
        self.answer, self.bodies = answer, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/hook"
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        data = b""
        with client:
            while b"\r\n\r\n" not in data:
                data += client.recv(1 << 16)
            self.bodies.append(data.partition(b"\r\n\r\n")[2])
            try:
                self.answer(client)
            except OSError:
                pass


def flood(client):
    client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    while True:
        client.sendall(b"X: y\r\n" * 20_000)


def created(workspace, data, url, *options):
    return hook(workspace, data, "create", "--url", url, "--read", "*", *options).split()[0]


def test_trailers_without_end_cost_no_memory(workspace):
    data = workspace.path("data")
    receiver = RawReceiver(flood)
    id = created(workspace, data, receiver.url)
    server = workspace.server(data, hook_seconds_max=5)
    with server.client() as client:
        before = server.memory_bytes()
        client.commit(add(1))
        wait_until(lambda: "the answer has more than" in hook(workspace, data, "list"), f"hook {id} fails", 10)
        expect(server.memory_bytes() < before + (64 << 20), f"it takes {server.memory_bytes()} bytes, {before} before")


def test_a_text_of_a_receiver_is_shown_short_and_without_controls(workspace):
    data = workspace.path("data")
    receiver = Receiver(workspace, data, "--read", "*", "--dispatch", "counter/*", answers={"tasks/add": [PRECONDITION]})
    server = workspace.server(data)
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "t"}))
        wait_until(lambda: "precondition-failed" in hook(workspace, data, "list"), "the refusal is shown")
        listed = hook(workspace, data, "list")
        expect_equal(len(listed.splitlines()), 1, f"the lines of {listed[:1000]!r}")
        expect(not {"\u001b", "\u202e"} & set(listed) and len(listed) < 1000, repr(listed[:1000]))
        expect(os.path.getsize(f"{data}/hooks-progress.json") < 4000, "the refusal in the file is long")


def test_a_hook_misses_nothing_behind_a_restored_journal_of_the_same_epoch(workspace):
    data, backup = workspace.path("data"), workspace.path("backup")
    receiver = Receiver(workspace, data, "--read", "*")
    server = workspace.server(data)

    def commit(*numbers):
        with server.client() as client:
            for number in numbers:
                client.commit(action("counter/add", {"amount": number}, id=f"b{number}"))

    commit(1)
    run = [workspace.binary, "journal"]
    subprocess.run([*run, "backup", "--data", data, "--to", backup], check=True, capture_output=True)
    commit(2, 3, 4, 5)
    receiver.wait_for(5)
    time.sleep(1)
    server.stop()
    os.rename(data, data + ".broken")
    subprocess.run([*run, "restore", "--from", backup, "--data", data, "--same-epoch"], check=True, capture_output=True)
    for name in ("hooks.json", "hooks-progress.json"):
        shutil.copy2(f"{data}.broken/{name}", f"{data}/{name}")
    server.start()
    commit(6)
    wait_until(lambda: any(body.get("id") == "b6" for body in receiver.commits), "the commit behind the reset", 10)
    time.sleep(1)
    receiver.set(status=503)
    commit(7, 8, 9)
    server.stop()
    receiver.set(status=None)
    server.start()
    commit(10)
    wait_until(lambda: any(body.get("id") == "b10" for body in receiver.commits), "the last commit", 20)
    found = [body["id"] for body in receiver.commits if "id" in body]
    expect_equal(found[found.index("b6"):], ["b6", "b7", "b8", "b9", "b10"], "the commits behind the reset")


def test_a_delivery_that_waits_for_its_turn_is_not_made_for_a_hook_that_is_gone(workspace):
    data = workspace.path("data")
    slow, other = RawReceiver(lambda client: time.sleep(3)), RawReceiver(lambda client: None)
    created(workspace, data, slow.url)
    server = workspace.server(data, hook_deliveries_max=1, hook_seconds_max=3)
    with server.client() as client:
        client.commit(add(1))
        wait_until(lambda: slow.bodies, "the slow receiver has the delivery")
        gone = created(workspace, data, other.url)
        time.sleep(1.2)
        client.commit(add(1))
        time.sleep(0.3)
        hook(workspace, data, "delete", gone)
        time.sleep(3)
        expect_equal(other.bodies, [], "what the deleted hook was sent")


def test_actions_that_were_not_recorded_are_asked_for_again_and_counted_once(workspace):
    data = workspace.path("data")
    answer = [{"type": "counter/add", "payload": {"amount": 1}}] * 2
    receiver = Receiver(workspace, data, "--read", "*", "--dispatch", "counter/*", answers={"tasks/add": answer})
    server = workspace.server(data, cascade_depth_max=5, idempotency_keys_max=1, idempotency_seconds=6)
    with server.client() as client:
        client.commit(add(1), Idempotency_Key='"mine"')
        client.commit(action("tasks/add", {"id": 1, "title": "t"}))
        wait_until(lambda: client.get("/v1/state/counter/value").json == 3, "the actions are committed", 30)
        expect(len(receiver.taken) >= 4, f"only {len(receiver.taken)} attempts")


def test_an_answer_that_cannot_be_read_is_told(workspace):
    data = workspace.path("data")
    answers = [b'{"actions":[],"actions":[]}', b'{"actions":' + b"[" * 5000, b'{"actions":{"type":"counter/add"}}', b'{"actions":[[]]}']
    left = list(answers)

    def answer(client):
        body = left.pop(0)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)

    created(workspace, data, RawReceiver(answer).url, "--dispatch", "counter/*")
    server = workspace.server(data)
    with server.client() as client:
        for number in range(len(answers)):
            client.commit(add(1))
            wait_until(lambda: server.metric(client, "hook_refusals_total") == number + 1, f"refusal {number}", 10)
        wait_until(lambda: "an element of actions is not an object" in hook(workspace, data, "list"), "the newest refusal is shown")
        expect_equal(client.get("/v1/state/counter/value").json, len(answers), "nothing of them is committed")


def test_no_client_has_the_subject_of_a_hook(workspace):
    data = workspace.path("data")
    workspace.server(data).stop()
    try:
        make_token(workspace, data, "hook:h1", "--all")
    except AssertionError as error:
        expect("does not begin with hook:" in str(error), f"{error}")
    else:
        raise AssertionError("a token of a hook's subject is made")


def test_a_file_of_hooks_that_others_may_read_is_closed_by_the_next_change(workspace):
    data = workspace.path("data")
    workspace.server(data).stop()
    id = created(workspace, data, "http://127.0.0.1:9/hook")
    os.chmod(f"{data}/hooks.json", 0o644)
    hook(workspace, data, "rotate", id)
    expect_equal(stat.S_IMODE(os.stat(f"{data}/hooks.json").st_mode), 0o600, "the mode of the file with secrets")


def test_a_page_that_is_not_there_says_nothing_of_the_history(workspace):
    server = workspace.server(access="tokens")
    with server.client() as client:
        for path in ("/v1/docs/nix.md", "/page/nix.js"):
            answer = client.get(path)
            expect_equal(answer.status, 404, path)
            expect("state-cursor" not in answer.fields and "cursor" not in answer.json, f"{path} names a cursor", answer)


def test_an_address_that_cannot_work_is_refused(workspace):
    data = workspace.path("data")
    workspace.server(data).stop()
    for url in ("http://[::1/x", "http://127.0.0.1:+80/", "http://127.0.0.1:0/"):
        said = hook(workspace, data, "create", "--url", url, "--read", "*", code=78)
        expect("must be one such as https://example.org/hook" in said, said)
    expect(not os.path.exists(f"{data}/hooks.json"), "a hook is made")
