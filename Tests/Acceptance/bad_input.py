"""Checks of what is refused: how it is said, that nothing happened, and that the connection goes on."""

import time

from harness.actions import action, add
from harness.client import ConnectionLost
from harness.expectations import Failure, expect, expect_equal, wait_until
from harness.messages import encode_request
from harness.refusals import Case, get, judge, judge_problem, post


def bad_bodies(workspace):
    """A bad body is answered with a problem that names place and expectation; nothing is committed, the connection lives."""
    limit = 65_536
    server = workspace.server(body_bytes_max=limit)
    with server.client() as client:
        # The nearest neighbours that are taken.
        client.commit(add(1))
        client.commit(add(1) + b" " * (limit - len(add(1))))
        client.commit(b'{"type":"counter/add","payload":{"amount":1},"meta":{"deep":' + b"[" * 60 + b"]" * 60 + b"}}")
        client.commit(action("counter/reset"))
        client.commit(add(1), Content_Type="Application/JSON; charset=utf-8")
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    def payload(text):
        return '{"type":"counter/add","payload":' + text + "}"

    long_body = add(1) + b" " * limit
    chunk = b"%x\r\n" % len(long_body) + long_body + b"\r\n0\r\n\r\n"
    chunked = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
    return judge(server, [
        post("empty", "", 400, "malformed-json"),
        post("cut off", '{"type":"counter/add","payload":{"amount":1}', 400, "malformed-json"),
        post("two documents", payload('{"amount":1}') * 2, 400, "malformed-json"),
        post("trailing comma", payload('{"amount":1,}'), 400, "malformed-json"),
        post("NaN", payload('{"amount":NaN}'), 400, "malformed-json"),
        post("leading zero", payload('{"amount":01}'), 400, "malformed-json"),
        post("not UTF-8", b'{"type":"tasks/add","payload":{"id":1,"title":"\xff\xfe"}}', 400, "malformed-json"),
        post("lone surrogate", r'{"type":"tasks/add","payload":{"id":1,"title":"\ud800"}}', 400, "malformed-json"),
        post("control character", b'{"type":"tasks/add","payload":{"id":1,"title":"a\nb"}}', 400, "malformed-json"),
        post("duplicate key", payload('{"amount":1,"amount":2}'), 400, "duplicate-key", "/payload/amount"),
        post("duplicate key, escaped", r'{"type":"counter/add","\u0074ype":"counter/reset"}', 400, "duplicate-key"),
        post("too deep", payload("[" * 100 + "]" * 100), 400, "too-deep", says="64"),
        post("far too deep", "[" * 30_000 + "]" * 30_000, 400, "too-deep"),
        post("curl -d", '{"type":"counter/add"}', 415, "media-type", says="--json", fields=form),
        post("no media type", add(1), 415, "media-type", says="--json", fields={"Content-Type": None}),
        post("text", add(1), 415, "media-type", fields={"Content-Type": "text/plain"}),
        post("a number", "3", 422, "invalid-action", "", says="object"),
        post("empty batch", "[]", 422),
        post("no type", "{}", 422, "invalid-action", "/type", says="string"),
        post("type not a string", '{"type":7}', 422, "invalid-action", "/type", says="string"),
        post("unknown type", action("counter/ad"), 422, "unknown-action", "/type", says="counter/add"),
        post("unknown type, other domain", action("task/rename"), 422, "unknown-action", "/type", says="tasks/rename"),
        post("unknown type, upper case", action("Counter/Add"), 422, "unknown-action", "/type", says="counter/add"),
        post("unknown type, in a batch", b"[" + add(1) + b"," + action("x") + b"]", 422, "unknown-action", "/1/type"),
        post("missing field", payload("{}"), 422, "invalid-action", "/payload/amount", says=("missing", "whole number")),
        post("missing payload", '{"type":"counter/add"}', 422, "invalid-action", "/payload/amount", says="whole number"),
        post("text for a number", payload('{"amount":"2"}'), 422, "invalid-action", "/payload/amount", says="whole number"),
        post("fraction", payload('{"amount":1.5}'), 422, "invalid-action", "/payload/amount", says="whole number"),
        post("too large a number", payload('{"amount":1e30}'), 422, "invalid-action", "/payload/amount"),
        post("2^63", payload('{"amount":9223372036854775808}'), 422, "invalid-action", "/payload/amount"),
        post("true for a number", payload('{"amount":true}'), 422, "invalid-action", "/payload/amount", says="whole number"),
        post("null for a number", payload('{"amount":null}'), 422, "invalid-action", "/payload/amount", says="whole number"),
        post("number for a text", action("tasks/add", {"id": 1, "title": 5}), 422, "invalid-action", "/payload/title",
             says="string"),
        post("payload not an object", payload("[1]"), 422, "invalid-action", "/payload", says="object"),
        post("payload null", payload("null"), 422, "invalid-action", "/payload", says="object"),
        post("unknown field", '{"type":"counter/reset","paylod":{}}', 422, "invalid-action", "/paylod", says="payload"),
        post("fault in a batch", b"[" + add(1) + b"," + payload('{"amount":"x"}').encode() + b"]", 422, "invalid-action",
             "/1/payload/amount"),
        post("rejected in a batch", b"[" + add(1) + b"," + action("tasks/remove", {"id": 9}) + b"]", 409),
        post("rejected", action("tasks/rename", {"id": 9, "title": "x"}), 409, "tasks.unknown", "/payload/id", says="9"),
        post("blank title", action("tasks/add", {"id": 9, "title": "  "}), 422, "tasks.title", "/payload/title"),
        post("overflow", b"[" + add(2**63 - 1) + b"," + add(1) + b"]", 409, "counter.overflow"),
        post("expect not held", add(1, expect=[{"path": "/counter/value", "value": 77}]), 412, "precondition-failed",
             says=("/counter/value", "77", '"actual": 1')),
        post("If-Match not held", add(1), 412, "precondition-failed", target="/v1/actions?path=/counter",
             fields={"If-Match": '"other"'}),
        post("expect not a list", add(1, expect={}), 422, "invalid-action", "/expect"),
        post("too large, declared", long_body, 413, "body-too-large", says=str(limit)),
        post("too large by one byte", add(1) + b" " * (limit + 1 - len(add(1))), 413, "body-too-large", says=str(limit)),
        Case("too large, chunked", encode_request("POST", "/v1/actions", fields=chunked) + chunk, 413, "body-too-large",
             says=str(limit), method="POST"),
        # The client waits for 100 (Continue), as curl does with a large body: it must not be asked to send it all.
        Case("too large, announced", encode_request(
            "POST", "/v1/actions",
            fields={"Content-Length": "999999999", "Content-Type": "application/json", "Expect": "100-continue"}),
            413, "body-too-large", says=str(limit), method="POST"),
    ])


