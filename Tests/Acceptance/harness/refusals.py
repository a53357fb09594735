"""Requests that the server must refuse, and the judge of its problem documents."""

import json

from harness.client import ConnectionLost
from harness.expectations import Failure, expect, expect_equal
from harness.messages import encode_request


class Case:
    """A request that must be refused, and what the refusal must say."""

    def __init__(self, name, request, status, code=None, pointer=None, says=(), method="GET"):
        self.name, self.request, self.method = name, request, method
        self.status, self.code, self.pointer = status, code, pointer
        self.says = [says] if isinstance(says, str) else list(says)


def post(name, body, status, *arguments, target="/v1/actions", fields=None, **others):
    body = body if isinstance(body, bytes) else body.encode()
    return Case(name, encode_request("POST", target, body, fields), status, *arguments, method="POST", **others)


def get(name, target, status, *arguments, fields=None, method="GET", **others):
    return Case(name, encode_request(method, target, fields=fields), status, *arguments, method=method, **others)


def judge_problem(answer, case):
    expect_equal(answer.status, case.status, "the status")
    expect_equal(answer.fields.get("content-type"), "application/problem+json", "the media type")
    expect("state-cursor" in answer.fields, "no State-Cursor:", answer)
    problem = answer.json
    for member in ("type", "title", "status", "detail", "code", "requestId", "cursor"):
        expect(member in problem, f"no {member} in", problem)
    expect_equal(problem["status"], answer.status, "the status in the document")
    if case.code:
        expect_equal(problem["code"], case.code, "the code")
    expect(len(problem["detail"]) > 15, "a detail that says little:", problem)
    if case.pointer is not None:
        expect(
            case.pointer in [error["pointer"] for error in problem.get("errors", [])], f"no {case.pointer} in", problem
        )
    for words in case.says:
        expect(words.lower() in json.dumps(problem).lower(), f"nothing about {words!r} in", problem)


def judge(server, cases):
    """Sends every case on a kept-alive connection, and fails with all faults, not only the first."""
    faults = []
    with server.client() as witness:
        for case in cases:
            before = witness.get("/v1/state")
            try:
                with server.client(timeout=10) as client:
                    client.get("/livez")
                    client.send(case.request)
                    answer = client.receive(case.method)
                    judge_problem(answer, case)
                    if answer.closes:
                        # Only where the server cannot know where the body ends.
                        expect(case.status in (411, 413), "an answer closes the connection:", answer)
                    else:
                        expect_equal(client.get("/v1/state/counter").status, 200, "the next request on the connection")
                after = witness.get("/v1/state")
                expect_equal((after.version, after.body), (before.version, before.body), "version and state afterwards")
            except (Failure, ConnectionLost, json.JSONDecodeError, KeyError, ValueError) as fault:
                faults.append(f"{case.name}: {type(fault).__name__}: {fault}")
    expect(not faults, f"{len(faults)} of {len(cases)} cases:\n" + "\n".join(faults))
    return f"{len(cases)} cases"
