"""Who gets in: each wrong credential has one answer, and what a token allows begins and ends with it."""

import base64
import json
import os
import signal
import subprocess
import time

import pytest

from harness.client import Client
from harness.expectations import expect, expect_equal, remains, wait_until
from harness.messages import encode_request
from harness.server import log_when_ready
from harness.tokens import await_token, bearer, make_token, token_names

ADD = b'{"type":"counter/add","payload":{"amount":1}}'


@pytest.fixture
def protected(workspace):
    """A data directory with a token, its token, and a server on it."""
    data = workspace.path("data")
    token = make_token(workspace, data, "ci", "--all")
    return data, token, workspace.server(data=data, log_level="trace")


def wrong(token):
    """Fields that are no credential, or not a known one."""
    flipped = token[:-1] + ("A" if token[-1] != "A" else "B")
    encoded = base64.b64encode(f"x:{flipped}".encode()).decode()
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    claims = base64.urlsafe_b64encode(b'{"sub":"admin","storekeeper":{"read":["*"]}}').decode().rstrip("=")
    return {
        "none": [],
        "another token": [flipped],
        "a token cut short": [f"Bearer {token[:-1]}"],
        "a longer token": [f"Bearer {token}x"],
        "in upper case": [f"Bearer {token.upper()}"],
        "nothing behind the scheme": ["Bearer"],
        "empty": [""],
        "another scheme": [f"Digest {token}"],
        "no scheme": [token],
        "two words": [f"Bearer {token} {token}"],
        "twice": [f"Bearer {token}", f"Bearer {token}"],
        "one good and one bad": [f"Bearer {token}", f"Bearer {flipped}"],
        "huge": ["Bearer " + "x" * 4096],
        "basic with another password": [f"Basic {encoded}"],
        "basic that is no base64": ["Basic ***"],
        "basic without a colon": ["Basic " + base64.b64encode(token.encode()).decode()],
        "a JWT with the algorithm none": [f"Bearer {none}.{claims}."],
        "a JWT of nobody": [f"Bearer {none}.{claims}.aaaa"],
        "bytes that are no UTF-8": ["Bearer \xff\xfe"],
        "the hash of the token": ["Bearer sha256:" + "0" * 64],
    }