def bad_targets(workspace):
    """A bad path, parameter or cursor is answered with a problem at once, even with wait; the connection lives."""
    server = workspace.server()
    with server.client() as client:
        client.commit(add(1))
        here = client.get("/v1").json
    epoch, version = here["epoch"], here["version"]
    other = epoch[:-1] + ("a" if epoch[-1] != "a" else "b")
    changes = "/v1/changes?wait=30&since="
    start = time.monotonic()
    figures = judge(server, [
        get("unknown parameter of changes", "/v1/changes?sinse=now", 400, "unknown-parameter", says="since"),
        get("unknown parameter of state", "/v1/state?wiat=3", 400, "unknown-parameter", says="wait"),
        get("unknown parameter of v1", "/v1?x", 400, "unknown-parameter"),
        get("unknown parameter of metrics", "/metrics?x=1", 400, "unknown-parameter"),
        post("unknown parameter of actions", add(1), 400, "unknown-parameter", target="/v1/actions?dryrun=true"),
        get("parameter twice", "/v1/changes?since=now&since=oldest", 400),
        get("no since", "/v1/changes", 400, "since-required"),
        get("since without a value", "/v1/changes?since=", 400),
        get("bad cursor", changes + "banana", 400, "bad-cursor", says="since"),
        get("bare version", changes + "1", 400, "bad-cursor"),
        get("negative version", changes + epoch + ".-1", 400, "bad-cursor"),
        get("version with letters", changes + epoch + ".1x", 400, "bad-cursor"),
        get("version beyond 64 bits", changes + epoch + ".18446744073709551616", 400, "bad-cursor"),
        get("cursor of another epoch", changes + f"{other}.0", 410, "cursor-lost",
            says=(f'"epoch": "{epoch}"', f'"oldest": "{epoch}.0"', f'"head": "{epoch}.{version}"')),
        get("cursor above the head", changes + f"{epoch}.{version + 1}", 410, "cursor-lost", says=f'"head": "{epoch}.'),
        get("cursor far above the head", changes + f"{epoch}.18446744073709551615", 410, "cursor-lost"),
        get("at-least of another epoch", f"/v1/state?at-least={other}.0", 410, "cursor-lost"),
        get("at-least above the head", f"/v1/state?at-least={epoch}.{version + 1}", 409, "ahead-of-head"),
        get("bad at-least", "/v1/state?at-least=x", 400, "bad-cursor"),
        get("bad wait", "/v1/state?wait=soon", 400, says="wait"),
        get("negative wait", "/v1/state?wait=-1", 400, says="wait"),
        get("bad limit", "/v1/changes?since=now&limit=0", 400, says="limit"),
        get("unknown type to follow", "/v1/changes?since=now&types=counter/ad", 400, says="counter/add"),
        get("bad path to follow", "/v1/changes?since=now&path=counter", 400),
        get("bad version", "/v1/state?version=x", 400),
        get("future version", f"/v1/state?version={version + 1}", 409),
        get("bad flag", "/v1/state?pretty=perhaps", 400, says="pretty"),
        get("bad If-None-Match", "/v1/state", 400, fields={"If-None-Match": "abc"}),
        get("no such place", "/v1/state/counter/valu", 404, "no-such-path", says="/counter/valu"),
        get("no such place, below a number", "/v1/state/counter/value/x", 404, "no-such-path"),
        get("no such list element", "/v1/state/tasks/ids/0", 404, "no-such-path"),
        get("no such list element, leading zero", "/v1/state/tasks/ids/00", 404, "no-such-path"),
        get("bad pointer", "/v1/state/a~2", 400, "bad-pointer"),
        get("bad percent", "/v1/state/%zz", 400),
        get("not UTF-8", "/v1/state/%ff", 400),
        get("no such route", "/v2", 404),
        get("no such view", "/v1/views/nothing", 404),
        get("no such action", "/v1/actions/nothing", 404),
        get("DELETE", "/v1/state", 405, says="GET", method="DELETE"),
        get("PUT", "/v1/actions", 405, says="POST", method="PUT"),
        post("POST to the state", add(1), 405, target="/v1/state"),
    ])
    seconds = time.monotonic() - start
    expect(seconds < 10, f"these answers took {seconds:.1f} s: one of them waited")
    with server.client() as client:
        for target, header in ((changes + f"{other}.0", "link"), ("/v1/changes", "state-cursor")):
            expect(header in client.get(target).fields, f"no {header} in the answer to {target}")
        expect("allow" in client.request("DELETE", "/v1/state").fields, "405 without Allow")
        reset = client.get(f"/v1/changes?since={other}.0&wait=30&on-lost=snapshot")
        expect_equal((reset.status, reset.json["reset"], reset.json["state"]["counter"]), (200, True, {"value": 1}),
                     "a lost cursor with on-lost=snapshot")
    return figures


