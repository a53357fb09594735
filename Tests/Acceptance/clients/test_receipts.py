"""Only a receipt says that an action is committed: neither a redirect nor another answer with 200 is one."""

import http.client
import http.server
import json
import threading

import pytest

from harness import javascript, python
from harness.expectations import expect_equal
from harness.javascript import ended

DISPATCH = {
    javascript: """
for (const [name, options] of Object.entries(given)) {
    await store.dispatch("counter/add", { amount: 1 }, options).then((value) => print(name, { value }), (error) => print(name, { ...error }))
}
""",
    python: """
for name, options in given.items():
    caught(name, lambda: store.dispatch("counter/add", {"amount": 1}, **options))
""",
}
CLIENTS = pytest.mark.parametrize("client", [javascript, python], ids=["client.js", "client.py"])


@pytest.fixture
def front(workspace):
    """Something before the server that answers in its place: `answers` has status, fields and body of each request."""
    class Front(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            site.seen.append((self.command, self.path, self.headers.get("Idempotency-Key")))
            status, fields, text = site.answers.pop(0) if site.answers else self.pass_on(body)
            self.send_response(status)
            for name, value in fields.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST

        def pass_on(self, body):
            there = http.client.HTTPConnection("127.0.0.1", site.behind)
            there.request(self.command, self.path, body or None, {"Content-Type": "application/json", "Idempotency-Key": self.headers.get("Idempotency-Key") or '"x"'})
            answer = there.getresponse()
            return answer.status, {"Content-Type": answer.headers["Content-Type"]}, answer.read()

        def log_message(self, *_):
            pass

    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front)
    site.answers, site.seen, site.behind = [], [], workspace.server().port
    threading.Thread(target=site.serve_forever, daemon=True).start()
    workspace.at_close.append(site.shutdown)
    return site


def dispatch(workspace, client, front, **calls):
    lines = ended(client.start(workspace, front.server_port, DISPATCH[client], given=calls))
    return {line[0]: line[1] for line in lines if line[0] in calls}


def committed(front):
    connection = http.client.HTTPConnection("127.0.0.1", front.behind)
    connection.request("GET", "/v1/state/counter/value")
    return json.loads(connection.getresponse().read())


@CLIENTS
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("place", ["same", "other", None])
def test_a_redirected_action_is_an_error_that_names_the_address(workspace, front, client, status, place):
    to = {"same": "/v1/actions?moved", "other": f"http://127.0.0.1:{front.behind}/v1/actions", None: None}[place]
    front.answers.append((status, {"Location": to} if to else {}, b""))

    problem = dispatch(workspace, client, front, it={})["it"]

    expect_equal((problem.get("code"), problem.get("status")), ("redirected", status), f"what is thrown, in {problem}")
    expect_equal((to or "an address") in problem["detail"], True, f"whether {problem['detail']!r} names the address")
    expect_equal([method for method, *_ in front.seen], ["POST"], "what was asked")
    expect_equal(committed(front), 0, "the counter")


OTHERS = [
    b'{"ok":true}', b"null", b"[]", b'"ok"', b"true", b"{}", b'{"committed":true}', b'{"changed":true}', b'{"cursor":"a.1"}',
    b'[{"cursor":"a.1","version":1,"id":"x","changed":true}]', b'{"settled":false,"detail":"it waits"}', b"7", None,
]


@CLIENTS
@pytest.mark.parametrize("text", OTHERS)
def test_an_answer_without_the_members_of_a_receipt_is_no_answer(workspace, front, client, text):
    other = (200, {"Content-Type": "application/json"}, text) if text is not None else (204, {}, b"")
    front.answers += [other] * 2

    found = dispatch(workspace, client, front, once={"seconds": 0}, again={})

    expect_equal((found["once"].get("code"), found["once"].get("status")), ("no-answer", 0), f"one attempt, in {found}")
    expect_equal(found["again"].get("value", {}).get("version"), 1, f"what is sent again, in {found}")
    expect_equal(len({key for *_, key in front.seen[1:]}), 1, "the keys of the second action")
    expect_equal((len(front.seen), committed(front)), (3, 1), "requests, and the counter")


@CLIENTS
def test_an_action_that_is_swallowed_has_a_receipt(workspace, front, client):
    front.answers.append((200, {}, b'{"committed":false,"changed":false}'))

    expect_equal(dispatch(workspace, client, front, it={})["it"], {"value": {"committed": False, "changed": False}}, "the receipt")


@CLIENTS
def test_a_redirected_read_is_an_error_as_well(workspace, front, client):
    front.answers.append((302, {"Location": "/login"}, b""))
    text = {javascript: 'await store.state("/counter").catch((error) => print("it", error.code, error.detail))',
            python: 'try: store.state("/counter")\nexcept Problem as problem: show("it", problem.code, problem.detail)'}[client]

    [(_, code, detail)] = ended(client.start(workspace, front.server_port, text))

    expect_equal((code, "/login" in detail), ("redirected", True), f"what is thrown: {detail}")
    expect_equal([path for _, path, _ in front.seen], ["/v1/state/counter"], "what was asked")
