"""The beginning and the end of an access: a new token counts at once, and one that has ended does nothing any more."""

import json
import os
import signal
import subprocess
import threading
import time

import pytest

from harness.client import Client
from harness.expectations import expect, expect_equal, paced, wait_until
from harness.issuer import Key, claims, jwt, write_keys
from harness.messages import encode_request
from harness.tokens import bearer, make_token, read_tokens

SET = "document/set"


def put(path, value, **more):
    return json.dumps({"type": SET, "payload": {"path": path, "value": value}, **more}).encode()


def tool(workspace, *words):
    environment = {"PATH": os.environ["PATH"]}
    return subprocess.run([workspace.binary, *words], capture_output=True, text=True, timeout=60, env=environment)


def ask(server, token, method="GET", target="/v1/state", body=None, **fields):
    with Client(server.port, 20) as client:
        return client.request(method, target, body, bearer(token) | fields)


@pytest.fixture
def protected(workspace):
    """A server with a document, and a token that may do everything."""
    data = workspace.path("data")
    token = make_token(workspace, data, "admin", "--all")
    return workspace.server(data=data, domain="document"), token


@pytest.fixture
def key(workspace):
    if jwt is None:
        pytest.skip("PyJWT and cryptography are not installed")
    return Key("EdDSA", "k")


def test_a_new_token_counts_with_its_first_request(workspace, protected):
    server, _ = protected
    statuses = []
    for number in range(8):
        token = make_token(workspace, server.data, f"s{number}", "--all")
        method, body = ("POST", put(f"/{number}", "x" * 70_000)) if number % 2 else ("GET", None)
        target = "/v1/actions" if number % 2 else "/v1/state"
        statuses.append(ask(server, token, method, target, body).status)
    expect_equal(statuses, [200] * 8, "the first answers")


def test_a_token_of_a_new_key_counts_with_its_first_request(workspace, key):
    path = write_keys(workspace.path("keys.json"), key)
    server = workspace.server(data="none", jwt_keys=path)
    statuses = []
    for number in paced(range(5), 0.15):
        new = Key("EdDSA", f"new{number}")
        write_keys(path, key, new)
        statuses.append(ask(server, new.sign(claims())).status)
    expect_equal(statuses, [200] * 5, "the first answers")


def test_unknown_tokens_have_the_file_looked_at_ten_times_a_second_at_most(workspace, protected, tmp_path):
    server, token = protected
    before = time.monotonic()
    for number in range(60):
        with Client(server.port, 20, f"127.0.0.{2 + number % 9}") as client:
            expect(client.get("/v1/state", **bearer(f"sk_{number}")).status == 401, "an unknown token is taken")
    took = time.monotonic() - before
    # An innocent client beside them.
    expect(ask(server, token).status == 200 and took < 20, f"60 unknown tokens took {took:.1f} s")


@pytest.mark.parametrize("written", ["2s", "time"])
def test_a_token_of_the_file_ends_at_its_time(workspace, protected, written):
    server, admin = protected
    end = time.time() + 2
    text = written if written == "2s" else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end + 1))
    if written == "time":
        end = int(end + 1)
    token = make_token(workspace, server.data, "brief", "--all", "--expires", text)
    if written == "2s":
        [listed] = [entry for entry in read_tokens(server.data) if entry["subject"] == "brief"]
        end = parse(listed["expires"])
    expect(ask(server, token).status == 200, "the token is refused")
    me = ask(server, token, target="/v1/me").json
    expect(abs(parse(me["expires"]) - end) < 0.01, f"{me}")
    expect(" expires=" in tool(workspace, "token", "list", "--data", server.data).stdout, "the list does not say it")
    with Client(server.port, 20) as stream:
        stream.send(encode_request("GET", "/v1/state", None, bearer(token) | {"Accept": "text/event-stream"}))
        while stream.socket.recv(1 << 16)[-5:] != b"0\r\n\r\n":
            expect(time.time() < end + 1.5, "the stream goes on")
    expect(time.time() >= end, "the stream ends before the token")
    # A client that held a good token has guessed nothing.
    expect_equal({ask(server, token).status for _ in range(40)}, {401}, "the answers after the end")
    expect(ask(server, admin).status == 200, "another token has ended, too")
    server.stop()
    server.start()
    expect_equal((ask(server, token).status, ask(server, admin).status), (401, 200), "after a restart")