def too_many_waiters(workspace):
    """Waiters over the cap are told so, 503 in all and 429 for a client's share; others wait on, actions go through."""
    for settings, status in (({"waiters_max": 4}, 503), ({"waiters_per_client_max": 4}, 429)):
        server = workspace.server(**settings)
        with server.client() as client:
            tag = client.get("/v1/state/counter").fields["etag"]
            targets = ["/v1/state/counter?wait=20", "/v1/changes?wait=20&since=" + client.get("/v1").json["cursor"]] * 2
            waiting = []
            for target in targets:
                waiting.append(server.client())
                waiting[-1].send(encode_request("GET", target, fields={"If-None-Match": tag}))
            wait_until(lambda: server.metric(client, "waiters") == 4, "4 waiters")
            for target in targets[:2]:
                refused = client.get(target, If_None_Match=tag)
                judge_problem(refused, Case("", b"", status, "too-many-waiters"))
                expect("retry-after" in refused.fields, "no Retry-After:", refused)
                expect_equal(client.get("/v1/state/counter").status, 200, "the next request on the connection")
            # Who goes away makes room.
            waiting.pop().close()
            wait_until(lambda: server.metric(client, "waiters") == 3, "a waiter that went away is forgotten")
            waiting.append(server.client())
            waiting[-1].send(encode_request("GET", targets[0], fields={"If-None-Match": tag}))
            wait_until(lambda: server.metric(client, "waiters") == 4, "room for another")
            client.commit(add(1))
            for waiter in waiting:
                expect_equal(waiter.receive().status, 200, "the answer to one who waited")


