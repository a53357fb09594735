"""JSON Web Tokens: which of them get in, for how long, and what unknown ones cost."""

import json
import os
import socket
import subprocess
import threading
import time

import pytest

from harness.client import Client
from harness.expectations import expect, remains, wait_until
from harness.issuer import ALGORITHMS, Key, claims, encode, jwt, number, sign_with_secret, write_keys
from harness.messages import encode_request
from harness.metrics import Figures
from harness.server import log_when_ready, start_refusal
from harness.tokens import await_token, bearer, make_token

ADD = b'{"type":"counter/add","payload":{"amount":1}}'


@pytest.fixture
def issuer(workspace):
    """The path of a key file, and a key of each algorithm in it."""
    if jwt is None:
        pytest.skip("PyJWT and cryptography are not installed")
    keys = {algorithm: Key(algorithm, f"key {algorithm}") for algorithm in ALGORITHMS}
    return write_keys(workspace.path("keys.json"), *keys.values()), keys


def ask(server, token, target="/v1/state/counter", source="127.0.0.1", **fields):
    """The answer to one request on a connection of its own."""
    with Client.__new__(Client) as client:
        client.socket = socket.create_connection(("127.0.0.1", server.port), 20, (source, 0))
        client.buffer = bytearray()
        return client.request("GET", target, None, fields | bearer(token) | {"X-Request-Id": "x"})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_of_each_algorithm_gives_what_its_claims_say(workspace, issuer, algorithm):
    path, keys = issuer
    server = workspace.server(jwt_keys=path)
    key = keys[algorithm]
    token = key.sign(claims("anna", read=["/counter", "actions:counter/*"], dispatch=["counter/*"], operate=False))
    with server.client() as client:
        # The first request of the token is one with a body.
        client.commit(ADD, **bearer(token))
        expect(client.get("/v1/state/counter", **bearer(token)).json == {"value": 1}, "the state is another")
        expect(client.get("/v1/state", **bearer(token)).status == 404, "the whole state is visible")
        expect(client.get("/metrics", **bearer(token)).status in (401, 403, 404), "the metrics are visible")
        expect(client.post(b'{"type":"tasks/add","payload":{}}', **bearer(token)).status in (400, 403, 404, 422), "tasks")
        page = client.get("/v1/changes?since=oldest", **bearer(token)).json
        expect(page["changes"][-1]["by"] == "anna", f"{page}")
        # A key without a name, and a token without one, are tried, too.
        plain = Key(algorithm)
        write_keys(path, *keys.values(), plain)
        token = plain.sign(claims("bert"))
        is_taken = lambda: client.get("/v1/state/counter", **bearer(token)).status == 200
        wait_until(is_taken, "a key without a name is known", 1, pause=0.2)
        expect(client.get("/v1/state/counter", **bearer(token + "x")).status == 401, "a longer signature is good")


def test_the_first_request_of_a_token_can_wait_stream_or_have_a_long_body(workspace, issuer):
    path, keys = issuer
    server = workspace.server(jwt_keys=path)

    def fresh(**further):
        return bearer(keys["ES256"].sign(claims(jti=os.urandom(8).hex(), **further)))

    def first(method, target, body=None, **fields):
        client = Client(server.port, 10)
        client.send(encode_request(method, target, body, fields | fresh()))
        return client

    tag = ask(server, keys["ES256"].sign(claims())).fields["etag"]
    waits = [first("GET", "/v1/state/counter?wait=50", **{"If-None-Match": tag}) for _ in range(20)]
    streams = [first("GET", "/v1/state/counter", Accept="text/event-stream") for _ in range(20)]
    for stream in streams:
        while b"event" not in stream.buffer and b"data:" not in stream.buffer:
            stream.buffer += stream.socket.recv(1 << 16)
    short = first("GET", "/v1/state/counter?wait=1", **{"If-None-Match": tag})
    expect(short.receive().status in (200, 304), "a wait does not end in time")
    long = first("POST", "/v1/actions", b"[" + ADD.replace(b"}}", b" " * 300_000 + b"}}") + b"]")
    expect(long.receive().status == 200, "a long body was not taken")
    for wait in waits:
        answer = wait.receive()
        expect(answer.status == 200 and answer.json == {"value": 1}, f"{answer}")
        # The connection goes on.
        wait.send(encode_request("GET", "/v1/state/counter", None, fresh()))
        expect(wait.receive().status == 200, "the next request was refused")
    for stream in streams:
        while b'"value":1' not in stream.buffer:
            stream.buffer += stream.socket.recv(1 << 16)
    closed = first("GET", "/v1/state/counter")
    closed.socket.shutdown(socket.SHUT_WR)
    expect(closed.receive().status == 200, "a client that has finished sending gets no answer")


