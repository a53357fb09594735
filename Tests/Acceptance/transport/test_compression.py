"""A client that takes gzip or Zstandard gets long answers so, and every tag of a value names the same content."""

import gzip
import json
import shutil
import subprocess

import pytest

from harness.expectations import expect
from harness.messages import encode_request

TASKS = [{"type": "tasks/add", "payload": {"id": number, "title": f"task {number}"}} for number in range(500)]


@pytest.fixture
def server(workspace):
    server = workspace.server(data="none")
    with server.client() as client:
        client.commit(json.dumps(TASKS).encode())
    return server


def unpacked(answer):
    coding = answer.fields.get("content-encoding")
    if coding == "gzip":
        return gzip.decompress(answer.body)
    if coding == "zstd":
        tool = shutil.which("zstd")
        if not tool:
            pytest.skip("there is no zstd on this machine")
        return subprocess.run([tool, "-dc"], input=answer.body, capture_output=True, check=True, timeout=10).stdout
    return answer.body


@pytest.mark.parametrize(
    ("field", "coding"),
    [("gzip, deflate", "gzip"), ("gzip, deflate, br, zstd", "zstd"), ("zstd;q=0, *", "gzip"), ("br", None), ("identity", None)],
)
def test_a_long_answer_has_the_coding_that_the_client_prefers(server, field, coding):
    with server.client() as client:
        plain = client.get("/v1/state/tasks")
        for target in ("/v1/state/tasks", "/v1/changes?since=oldest", "/v1/openapi.json"):
            answer = client.get(target, Accept_Encoding=field)
            expect(answer.fields.get("content-encoding") == coding, f"{target}: {answer.fields}")
            expect(unpacked(answer) == client.get(target).body, f"{target}: another body")
            if coding:
                expect(answer.fields["vary"] == "Accept-Encoding", f"{target}: {answer.fields}")
                expect(len(answer.body) * 3 < len(unpacked(answer)), f"{target}: {len(answer.body)} bytes")
        small = client.get("/v1/state/counter", Accept_Encoding=field)
        expect("content-encoding" not in small.fields and small.json == {"value": 0}, f"{small}")
        answer = client.get("/v1/state/tasks", Accept_Encoding=field)
        expect((answer.fields["etag"] == plain.fields["etag"]) == (coding is None), "one strong tag for two forms")


def test_every_tag_of_a_value_is_known_to_conditions_and_waits(server):
    with server.client() as client:
        tags = [client.get("/v1/state/tasks", Accept_Encoding=coding).fields["etag"] for coding in ("x", "gzip", "zstd")]
        expect(len(set(tags)) == 3, f"{tags}")
        for tag in tags:
            for coding in ("x", "gzip", "zstd"):
                answer = client.get("/v1/state/tasks", If_None_Match=tag, Accept_Encoding=coding)
                expect(answer.status == 304, f"{tag} with {coding}: {answer.status}")
            answer = client.get("/v1/state/tasks?wait=0.05", If_None_Match=tag, Accept_Encoding="gzip")
            expect(answer.status == 304, f"a wait with {tag}: {answer.status}")
            add = b'{"type":"counter/add","payload":{"amount":1}}'
            answer = client.post(add, "/v1/actions?path=/tasks", If_Match=tag)
            expect(answer.status == 200, f"If-Match with {tag}: {answer}")
        client.commit(b'{"type":"tasks/remove","payload":{"id":7}}')
        for tag in tags:
            answer = client.get("/v1/state/tasks?wait=5", If_None_Match=tag, Accept_Encoding="gzip")
            expect(answer.status == 200 and b'"task 7"' not in unpacked(answer), f"{tag}: {answer.status}")
            expect(client.post(add, "/v1/actions?path=/tasks", If_Match=tag).status == 412, f"{tag} still matches")


def test_waiters_with_and_without_a_coding_are_woken_together_each_in_its_form(server):
    with server.client() as one, server.client() as other, server.client() as writer:
        tag = one.get("/v1/state/tasks").fields["etag"]
        fields = {"If-None-Match": tag}
        one.send(encode_request("GET", "/v1/state/tasks?wait=20", None, fields))
        other.send(encode_request("GET", "/v1/state/tasks?wait=20", None, fields | {"Accept-Encoding": "gzip"}))
        writer.commit(b'{"type":"tasks/remove","payload":{"id":9}}')
        plain, packed = one.receive(), other.receive()
        expect("content-encoding" not in plain.fields, f"{plain.fields}")
        expect(packed.fields["content-encoding"] == "gzip" and unpacked(packed) == plain.body, f"{packed.fields}")


def test_compression_can_be_off(workspace):
    server = workspace.server(data="none", compressed_bytes_min=0)
    with server.client() as client:
        client.commit(json.dumps(TASKS).encode())
        answer = client.get("/v1/state/tasks", Accept_Encoding="gzip, zstd")
        expect("content-encoding" not in answer.fields and len(answer.json["ids"]) == 500, f"{answer.fields}")