def ask(port, values, target="/v1/state/counter", **fields):
    with Client(port, timeout=5) as client:
        lines = [f"GET {target} HTTP/1.1", "Host: 127.0.0.1", "X-Request-Id: x"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        lines += [f"Authorization: {value}" for value in values]
        client.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")
        return client.receive()


def test_each_wrong_credential_has_the_same_answer_and_none_is_logged(workspace, protected):
    data, token, _ = protected
    answers = {}
    for name, values in wrong(token).items():
        # A server for each few, because the address would be throttled.
        if len(answers) % 10 == 0:
            server = workspace.server(data="none", tokens=os.path.join(data, "tokens.json"), log_level="trace")
        answer = ask(server.port, values)
        expect(answer.status == 401, f"{name} was answered {answer}")
        expect("www-authenticate" in answer.fields, f"{name} has no challenge")
        del answer.fields["date"]
        answers[name] = (answer.fields, answer.body)
    expect(len({str(answer) for answer in answers.values()}) == 1, f"the answers differ: {answers}")
    good = [[f"Bearer {token}"], [f"bearer  {token}"], ["Basic " + base64.b64encode(f"a:{token}".encode()).decode()]]
    for values in good:
        expect(ask(server.port, values).status == 200, f"{values} was refused")
    expect(ask(server.port, [], f"/v1/state?access_token={token}").status == 401, "a token in a query counts for a GET")
    with open(server.log) as log:
        text = log.read()
    expect(token not in text and token[:12] not in text, "the log has the token")
    with open(os.path.join(data, "tokens.json")) as file:
        expect(token not in file.read(), "the file has the token")


def test_an_address_that_guesses_is_throttled_and_its_good_token_is_not(protected):
    _, token, server = protected
    statuses = [ask(server.port, [f"Bearer guess{number}"]).status for number in range(40)]
    expect(statuses[:20] == [401] * 20 and 429 in statuses, f"{statuses}")
    expect(ask(server.port, [f"Bearer {token}"]).status == 200, "a known token is throttled")
    expect(ask(server.port, [], "/livez").status == 200, "a probe is throttled")


@pytest.mark.prompt
def test_a_revoked_token_ends_its_waits_and_streams_within_a_second(workspace, protected):
    data, token, server = protected
    other = make_token(workspace, data, "other", "--read", "/counter")
    await_token(server, other)
    cursor = ask(server.port, [f"Bearer {token}"]).cursor
    clients = {}
    for name, target, fields in [
        ("a wait", "/v1/state/counter?wait=50", {"If-None-Match": "*"}),
        ("a wait for commits", f"/v1/changes?since={cursor}&wait=50", {}),
        ("a stream", "/v1/state/counter", {"Accept": "text/event-stream"}),
        ("a stream of commits", "/v1/changes?since=now", {"Accept": "application/x-ndjson"}),
    ]:
        clients[name] = Client(server.port, timeout=10)
        clients[name].send(encode_request("GET", target, None, fields | bearer(other)))
        kept = clients["kept " + name] = Client(server.port, timeout=10)
        kept.send(encode_request("GET", target, None, fields | bearer(token)))
    # What was asked twice is kept by the transport.
    with server.client() as client:
        for _ in range(4):
            expect(client.get("/v1/state/counter", **bearer(other)).status == 200, "the token is refused")
        time.sleep(0.3)
        begun = time.monotonic()
        revoke(workspace, data, "other")
        for name, waiting in clients.items():
            if not name.startswith("kept"):
                end_of(waiting)
        expect(time.monotonic() - begun < 1, f"a revoked client was served for {time.monotonic() - begun:.2f} s")
        expect(client.get("/v1/state/counter", **bearer(other)).status == 401, "a revoked token is taken")
        client.commit(ADD, **bearer(token))
    for name in ("kept a wait for commits", "kept a stream"):
        expect(b'"value":1' in read_some(clients[name]) or "commits" in name, f"{name} has ended, too")


def end_of(client):
    """Reads until an answer of 401 or the end of a stream."""
    data = bytearray()
    while not (data.startswith(b"HTTP/1.1 401") and data.endswith(b"}\n")) and not data.endswith(b"\n0\r\n\r\n"):
        more = client.socket.recv(1 << 16)
        expect(more or data, "a connection was closed without a word")
        if not more:
            return
        data += more
    expect(data.startswith((b"HTTP/1.1 200", b"HTTP/1.1 401")), data.decode())


def read_some(client, seconds=3):
    data, end = bytes(client.buffer), time.monotonic() + seconds
    while b'"value":1' not in data and time.monotonic() < end:
        data += client.socket.recv(1 << 16)
    return data


def revoke(workspace, data, subject):
    name = token_names(data)[subject]
    command = [workspace.binary, "token", "revoke", "--data", data, "--subject", subject]
    result = subprocess.run(command, check=True, timeout=20, capture_output=True, text=True)
    expect_equal(result.stdout, f"revoked: {name}\n", "what the command prints")


@pytest.mark.prompt
def test_a_new_token_counts_within_a_second_and_at_once_after_sighup(workspace, protected):
    data, _, server = protected
    await_token(server, make_token(workspace, data, "second", "--read", "/counter"), 1)
    token = make_token(workspace, data, "third", "--read", "/counter")
    server.process.send_signal(signal.SIGHUP)
    await_token(server, token, 0.4)
    expect(server.process.poll() is None, "SIGHUP has ended the server")


def test_a_token_file_that_is_broken_or_gone_lets_nobody_in_and_nobody_out(workspace, protected):
    data, token, server = protected
    path = os.path.join(data, "tokens.json")
    expect(os.stat(path).st_mode & 0o777 == 0o600, "others may read the token file")
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write("{")
    status = lambda: ask(server.port, [f"Bearer {token}"]).status
    remains(lambda: status() == 200, "a half-written file locks none of its clients out", 0.8)
    os.remove(path)
    wait_until(lambda: status() == 401, "no token of a file that is gone is taken", 0.8)
    expect(ask(server.port, []).status == 401, "the server has opened without its file")
    with open(path, "w") as file:
        file.write(text)
    await_token(server, token, 1)


def test_a_server_on_loopback_asks_from_the_first_token_on(workspace):
    server = workspace.server(data=workspace.path("data"))
    with server.client() as client:
        for _ in range(3):
            expect(client.get("/v1/state/counter").status == 200, "loopback is not open")
        client.commit(ADD)
        token = make_token(workspace, server.data, "first", "--all")
        wait_until(
            lambda: client.get("/v1/state/counter").status == 401, "a server with a token asks for it", 1, pause=0.1)
        expect(client.post(ADD).status == 401, "an action passes without a token")
        expect(client.get("/v1/changes?since=oldest", **bearer(token)).json["changes"][0].get("by") is None, "by")


def test_a_start_on_another_address_prints_a_token_once_and_open_prints_none(workspace):
    data = workspace.path("data")
    server = workspace.server(data=data, address="0.0.0.0")
    text = log_when_ready(server)
    expect(text.count("Authorization: Bearer ") == 1, f"the log has no token: {text}")
    token = text.split("Authorization: Bearer ")[1].split("'")[0]
    expect(ask(server.port, []).status == 401 and ask(server.port, [f"Bearer {token}x"]).status == 401, "it is open")
    with server.client() as client:
        client.commit(ADD, **bearer(token))
    server.stop()
    server = workspace.server(data=data, address="0.0.0.0")
    expect("Bearer" not in log_when_ready(server), "the token is printed again")
    expect(ask(server.port, [f"Bearer {token}"]).json == {"value": 1}, "the token is forgotten")
    server.stop()
    server = workspace.server(data=data, address="0.0.0.0", access="open")
    expect(ask(server.port, []).status == 200, "an open server asks for a token")
    server = workspace.server(data="none", address="0.0.0.0")
    expect("Authorization: Bearer " in log_when_ready(server), "a server without a directory has no token")


def test_a_commit_names_its_subject_also_after_a_restart(workspace, protected):
    data, token, server = protected
    with server.client() as client:
        client.commit(ADD, **bearer(token))
    server.stop()
    server = workspace.server(data=data)
    with server.client() as client:
        changes = client.get("/v1/changes?since=oldest&by=ci", **bearer(token)).json["changes"]
        expect([change["by"] for change in changes] == ["ci"], f"{changes}")
        expect(client.get("/v1/changes?since=oldest&by=x", **bearer(token)).json["changes"] == [], "by finds another")
        page = client.get("/v1/changes?since=oldest", **bearer(token)).json
        expect(json.dumps(page).count('"by": "ci"') == 1, f"{page}")


def test_a_subject_finds_its_own_ids_whoever_has_used_them_since(workspace, protected):
    data, _, server = protected
    grant = ["--read", "actions:counter/*", "--dispatch", "counter/*"]
    tokens = {subject: make_token(workspace, data, subject, *grant) for subject in ("one", "two")}
    for token in tokens.values():
        await_token(server, token)
    action = b'{"type":"counter/add","payload":{"amount":%d},"id":"mine"}'
    for again in (False, True):
        with server.client() as client:
            for number, subject in enumerate(("one", "two"), 1):
                if not again:
                    client.commit(action % number, **bearer(tokens[subject]))
            for number, subject in enumerate(("one", "two"), 1):
                answer = client.get("/v1/actions/mine", **bearer(tokens[subject]))
                expect(answer.json["version"] == number and answer.json["by"] == subject, f"{subject} finds {answer}")
        if not again:
            server.stop()
            server = workspace.server(data=data, history_commits_max=1)


@pytest.mark.parametrize(
    "settings",
    [
        {"trusted_proxies": "127.0.0.1"},
        {"trusted_proxies": "unix, 10.0.0.0/8"},
        {"allowed_hosts": "localhost, state.example"},
        {"allowed_hosts": "192.0.2.1:8080"},
    ],
)
def test_a_start_with_a_proxy_or_a_public_name_makes_a_token_and_asks_for_it(workspace, settings):
    server = workspace.server(**settings)
    log = log_when_ready(server)
    token = log.partition("Authorization: Bearer ")[2].partition("'")[0]
    for values, status in (([], 401), ([f"Bearer {token}"], 200)):
        answer = ask(server.port, values)
        expect(answer.status == status, f"{answer} with {len(values)} tokens: {log}")
    server.stop()
    again = workspace.server(data=server.data, **settings)
    expect("Bearer" not in log_when_ready(again), "the token is shown twice")
    expect(ask(again.port, [f"Bearer {token}"]).status == 200, "the token is gone after a restart")


def test_names_of_loopback_leave_a_server_open(workspace):
    server = workspace.server(data="none", allowed_hosts="localhost, 127.0.0.1:80, [::1]")
    expect(ask(server.port, []).status == 200, "the server asks for a credential")


@pytest.mark.parametrize("field", ["Forwarded", "Via", "X_Forwarded_For", "x_forwarded_host", "X_Real_IP"])
def test_an_open_server_refuses_what_came_by_a_proxy_and_says_what_to_do(workspace, field):
    server = workspace.server(data="none")
    sent = {field.replace("_", "-"): "for=192.0.2.1"}
    with server.client() as client:
        # The same head comes again, as a kept answer would.
        for _ in range(3):
            answer = client.get("/v1/state/counter", **sent)
            expect(answer.status == 401 and "token create" in answer.json["detail"], str(answer))
            expect(client.get("/v1/state/counter").status == 200, "the machine itself is refused")
        posted = client.request("POST", "/v1/actions", ADD, {"Content-Type": "application/json", **sent})
        expect(posted.status == 401 and client.get("/v1").version == 0, f"{posted}")
        expect(client.get("/livez", **sent).status == 200, "a probe needs a credential")
    declared = workspace.server(data="none", access="open")
    with declared.client() as client:
        expect(client.get("/v1/state/counter", **sent).status == 200, "a server with --open asks")


def test_a_client_learns_what_its_credential_is(workspace, protected):
    data, token, server = protected
    part = make_token(workspace, data, "part", "--read", "/counter", "--dispatch", "tasks/*")
    await_token(server, part)
    with server.client() as client:
        found = client.get("/v1/me", **bearer(part)).json
        grant = {"read": ["/counter"], "dispatch": ["tasks/*"], "others": False, "operate": False, "fork": False}
        expect(found == {"subject": "part", "grant": grant, "expires": None}, f"{found}")
        expect(client.get("/v1/me", **bearer(token)).json["subject"] == "ci", "another subject")
        expect(client.get("/v1/me").status == 401, "nobody is somebody")
        whole = client.get("/v1/state", **bearer(part)).json["detail"]
        expect(whole == "this credential may not see all of the state, only /counter", whole)
    with workspace.server(data="none").client() as client:
        open_to_all = client.get("/v1/me").json
        expect(open_to_all["subject"] is None and open_to_all["grant"]["operate"], f"{open_to_all}")