def wrong(keys):
    """Tokens that are not good, by what is wrong with them; the rules ask for issuer `them` and audience `us`."""
    right = {"iss": "them", "aud": "us"}
    rs, es = keys["RS256"], keys["ES256"]
    good = es.sign(claims(**right))
    head, body, signature = good.split(".")
    now = int(time.time())
    public = rs.public
    return {
        "expired": es.sign(claims(seconds=-61, **right)),
        "not yet valid": es.sign(claims(nbf=now + 300, **right)),
        "of another issuer": es.sign(claims(iss="they", aud="us")),
        "of no issuer": es.sign(claims(aud="us")),
        "for another audience": es.sign(claims(iss="them", aud=["you", "them"])),
        "for no audience": es.sign(claims(iss="them")),
        "without exp": es.sign(claims(exp=None, **right)),
        "with a text as exp": sign_with_secret(keys["HS256"].private, claims(exp=str(now + 60), **right), kid="key HS256"),
        "without sub": es.sign(claims(sub=None, **right)),
        "with spaces in sub": es.sign(claims("a b", **right)),
        "without a grant": es.sign(claims(storekeeper=None, **right)),
        "with a grant that is misspelled": es.sign(claims(read=["tasks"], **right)),
        "by another key of the algorithm": Key("ES256", "key ES256").sign(claims(**right)),
        "by a secret that is not known": Key("HS256", "key HS256").sign(claims(**right)),
        "by an RSA key that is not known": Key("RS256", "key RS256").sign(claims(**right)),
        "by an Ed25519 key that is not known": Key("EdDSA", "key EdDSA").sign(claims(**right)),
        "with the name of another key": es.sign(claims(**right), kid="key RS256"),
        "with a name that is not known": es.sign(claims(**right), kid="key"),
        "with no algorithm": encode({"alg": "none"}) + "." + body + ".",
        "with no algorithm and a signature": encode({"alg": "none"}) + "." + body + "." + signature,
        "with NONE": encode({"alg": "NONE"}) + "." + body + ".",
        "with the public RSA key as a secret": sign_with_secret(rs.pem(), claims(**right), kid="key RS256"),
        "with the public RSA key as a secret and no name": sign_with_secret(rs.pem(), claims(**right)),
        "with the modulus as a secret": sign_with_secret(public["n"].encode(), claims(**right), kid="key HS256"),
        "with the key set's entry as a secret": sign_with_secret(json.dumps(public).encode(), claims(**right)),
        "with an empty secret": sign_with_secret(b"", claims(**right), kid="key HS256"),
        "with a key of its own": Key("RS256").sign(claims(**right), jwk=Key("RS256").public),
        "with another algorithm of the same key": jwt.encode(claims(**right), rs.private, "RS512", headers={"kid": rs.name}),
        "with PS256": jwt.encode(claims(**right), rs.private, "PS256", headers={"kid": rs.name}),
        "with another algorithm in the head": encode({"alg": "EdDSA"}) + "." + body + "." + signature,
        "of another type": es.sign(claims(**right), typ="logout+jwt"),
        "with an extension that must be known": es.sign(claims(**right), crit=["exp"]),
        "cut short": good[:-1],
        "without its signature": head + "." + body + ".",
        "without its last part": head + "." + body,
        "with four parts": good + "." + signature,
        "with the claims of another": head + "." + encode(claims("eve", **right)) + "." + signature,
        "padded": good + "==",
        "in base64": good.replace("-", "+").replace("_", "/") + "/",
        "with the head that is no JSON": encode(b"{") + "." + body + "." + signature,
        "only dots": "..",
        "with a deep head": encode(b"[" * 3000) + "." + body + "." + signature,
        "huge": es.sign(claims(filler="x" * 7000, **right)),
        "huge and unsigned": head + "." + "A" * 12_000 + "." + signature,
    }, es.sign(claims(**right)), es.sign(claims(iss="them", aud=["you", "us"], nbf=now + 30, seconds=-5))


