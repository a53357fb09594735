"""A JSON answer ends with a line feed, so that the prompt of a terminal does not stick to it; nothing else has one more."""

import gzip
import json

from harness.actions import add
from harness.expectations import expect, expect_equal
from harness.streams import StreamClient

TARGETS = [
    "/v1", "/v1/state", "/v1/state/counter", "/v1/state/counter/value", "/v1/state/tasks/entities/1", "/v1/views",
    "/v1/views/tasks.open", "/v1/actions", "/v1/changes?since=oldest", "/v1/state?as=keyed", "/v1/stores", "/v1/streams",
    "/v1/openapi.json", "/v1/state/nothing", "/v1/nothing", "/v1/state?x=1",
]


def ends_once(body):
    return body.endswith(b"\n") and not body.endswith(b"\n\n")


def test_each_json_answer_ends_with_one_line_feed(workspace):
    with workspace.server().client() as client:
        receipt = client.post(add(1))
        client.post(b'{"type":"tasks/add","payload":{"id":1,"title":"milk"}}')
        answers = [client.get(target) for target in TARGETS for _ in range(3)]
        answers += [client.get(f"{target}{'&' if '?' in target else '?'}pretty") for target in TARGETS]
        answers += [receipt, client.post(b"{"), client.post(add(1), Prefer="return=representation")]
        answers.append(client.get("/v1/actions/" + receipt.json["id"]))
        for answer in answers:
            expect(ends_once(answer.body), f"an answer ends with {answer.body[-20:]}")
            expect_equal(int(answer.fields["content-length"]), len(answer.body), "Content-Length")
            json.loads(answer.body)
        lines = client.request(
            "POST", "/v1/actions", add(1) + b"\n{", {"Content-Type": "application/x-ndjson"}).body
        expect_equal((ends_once(lines), len(lines.splitlines())), (True, 2), "an answer line by line")


def test_the_compressed_answer_has_it_and_the_tag_is_that_of_the_value(workspace):
    with workspace.server(compressed_bytes_min=1).client() as client:
        client.post(add(1))
        plain, packed = client.get("/v1/state/counter"), client.get("/v1/state/counter", Accept_Encoding="gzip")
        expect_equal(gzip.decompress(packed.body), plain.body, "the compressed answer")
        expect_equal(client.get("/v1/state/counter", If_None_Match=plain.fields["etag"]).status, 304, "a known tag")
        # The hash of the value without the line feed, as journals and clients know it.
        expect_equal(plain.body, b'{"value":1}\n', "the value")


def test_an_event_has_no_more_than_its_lines(workspace):
    server = workspace.server()
    with StreamClient(server.port, "/v1/state/counter") as stream:
        stream.begin()
        expect_equal(stream.next(5).data, '{"value":0}', "the data of an event")