def full_mailbox(workspace):
    """Actions that find the mailbox full are answered 503 with Retry-After, and exactly the others are committed."""
    server = workspace.server(mailbox_actions_max=1)
    count = 64
    clients = [server.client() for _ in range(count)]
    committed = refused = 0
    for _ in range(20):
        for client in clients:
            client.send(encode_request("POST", "/v1/actions", add(1)))
        for client in clients:
            answer = client.receive()
            if answer.status == 200:
                committed += 1
                continue
            judge_problem(answer, Case("", b"", 503, "mailbox-full"))
            expect("retry-after" in answer.fields and not answer.closes, "no Retry-After, or a closed connection:", answer)
            refused += 1
        if refused and committed:
            break
    expect(refused > 0, "the mailbox was never full: the check has shown nothing")
    counter = clients[0].get("/v1/state/counter")
    expect_equal((counter.version, counter.json["value"]), (committed, committed), "version and counter")
    return f"{committed} committed, {refused} refused"


def too_many_connections(workspace):
    """Connections over the cap are answered 503, not closed without a word; the others are served on."""
    server = workspace.server(connections_max=16, waiters_max=8)
    clients = [server.client() for _ in range(16)]
    for client in clients:
        expect_equal(client.get("/livez").status, 200, "a connection within the cap")
    extra = server.client(timeout=10)
    answer = extra.get("/v1/state/counter")
    judge_problem(answer, Case("", b"", 503, "too-many-connections"))
    expect("retry-after" in answer.fields and answer.closes, "no Retry-After and Connection: close:", answer)
    for client in clients:
        client.commit(add(1))
    for client in clients:
        client.close()
    wait_until(lambda: served(server), "room after the others have gone", 5)


def served(server):
    with server.client(timeout=5) as client:
        return client.get("/livez").status == 200