def test_each_wrong_token_has_the_same_answer_and_none_is_logged(workspace, issuer):
    path, keys = issuer
    tokens, good, leeway = wrong(keys)
    answers, servers = {}, []
    for name, token in tokens.items():
        # A server for each few, because the address would be throttled.
        if len(answers) % 10 == 0:
            servers.append(
                workspace.server(data="none", jwt_keys=path, jwt_issuer="them", jwt_audience="us", log_level="trace")
            )
        answer = ask(servers[-1], token)
        expect(answer.status == 401, f"a token {name} was answered {answer}")
        expect("www-authenticate" in answer.fields, f"a token {name} has no challenge")
        del answer.fields["date"]
        answers[name] = (answer.fields, answer.body)
    expect(len({str(answer) for answer in answers.values()}) == 1, f"the answers differ: {answers}")
    for index, server in enumerate(servers):
        counted = Figures(ask(server, good, "/metrics").body).by("refusals_total", "code")[("unauthorized",)]
        expect(counted == min(10, len(tokens) - 10 * index), f"{counted} refusals were counted")
        expect(ask(server, good).status == 200, "a good token was refused")
        expect(ask(server, leeway).status == 200, "a token within the leeway was refused")
        with open(server.log) as log:
            text = log.read()
        for name, token in tokens.items():
            for part in token.split("."):
                expect(len(part) < 20 or part[:20] not in text, f"the log has a part of the token {name}")


@pytest.mark.prompt
def test_a_key_that_is_removed_ends_its_waits_and_streams_within_a_second(workspace, issuer):
    path, keys = issuer
    server = workspace.server(jwt_keys=path)
    tokens = {name: keys[name].sign(claims(name)) for name in ("ES256", "EdDSA")}
    clients = watch(server, tokens, ask(server, tokens["ES256"]))
    time.sleep(0.3)
    begun = time.monotonic()
    write_keys(path, *[key for name, key in keys.items() if name != "ES256"])
    for (name, target), client in clients.items():
        if name == "ES256":
            end_of(client, target)
    expect(time.monotonic() - begun < 1, f"a client without a key was served for {time.monotonic() - begun:.2f} s")
    expect(ask(server, tokens["ES256"]).status == 401, "a token of a key that is gone is taken")
    with server.client() as client:
        client.commit(ADD, **bearer(tokens["EdDSA"]))
    for (name, target), client in clients.items():
        if name == "EdDSA":
            data = bytes(client.buffer)
            while b"counter/add" not in data and b'"value":1' not in data:
                more = client.socket.recv(1 << 16)
                expect(more, f"{target} of another key has ended")
                data += more
    # The key comes back, and with it its tokens.
    write_keys(path, *keys.values())
    wait_until(lambda: ask(server, tokens["ES256"]).status == 200, "a key that came back is known", 1, pause=0.2)


def watch(server, tokens, latest):
    """Clients that wait and stream from an answer on, by the name of the token and the target."""
    clients = {}
    for name, token in tokens.items():
        for target, fields in [
            ("/v1/state/counter?wait=50", {"If-None-Match": latest.fields["etag"]}),
            (f"/v1/changes?since={latest.cursor}&wait=50", {}),
            ("/v1/state/counter", {"Accept": "text/event-stream"}),
            ("/v1/changes?since=now", {"Accept": "application/x-ndjson"}),
        ]:
            client = clients[name, target] = Client(server.port, timeout=10)
            client.send(encode_request("GET", target, None, fields | bearer(token)))
    return clients


def end_of(client, target):
    """Reads until an answer of 401 or the end of a stream."""
    data = bytearray()
    while not (data.startswith(b"HTTP/1.1 401") and data.endswith(b"}\n")) and not data.endswith(b"\n0\r\n\r\n"):
        more = client.socket.recv(1 << 16)
        if not more:
            break
        data += more
    expect(data.startswith((b"HTTP/1.1 200", b"HTTP/1.1 401")), f"{target} ended with {bytes(data)}")
    expect(data.startswith(b"HTTP/1.1 401") == ("wait" in target), f"{target} ended with {bytes(data)}")


