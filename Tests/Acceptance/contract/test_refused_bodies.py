"""Bodies that the server refuses, and their nearest neighbours that it takes."""

from harness.actions import action, add
from harness.messages import encode_request
from harness.refusals import Case, judge, post
from harness.tools import takes_chunks


def test_a_bad_body_gets_a_problem_that_names_place_and_expectation_and_commits_nothing(workspace, figures):
    """The connection stays open, except where the server cannot know where the body ends."""
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
    whole = "whole number"
    cases = [
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
        post("missing field", payload("{}"), 422, "invalid-action", "/payload/amount", says=("missing", whole)),
        post("missing payload", '{"type":"counter/add"}', 422, "invalid-action", "/payload/amount", says=whole),
        post("text for a number", payload('{"amount":"2"}'), 422, "invalid-action", "/payload/amount", says=whole),
        post("fraction", payload('{"amount":1.5}'), 422, "invalid-action", "/payload/amount", says=whole),
        post("too large a number", payload('{"amount":1e30}'), 422, "invalid-action", "/payload/amount"),
        post("2^63", payload('{"amount":9223372036854775808}'), 422, "invalid-action", "/payload/amount"),
        post("true for a number", payload('{"amount":true}'), 422, "invalid-action", "/payload/amount", says=whole),
        post("null for a number", payload('{"amount":null}'), 422, "invalid-action", "/payload/amount", says=whole),
        post(
            "number for a text",
            action("tasks/add", {"id": 1, "title": 5}),
            422,
            "invalid-action",
            "/payload/title",
            says="string",
        ),
        post("payload not an object", payload("[1]"), 422, "invalid-action", "/payload", says="object"),
        post("payload null", payload("null"), 422, "invalid-action", "/payload", says="object"),
        post("unknown field", '{"type":"counter/reset","paylod":{}}', 422, "invalid-action", "/paylod", says="payload"),
        post(
            "fault in a batch",
            b"[" + add(1) + b"," + payload('{"amount":"x"}').encode() + b"]",
            422,
            "invalid-action",
            "/1/payload/amount",
        ),
        post("rejected in a batch", b"[" + add(1) + b"," + action("tasks/remove", {"id": 9}) + b"]", 409),
        post(
            "rejected", action("tasks/rename", {"id": 9, "title": "x"}), 409, "tasks.unknown", "/payload/id", says="9"
        ),
        post("blank title", action("tasks/add", {"id": 9, "title": "  "}), 422, "tasks.title", "/payload/title"),
        post("overflow", b"[" + add(2**63 - 1) + b"," + add(1) + b"]", 409, "counter.overflow"),
        post(
            "expect not held",
            add(1, expect=[{"path": "/counter/value", "value": 77}]),
            412,
            "precondition-failed",
            says=("/counter/value", "77", '"actual": 1'),
        ),
        post(
            "If-Match not held",
            add(1),
            412,
            "precondition-failed",
            target="/v1/actions?path=/counter",
            fields={"If-Match": '"other"'},
        ),
        post("expect not a list", add(1, expect={}), 422, "invalid-action", "/expect"),
        post("too large, declared", long_body, 413, "body-too-large", says=str(limit)),
        post(
            "too large by one byte", add(1) + b" " * (limit + 1 - len(add(1))), 413, "body-too-large", says=str(limit)
        ),
        Case(
            "too large, chunked",
            encode_request("POST", "/v1/actions", fields=chunked) + chunk,
            *((413, "body-too-large") if takes_chunks() else (411, "length-required")),
            says=str(limit) if takes_chunks() else "Content-Length",
            method="POST",
        ),
        # The client waits for 100 (Continue), as curl does with a large body: the server must refuse at once.
        Case(
            "too large, announced",
            encode_request(
                "POST",
                "/v1/actions",
                fields={"Content-Length": "999999999", "Content-Type": "application/json", "Expect": "100-continue"},
            ),
            413,
            "body-too-large",
            says=str(limit),
            method="POST",
        ),
    ]
    figures(judge(server, cases))