def parse(text):
    import datetime

    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.mark.parametrize("text", ["", "soon", "5", "-1d", "0s", "2020-01-01T00:00:00Z", "2030-01-01", "1e3d"])
def test_an_end_that_is_none_makes_no_token(workspace, text):
    made = tool(workspace, "token", "create", "--data", workspace.path("data"), "--subject", "a", "--all", "--expires", text)
    expect(made.returncode != 0 and "--expires" in made.stderr, f"{made}")
    expect(not os.path.exists(workspace.path("data/tokens.json")), "there is a token file")


def keep_asking(server, token, end, seconds=1.0):
    """Requests with known heads until after an end; for each kind how long after it the last served one was sent."""
    latest = {}
    kinds = {
        "GET": ("GET", "/v1/state/a", None, {}), "HEAD": ("HEAD", "/v1/state/a", None, {}),
        "indented": ("GET", "/v1/state?pretty", None, {}), "view of me": ("GET", "/v1/me", None, {}),
        "conditional": ("GET", "/v1/state/a", None, {"If-None-Match": '"x"'}),
        "POST": ("POST", "/v1/actions", put("/b", 1), {}), "keyed": ("POST", "/v1/actions", put("/c", 1), {"Idempotency-Key": "k"}),
    }
    with Client(server.port, 20) as client:
        while time.time() < end + seconds:
            for kind, (method, target, body, fields) in kinds.items():
                sent = time.time()
                if client.request(method, target, body, bearer(token) | fields).status == 200:
                    latest[kind] = sent - end
    return latest


@pytest.mark.parametrize("kind", ["jwt", "file"])
def test_a_known_head_is_served_until_the_end_and_not_longer(workspace, key, kind):
    """On a kept connection, whose answers the transport reuses."""
    data, path = workspace.path("data"), write_keys(workspace.path("keys.json"), key)
    server = workspace.server(data=data, domain="document", jwt_keys=path, jwt_leeway_seconds=0)
    ask(server, key.sign(claims()), "POST", "/v1/actions", put("/a", 1))
    for part in (0.13, 0.37):
        if kind == "jwt":
            end = time.time() + 2.6 + part
            token = key.sign(claims("ann") | {"exp": end})
        else:
            token = make_token(workspace, data, f"ann{part}", "--all", "--expires", "3s")
            end = parse([entry for entry in read_tokens(data) if entry["subject"] == f"ann{part}"][0]["expires"])
        latest = keep_asking(server, token, end)
        expect_equal(len(latest), 7, f"the kinds that were served at all: {latest}")
        expect(max(latest.values()) < 0.002, f"served after the end: {latest}")
        expect(min(latest.values()) > -1.5, f"not served long before the end: {latest}")


def test_bodies_that_are_read_when_the_token_is_revoked_are_not_committed(workspace, protected):
    server, admin = protected
    token = make_token(workspace, server.data, "ann", "--all")
    wait_until(lambda: ask(server, token, "POST", "/v1/actions", put("/ann", {})).status == 200, "the token is known", 3)
    # Bodies of many small values take long to parse, and one is parsed at a time.
    body = json.dumps({"type": "document/test-nothing", "payload": {"path": "/ann/x", "value": [0] * 480_000}}, separators=(",", ":"))
    bodies = [put(f"/ann/{index}", index) + b" " * 70_000 for index in range(60)]
    heavy = [body.encode()] * 90
    answers = []

    def post(content):
        try:
            answers.append((ask(server, token, "POST", "/v1/actions", content).status, content))
        except OSError as error:
            answers.append((str(error), content))

    threads = [threading.Thread(target=post, args=[content]) for pair in zip(heavy, bodies) for content in pair]
    threads += [threading.Thread(target=post, args=[content]) for content in heavy[60:]]
    for thread in threads:
        thread.start()
    revoked = tool(workspace, "token", "revoke", "--subject", "ann", "--data", server.data)
    expect(revoked.returncode == 0, revoked.stderr)
    os.kill(server.pid, signal.SIGHUP)
    wait_until(lambda: '"ended":"1"' in server.log_text(), "the token is revoked", 3)
    ended = time.time()
    with Client(server.port, 20) as client:
        before = len(client.get("/v1/state/ann", **bearer(admin)).json)
    for thread in threads:
        thread.join()
    with Client(server.port, 20) as client:
        after = len(client.get("/v1/state/ann", **bearer(admin)).json)
        last = client.get("/v1/changes?before=now&limit=1", **bearer(admin)).json["changes"][0]["time"]
    statuses = [status for status, content in answers if content in bodies]
    expect(after - before <= 1 and parse(last) <= ended + 0.05, f"{after - before} commits after the revocation")
    expect(statuses.count(401) > 0, f"no body was waiting when the token was revoked: {statuses}")
    expect_equal(set(statuses) - {200, 401}, set(), "the other answers")


