"""Clients that have finished sending, as `nc -N` and many scripts do, and still read."""

import json
import re
import shutil
import socket
import subprocess
import time

import pytest
from harness.actions import add
from harness.client import ConnectionLost
from harness.expectations import Failure, expect, expect_equal
from harness.messages import HOST, encode_request
from harness.streams import EVENTS
from harness.waits import parked
from harness.wire import converse

COUNTER = "/v1/state/counter"


@pytest.mark.rounds(40, long=400)
def test_a_client_that_finishes_sending_with_its_request_gets_the_answer_of_the_wait(server, rounds):
    """The wait ends now, and its answer comes: 304, as when the time is up. Whichever comes first, request or FIN."""
    with server.client() as client:
        tag = client.get(COUNTER).fields["etag"]
    request = encode_request("GET", f"{COUNTER}?wait=10", fields={"If-None-Match": tag})
    seconds, missing = [], 0
    for _ in range(rounds):
        received = converse(server.port, request, half_close=True, seconds=2)
        seconds.append(received.seconds)
        missing += not received.data
        if received.data:
            found = [(answer.status, answer.fields.get("etag")) for answer in received.answers()]
            expect_equal(found, [(304, tag)], "status and tag of the answers")
        elif missing > 3:
            break
    expect_equal(missing, 0, f"requests without an answer, of {len(seconds)}")
    expect(max(seconds) < 1, "the wait was not ended by the end of the input; it took so many seconds:", max(seconds))


@pytest.mark.rounds(10, long=100)
def test_a_client_that_finishes_sending_while_it_waits_gets_the_answer_of_the_wait(server, rounds):
    with server.client() as client:
        cursor = client.get("/v1").json["cursor"]
        for _ in range(rounds):
            with server.client(timeout=2) as half:
                half.send(encode_request("GET", f"/v1/changes?since={cursor}&wait=10"))
                parked(server, client, 1)
                half.socket.shutdown(socket.SHUT_WR)
                try:
                    answer = half.receive()
                except ConnectionLost as lost:
                    raise Failure(f"no answer to a client that still reads: {lost}") from None
                expect_equal((answer.status, answer.json["changes"]), (200, []), "status and commits")


@pytest.mark.parametrize("wait", ["", "?wait=10"])
def test_a_client_that_finishes_sending_gets_the_receipt_of_its_action(server, wait):
    fields = {"Prefer": "wait=10"} if wait else {}
    received = converse(server.port, encode_request("POST", "/v1/actions", add(0), fields), half_close=True)
    expect_equal([answer.status for answer in received.answers("POST")], [200], "the statuses")


def test_several_requests_before_the_end_of_the_input_are_all_answered(server):
    post = encode_request("POST", "/v1/actions", add(0))
    requests = [encode_request("GET", COUNTER), post, encode_request("GET", "/v1")]
    received = converse(server.port, *requests, half_close=True)
    expect_equal([answer.status for answer in received.answers()], [200, 200, 200], "the statuses")


def test_a_half_closed_stream_ends_whole(server):
    """Its answer is no half of an event, and it does not go on for ever."""
    received = converse(
        server.port, encode_request("GET", COUNTER, fields={"Accept": EVENTS}), half_close=True, seconds=4
    )
    expect(received.data, "the server ended the connection without a word")
    answers = received.answers()
    expect_equal(len(answers), 1, "the number of answers")
    expect(received.has_ended, "the stream goes on for a client that has finished sending")
    body = answers[0].body
    expect(body.endswith(b"\n\n") or re.fullmatch(rb"retry: \d+\n", body), "the stream did not end whole:", body)


def test_netcat_gets_the_answer_of_a_wait(server):
    """`nc -N` closes its half at the end of the input."""
    netcat = shutil.which("nc")
    if not netcat:
        pytest.skip("there is no nc on this machine")
    with server.client() as client:
        tag = client.get(COUNTER).fields["etag"]
    request = encode_request("GET", f"{COUNTER}?wait=10", fields={"If-None-Match": tag})
    begun = time.monotonic()
    done = subprocess.run([netcat, "-N", HOST, str(server.port)], input=request, capture_output=True, timeout=15)
    expect(done.stdout.startswith(b"HTTP/1.1 304 "), "nc -N received", json.dumps(done.stdout.decode()))
    expect(time.monotonic() - begun < 5, "the wait was not ended by the end of the input")