@pytest.mark.prompt
def test_exp_ends_waits_streams_and_kept_answers_within_a_second(workspace, issuer):
    path, keys = issuer
    server = workspace.server(jwt_keys=path, jwt_leeway_seconds=1)
    made = claims("brief", seconds=2)
    token, long = keys["RS256"].sign(made), keys["RS256"].sign(claims("long"))
    clients = watch(server, {"brief": token, "long": long}, ask(server, long))
    with server.client() as client:
        # The transport keeps this answer.
        is_taken = lambda: client.get("/v1/state/counter", **bearer(token)).status == 200
        remains(is_taken, "the token is taken until exp and leeway", made["exp"] + 0.5 - time.time())
        for (name, target), waiting in clients.items():
            if name == "brief":
                end_of(waiting, target)
        late = time.time() - made["exp"] - 1
        expect(-0.1 < late < 1, f"the waits and streams ended {late:.2f} s after exp and the leeway")
        expect(client.get("/v1/state/counter", **bearer(token)).status == 401, "the token is taken after its end")
        expect(client.get("/v1/state/counter", **bearer(long)).status == 200, "another token has ended, too")
    for (name, _), waiting in clients.items():
        if name == "long":
            waiting.socket.setblocking(False)
            try:
                data = waiting.socket.recv(1 << 16)
                expect(data.startswith(b"HTTP/1.1 200") and not data.endswith(b"0\r\n\r\n"), f"{data}")
            except BlockingIOError:
                pass