def scheduled(server, admin, token, workspace, delay, between=lambda: None):
    """Whether what a token has scheduled is done when it is due; the reason for which it is not, or None."""
    name = f"job{time.monotonic_ns()}"
    answer = ask(server, token, "POST", "/v1/actions", put(f"/a/{name}", 1, id=name, schedule={"after": delay}))
    expect_equal(answer.status, 200, f"scheduling: {answer.body}")
    between()
    wait_until(lambda: ask(server, admin, target="/v1/schedule").json["count"] == 0, "it is due", delay + 5)
    if ask(server, admin, target=f"/v1/state/a/{name}").status == 200:
        return None
    types = "storekeeper/refused,storekeeper/unschedule"
    last = ask(server, admin, target=f"/v1/changes?since=oldest&types={types}").json["changes"][-1]["action"]
    # The server takes back whole batches.
    return "taken back" if isinstance(last, list) else last["payload"]["code"]


def test_what_was_scheduled_is_judged_by_the_kind_of_its_credential(workspace, key):
    data, path = workspace.path("data"), write_keys(workspace.path("keys.json"), key)
    server = workspace.server(data=data, domain="document", jwt_keys=path)
    admin = key.sign(claims("admin"))
    ask(server, admin, "POST", "/v1/actions", put("/a", {}))
    bob = make_token(workspace, data, "bob", "--read", "/a", "--dispatch", "document/*")
    tokens = {"bob": bob, "carl": make_token(workspace, data, "carl", "--read", "/a")}
    wait_until(lambda: ask(server, bob, target="/v1/state/a").status == 200, "bob's token is known", 2)

    def revoke(subject):
        expect(tool(workspace, "token", "revoke", "--subject", subject, "--data", data).returncode == 0, "revoke")
        wait_until(lambda: ask(server, tokens[subject]).status == 401, "the token is revoked", 0.7)

    expect_equal(scheduled(server, admin, bob, workspace, 1), None, "bob's token is good")
    expect_equal(scheduled(server, admin, bob, workspace, 2, lambda: revoke("bob")), "taken back", "bob has none any more")
    carl = key.sign(claims("carl"))
    expect_equal(scheduled(server, admin, carl, workspace, 1), None, "carl's JWT, beside a weaker token of the file")
    expect_equal(scheduled(server, admin, carl, workspace, 1.5, lambda: revoke("carl")), None, "carl's JWT alone")

    # The kind is recorded: a restart, and a server that is started without the keys, know it.
    bert = tokens["bert"] = make_token(workspace, data, "bert", "--read", "/a", "--dispatch", "document/*")
    expect_equal(scheduled(server, admin, bert, workspace, 2.5, lambda: (revoke("bert"), server.stop(), server.start())), "taken back", "after a restart")
    with Client(server.port, 20) as client:
        page = client.get("/v1/changes?since=oldest&types=storekeeper/schedule", **bearer(admin)).json["changes"]
    kinds = [change["action"]["payload"].get("credential") for change in page]
    expect_equal(kinds, ["file", "file", "jwt", "jwt", "file"], "what the log says")