def broken_requests(workspace):
    """A request that is not HTTP is refused with a 4xx or 501 and the connection's end; nothing is committed.

    libmicrohttpd 0.9.75 refuses a Content-Length that is no number by itself, before the server sees the request, and sends
    the head of that answer twice. Nothing of ours can come in between; the connection ends there all the same.
    """
    server = workspace.server()
    body = add(1)
    head = b"POST /v1/actions HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
    cases = {
        "no Host": b"POST /v1/actions HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body),
        "Content-Length in words": head + b"Content-Length: ten\r\n\r\n",
        "negative Content-Length": head + b"Content-Length: -1\r\n\r\n",
        "endless Content-Length": head + b"Content-Length: 99999999999999999999999\r\n\r\n",
        "two Content-Lengths": head + b"Content-Length: %d\r\nContent-Length: 3\r\n\r\n" % len(body),
        "Content-Length and chunks": head + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(body),
        "bad chunk": head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        "unknown transfer coding": head + b"Transfer-Encoding: gzip\r\n\r\n",
        "folded field": head + b"Content:\r\n -Length: 3\r\n\r\n",
        "line ends without CR": head.replace(b"\r", b"") + b"Content-Length: %d\n\n" % len(body),
        "space before the colon": head + b"Content-Length : %d\r\n\r\n" % len(body),
        "long field": head + b"Cookie: " + b"x" * 20_000 + b"\r\n\r\n",
        "long target": b"GET /v1/state/" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: here\r\n\r\n",
    }
    by_the_library = {"Content-Length in words", "negative Content-Length", "endless Content-Length"}
    faults = []
    for name, request in cases.items():
        try:
            with server.client(timeout=5) as client:
                client.send(request + body)
                answer = client.receive()
                expect(400 <= answer.status < 500 or answer.status == 501, "the answer:", answer)
                expect(answer.closes, "the answer does not announce the end of the connection:", answer)
                if answer.body.startswith(b"HTTP/") and name in by_the_library:
                    continue
                expect(not answer.body.startswith(b"HTTP/"), "the answer's head was sent twice:", answer)
                try:
                    rest = bytes(client.buffer) + client.socket.recv(1 << 16)
                except ConnectionResetError:
                    rest = bytes(client.buffer)
                expect_equal(rest, b"", "what came behind the answer")
        except (Failure, ConnectionLost, TimeoutError, ValueError, KeyError) as fault:
            faults.append(f"{name}: {type(fault).__name__}: {fault}")
    with server.client() as client:
        if client.get("/v1").json["version"] != 0:
            faults.append("something was committed")
    expect(not faults, f"{len(faults)} of {len(cases)} cases:\n" + "\n".join(faults))
    return f"{len(cases)} cases"


def lost_cursors(workspace):
    """A cursor whose history is gone is answered 410 at once: expired with the way back, or lost with the old epoch."""
    server = workspace.server(data="none", history_commits_max=100)
    with server.client() as client:
        start = client.get("/v1/state").cursor
        for _ in range(300):
            client.commit(add(1))
        expired = client.get(f"/v1/changes?since={start}&wait=20")
        judge_problem(expired, Case("", b"", 410, "cursor-expired"))
        oldest, head = expired.json["oldest"], expired.json["head"]
        expect("link" in expired.fields, "no Link:", expired)
        page = client.get(f"/v1/changes?since={oldest}&limit=1000").json
        expect_equal((page["next"], len(page["changes"]) >= 100), (head, True), "the changes after the oldest cursor")
        expect_equal(client.get("/v1/changes?since=oldest&limit=1000").json, page, "the changes since=oldest")
        reset = client.get(f"/v1/changes?since={start}&wait=20&on-lost=snapshot").json
        expect_equal((reset["reason"], reset["next"], reset["state"]["counter"]), ("cursor-expired", head, {"value": 300}),
                     "the way back in one step")
    # Without a journal each start is a new history.
    server.stop()
    server.start()
    with server.client() as client:
        for target in (f"/v1/changes?wait=20&since={start}", f"/v1/state?wait=20&at-least={start}"):
            lost = client.get(target)
            judge_problem(lost, Case("", b"", 410, "cursor-lost"))
            expect(lost.json["epoch"] != start.rpartition(".")[0], "the same epoch without a journal")