@pytest.mark.alone
def test_a_flood_of_unknown_tokens_costs_little_and_delays_no_other_client(workspace, issuer, figures):
    path, keys = issuer
    server = workspace.server(data="none", jwt_keys=path)
    token = keys["RS256"].sign(claims())
    stranger = Key("RS256", "key RS256")
    bad = [stranger.sign(claims(jti=str(number))) for number in range(50)]
    expect(ask(server, token).status == 200, "the token is refused")
    statuses, times, done = [], [], threading.Event()

    def flood(offset):
        with Client.__new__(Client) as client:
            client.socket = socket.create_connection(("127.0.0.1", server.port), 20, ("127.0.0.3", 0))
            client.buffer = bytearray()
            for count in range(1000):
                made = bad[(offset + count) % len(bad)]
                # Each token is another one.
                statuses.append(client.get("/v1/state/counter", **bearer(f"{made[:-8]}{offset:02x}{count:04x}AA")).status)

    def observe():
        with server.client() as client:
            while not done.wait(0.005):
                begun = time.monotonic()
                expect(client.get("/v1/state/counter?pretty", **bearer(token)).status == 200, "the token is refused")
                times.append(time.monotonic() - begun)

    before, begun = server.cpu_seconds(), time.monotonic()
    threads = [threading.Thread(target=flood, args=[offset]) for offset in range(4)]
    observer = threading.Thread(target=observe)
    for thread in [observer, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    observer.join()
    seconds, cost = time.monotonic() - begun, server.cpu_seconds() - before
    expect(len(statuses) == 4000 and set(statuses) == {401, 429}, f"{len(statuses)} answers: {set(statuses)}")
    expect(statuses.count(401) <= 21 + seconds, f"{statuses.count(401)} tokens were verified in {seconds:.1f} s")
    fresh = ask(server, keys["RS256"].sign(claims("other")), source="127.0.0.4")
    expect(fresh.status == 200, f"a new token of another address is answered {fresh}")
    expect(ask(server, keys["RS256"].sign(claims("third")), source="127.0.0.3").status == 429, "the address is not throttled")
    expect(ask(server, token, source="127.0.0.3").status == 200, "a known token is throttled")
    times.sort()
    figures(
        f"4,000 unknown tokens: {statuses.count(401)} verified, {cost * 1e6 / 4000:.0f} us of CPU each; beside them the"
        f" known client had its answers in {times[len(times) // 2] * 1e3:.2f} ms (median), {times[-1] * 1e3:.2f} ms (longest)"
    )


def test_a_crowd_of_new_tokens_of_one_address_is_served(workspace, issuer, figures):
    path, keys = issuer
    server = workspace.server(data="none", jwt_keys=path)
    lines = []
    for algorithm in ALGORITHMS:
        requests = [
            encode_request("GET", "/v1/state/counter", None, bearer(keys[algorithm].sign(claims(f"user{number}"))))
            for number in range(300)
        ]
        clients = [Client(server.port, 20) for _ in requests]
        before, begun = server.cpu_seconds(), time.monotonic()
        for client, request in zip(clients, requests):
            client.send(request)
        for client in clients:
            expect(client.receive().status == 200, f"a good token of {algorithm} was refused")
        first, cost = time.monotonic() - begun, server.cpu_seconds() - before
        before = server.cpu_seconds()
        for client, request in zip(clients, requests):
            client.send(request)
        for client in clients:
            expect(client.receive().status == 200, f"a known token of {algorithm} was refused")
            client.close()
        known = server.cpu_seconds() - before
        lines.append(f"{algorithm} {(cost - known) * 1e6 / 300:.0f} us in {first * 1e3:.0f} ms")
    figures("300 new tokens at once, CPU of each beside that of a known one: " + ", ".join(lines))


def test_keys_make_a_server_ask_and_tokens_of_the_file_work_beside_them(workspace, issuer):
    path, keys = issuer
    data = workspace.path("data")
    server = workspace.server(data=data, jwt_keys=path)
    with server.client() as client:
        expect(client.get("/v1/state/counter").status == 401, "loopback is open")
        expect(client.get("/livez").status == 200 and client.get("/readyz").status == 200, "a probe is refused")
        expect(client.get("/livez", **bearer("a.b.c")).status == 200, "a probe with a bad token is refused")
        expect(client.get("/v1/state/counter", **bearer(keys["EdDSA"].sign(claims()))).status == 200, "EdDSA")
        await_token(server, make_token(workspace, data, "file", "--all"), 1)
    server = workspace.server(data="none", jwt_keys=path, address="0.0.0.0")
    expect("Bearer" not in log_when_ready(server), "a server with keys prints a token")
    expect(ask(server, keys["EdDSA"].sign(claims())).status == 200, "the token is refused on another address")


def test_a_key_file_that_is_broken_locks_no_client_out_and_shows_and_one_that_is_gone_lets_none_in(workspace, issuer):
    path, keys = issuer
    server = workspace.server(data="none", jwt_keys=path)
    token = keys["ES256"].sign(claims())

    def shown():
        verbose = ask(server, token, "/readyz?verbose")
        expect(verbose.status == 200, f"the server is not ready: {verbose}")
        up = Figures(ask(server, token, "/metrics").body)
        return [line for line in verbose.body.decode().splitlines() if "tokens" in line], up["key_file_up"], up["token_file_up"]

    expect(ask(server, token).status == 200, "the token is refused")
    expect(shown() == (["[+]tokens: no fault in their files"], 1, 1), f"a good file shows: {shown()}")
    for content in ['{"keys":', "<html>502 Bad Gateway</html>"]:
        with open(path, "w") as file:
            file.write(content)
        remains(lambda: ask(server, token).status == 200, "a known token is taken", 0.8)
        expect(ask(server, keys["ES256"].sign(claims("new"))).status == 200, "a new token is refused")
        [line], key_file_up, token_file_up = shown()
        expect(line.startswith("[!]tokens: the key file") and path in line, line)
        expect((key_file_up, token_file_up) == (0, 1), "the metrics say that the file is good")
    expect(server.log_text().count("keys not read") == 2, server.log_text())
    write_keys(path, *keys.values())
    wait_until(lambda: shown() == (["[+]tokens: no fault in their files"], 1, 1), "a mended file shows", 0.8)
    os.remove(path)
    wait_until(lambda: ask(server, token).status == 401, "no token without a key file is taken", 0.8)
    expect(ask(server, keys["ES256"].sign(claims("newer"))).status == 401, "a new token without a key file is taken")


def test_a_token_file_that_is_misspelled_shows_too(workspace, issuer):
    path, keys = issuer
    data = workspace.path("data")
    server = workspace.server(data=data, jwt_keys=path)
    token = keys["ES256"].sign(claims())
    make_token(workspace, data, "file", "--all")
    with open(os.path.join(data, "tokens.json"), "w") as file:
        file.write('{"tokens":[{}]}')
    verbose = lambda: ask(server, token, "/readyz?verbose").body.decode()
    shown = lambda: [line[:25] for line in verbose().splitlines() if "tokens" in line]
    wait_until(lambda: shown() == ["[!]tokens: the token file"], verbose, 1.2)
    up = Figures(ask(server, token, "/metrics").body)
    expect((up["token_file_up"], up["key_file_up"]) == (0, 1), "the metrics say that the file is good")


def odd_keys(keys):
    """Keys that the server cannot use, by what is odd in them."""
    rs, es = keys["RS256"].public, keys["ES256"].public
    def long(bits):
        return number((1 << bits - 1) + 1)
    made = {
        "Ed448": {"kty": "OKP", "crv": "Ed448", "alg": "EdDSA", "use": "sig", "x": encode(os.urandom(57))},
        "Ed448 with the new name of Ed25519": {"kty": "OKP", "crv": "Ed448", "alg": "Ed25519", "x": encode(os.urandom(57))},
        "1024 bits": {"kty": "RSA", "alg": "RS256", "n": long(1024), "e": "AQAB"},
        "2047 bits": {"kty": "RSA", "alg": "RS256", "n": long(2047), "e": "AQAB"},
        "16384 bits": {"kty": "RSA", "n": long(16384), "e": "AQAB"},
        "the exponent 1": {"kty": "RSA", "n": rs["n"], "e": "AQ"},
        "an exponent of 2048 bits": {"kty": "RSA", "n": rs["n"], "e": rs["n"]},
        "an even modulus": {"kty": "RSA", "n": number(1 << 2047), "e": "AQAB"},
        "x5c alone": {"kty": "RSA", "alg": "RS256", "use": "sig", "x5c": ["MIIB"]},
        "RSA with ES256": {**rs, "alg": "ES256"},
        "P-384 with ES256": {**es, "crv": "P-384"},
        "P-256 without y": {"kty": "EC", "crv": "P-256", "x": es["x"]},
        "a point off the curve": {**es, "y": es["x"]},
        "the point 0, 0": {**es, "x": encode(bytes(32)), "y": encode(bytes(32))},
        "a coordinate of 31 bytes": {**es, "x": encode(b"x" * 31)},
        "oct without alg": {"kty": "oct", "k": encode(os.urandom(32))},
        "oct of 16 bytes": {"kty": "oct", "alg": "HS256", "k": encode(os.urandom(16))},
        "oct of no byte": {"kty": "oct", "alg": "HS256", "k": ""},
        "no kty": {"alg": "RS256"},
        "kid that is a number": {**rs, "kid": 7},
        "alg that is a number": {**rs, "alg": 7},
        "key_ops that is a text": {**rs, "key_ops": "verify"},
        "base64 in place of base64url": {**rs, "n": "+" + rs["n"][1:]},
    }
    return [*({"kid": "odd", **key} | ({"kid": 7} if key.get("kid") == 7 else {}) for key in made.values()), 17, None, "key", []]


def test_keys_that_cannot_be_used_are_left_out_with_a_warning_at_a_start(workspace, issuer):
    path, keys = issuer
    odd = odd_keys(keys)
    write_keys(path, *odd, *keys.values())
    server = workspace.server(data="none", jwt_keys=path)
    for key in keys.values():
        expect(ask(server, key.sign(claims())).status == 200, f"the key for {key.algorithm} is not in force")
    with open(server.log) as log:
        warnings = [json.loads(line) for line in log if "key left out" in line]
    expect(len(warnings) == len(odd), f"{len(warnings)} warnings for {len(odd)} keys")
    expect(all(warning["level"] == "warning" for warning in warnings), "the level is another")
    expect(all(f"key {index + 1}" in str(warning) for index, warning in enumerate(warnings)), f"{warnings}")


def test_keys_that_cannot_be_used_keep_no_withdrawn_key_in_force(workspace, issuer):
    path, keys = issuer
    write_keys(path, keys["RS256"])
    server = workspace.server(data="none", jwt_keys=path)
    old = keys["RS256"].sign(claims())
    expect(ask(server, old).status == 200, "the old key is not in force")
    odd = odd_keys(keys)
    write_keys(path, *odd, keys["EdDSA"])
    new = keys["EdDSA"].sign(claims())
    wait_until(lambda: ask(server, new).status == 200, "the new key is in force", 1.5, pause=0.2)
    expect(ask(server, old).status == 401, "the withdrawn key is in force")
    read = [json.loads(line) for line in open(server.log) if "keys read" in line][-1]
    expect((read["keys"], read["skipped"]) == ("1", str(len(odd))), f"{read}")
    # No usable key is no key, too.
    write_keys(path, *odd_keys(keys))
    wait_until(lambda: ask(server, new).status == 401, "the withdrawn key is not in force", 1.5, pause=0.2)
    write_keys(path, *[Key("EdDSA", f"{index}") for index in range(16)], keys["EdDSA"])
    wait_until(lambda: "no more than 16 keys" in open(server.log).read(), "a warning of the 17th key", 1.5, pause=0.2)


def test_check_refuses_the_key_files_that_a_start_refuses(workspace, issuer):
    path, keys = issuer
    environment = {key: value for key, value in os.environ.items() if not key.startswith("STOREKEEPER_")}

    def check(*words):
        words = [workspace.binary, "check", "--jwt-keys", path, *words]
        return subprocess.run(words, capture_output=True, text=True, timeout=20, env=environment)

    checked = check()
    expect((checked.returncode, checked.stderr) == (0, ""), f"a good file is refused: {checked}")
    odd = odd_keys(keys)
    write_keys(path, *odd, keys["EdDSA"])
    checked = check()
    lines = checked.stderr.splitlines()
    expect(checked.returncode == 0, "a file with a good key and odd ones is refused")
    expect(len(lines) == len(odd), f"{len(lines)} lines for {len(odd)} odd keys")
    expect(all(line.startswith(f"Warning: key left out: key {index + 1}") for index, line in enumerate(lines)), f"{lines}")
    for content in ("", "{", "<html>", "[]", '{"keys":[]}', json.dumps({"keys": odd_keys(keys)[:1]}), None):
        if content is None:
            os.remove(path)
        else:
            with open(path, "w") as file:
                file.write(content)
        data = workspace.path("data")
        said = start_refusal(workspace, data, "key file", jwt_keys=path)
        expect(not os.path.exists(data), "a start that is refused has made a journal")
        checked = check()
        expect(checked.returncode == 78, f"check ends with {checked.returncode} for {content!r}")
        expect(said.split("the key file")[-1].strip()[:40] in checked.stderr + checked.stdout, f"{said}: {checked.stderr}")
        # The start of an open server does not look at them.
        expect(check("--open").returncode == 0, "check refuses what a start with --open does not read")


def test_a_line_at_debug_says_why_a_token_is_refused(workspace, issuer):
    path, keys = issuer
    right = {"iss": "them", "aud": "us"}
    key, head = keys["EdDSA"], {"log_level": "debug", "jwt_keys": path, "jwt_issuer": "them", "jwt_audience": "us"}
    twice = json.dumps(claims(**right)).replace('"sub": "ci"', '"sub": "ci", "sub": "admin"')
    events = {"http://schemas.openid.net/event/backchannel-logout": {}}
    cases = [
        ("iss", "them", key.sign(claims(iss="s3cret", aud="us"))),
        ("aud", "us", key.sign(claims(iss="them", aud=["s3cret"]))),
        ("exp", "later than now", key.sign(claims(seconds=-100, **right))),
        ("nbf", "not later than now", key.sign(claims(nbf=time.time() + 300, **right))),
        ("sub", "1 to 255 bytes", key.sign(claims("s3cret sub", **right))),
        ("storekeeper", "jwt_grant has to be set", key.sign(claims(storekeeper=None, **right))),
        ("events", "none", key.sign(claims(events=events, **right))),
        ("kid", "that of a key of the file", key.sign(claims(**right), kid="s3cret")),
        ("signature", "that of a key of the file", Key("EdDSA", "key EdDSA").sign(claims(**right))),
        ("alg", "HS256", encode({"alg": "none"}) + "." + encode(claims(**right)) + "."),
        ("typ", "JWT", key.sign(claims(**right), typ="logout+jwt")),
        ("sub", "twice", jwt.api_jws.encode(twice.encode(), key.private, "EdDSA", {"kid": "key EdDSA"})),
        ("header", "no name comes twice", encode(b'{"alg":"EdDSA","alg":"EdDSA"}') + "." + encode(claims(**right)) + ".AAAA"),
    ]
    server = workspace.server(data="none", **head)

    def refusals():
        with open(server.log) as log:
            return [json.loads(line) for line in log.read().splitlines() if "JSON Web Token refused" in line]

    for number, (name, expected, token) in enumerate(cases, 1):
        expect(ask(server, token).status == 401, f"a token with another {name} is taken")
        # The answer waits for no line of the log.
        line = wait_until(lambda: refusals()[number - 1 :], "the line")[0]
        expect(line["level"] == "debug" and line["claim"] == name and expected in line["expected"], f"{name}: {line}")
    with open(server.log) as log:
        expect("s3cret" not in log.read(), "the log quotes a token")
    quiet = workspace.server(data="none", **{**head, "log_level": "info"})
    expect(ask(quiet, cases[0][2]).status == 401 and "Token refused" not in quiet.log_text(), "the line is at another level")


def test_ed25519_is_known_by_its_new_name(workspace, issuer):
    """RFC 9864."""
    path, keys = issuer
    key = keys["EdDSA"]
    write_keys(path, key, {**key.public, "alg": "Ed25519", "kid": "new"})
    server = workspace.server(data="none", jwt_keys=path)
    for name in ("EdDSA", "Ed25519"):
        for kid in (key.name, "new"):
            text = encode({"alg": name, "kid": kid}) + "." + encode(claims())
            expect(ask(server, f"{text}.{encode(key.private.sign(text.encode()))}").status == 200, f"{name} with {kid}")
    text = encode({"alg": "Ed448"}) + "." + encode(claims())
    expect(ask(server, f"{text}.{encode(key.private.sign(text.encode()))}").status == 401, "Ed448 is taken for Ed25519")


def test_a_key_of_rsa_needs_no_algorithm(workspace, issuer):
    """The sets of some providers leave it out."""
    path, keys = issuer
    public = keys["RS256"].public
    with open(path, "w") as file:
        json.dump({"keys": [{name: public[name] for name in public if name != "alg"}]}, file)
    server = workspace.server(data="none", jwt_keys=path)
    expect(ask(server, keys["RS256"].sign(claims())).status == 200, "a token of the key is refused")
    forged = sign_with_secret(public["n"].encode(), claims(), kid=public["kid"])
    expect(ask(server, forged).status == 401, "a token that takes the public key for a secret is taken")


def test_a_start_refuses_keys_that_it_cannot_use(workspace, issuer):
    path, keys = issuer
    short = keys["RS256"].public | {"n": number((1 << 1023) + 1)}
    for says, content in [
        ("there is no key file", None),
        ("must be a JSON Web Key Set", "{"),
        ("must be a JSON Web Key Set", "[]"),
        ("has no key for HS256, RS256, ES256, EdDSA or Ed25519", '{"keys":[]}'),
        ("has no key for HS256", '{"keys":[17]}'),
        ("add alg", json.dumps({"keys": [{"kty": "oct", "k": number(1 << 300)}]})),
        ("at least 32 bytes", '{"keys":[{"kty":"oct","alg":"HS256","k":"c2VjcmV0"}]}'),
        ("at least 2048 bits", json.dumps({"keys": [short]})),
        ("it is not a key for ES256", json.dumps({"keys": [keys["ES256"].public | {"x": keys["ES256"].public["y"]}]})),
    ]:
        if content is None:
            os.remove(path)
        else:
            with open(path, "w") as file:
                file.write(content)
        text = start_refusal(workspace, "none", says, jwt_keys=path)
        expect("c2VjcmV0" not in text, f"the sentence quotes a secret: {text}")
