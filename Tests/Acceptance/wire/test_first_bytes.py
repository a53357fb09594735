"""What comes before a request, or in its place."""

import socket
import time

import pytest
from harness.expectations import expect, expect_equal
from harness.wire import parse_all

# The beginning of a greeting of TLS 1.3 (RFC 8446, section 5.1).
GREETING = bytes.fromhex("1603010200010001fc0303") + b"\x55" * 200


def refusal(server, data):
    """The one answer to bytes that are no request, and how long it took."""
    with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
        start = time.monotonic()
        connection.sendall(data)
        received = b""
        while piece := connection.recv(1 << 16):
            received += piece
        seconds = time.monotonic() - start
    answers = parse_all(received, True)
    expect_equal(len(answers), 1, "answers")
    return answers[0], seconds


def test_a_greeting_of_tls_is_answered_at_once_with_a_sentence_about_it(server):
    answer, seconds = refusal(server, GREETING)

    expect_equal(answer.status, 400, "the status")
    expect("TLS" in answer.json["detail"], "a sentence about TLS, found", answer.json)
    expect(seconds < 2, "an answer at once, found one after", seconds)


@pytest.mark.parametrize("data", [b"\x00", b"{\"type\":", b"\x80\x2e\x01", b"\r\n(", b"GET /v1 HTTP/1.1\n", b"GET /v1\r\n"])
def test_bytes_that_begin_no_request_are_refused_at_once(server, data):
    answer, seconds = refusal(server, data)

    expect_equal(answer.status, 400, "the status")
    expect(seconds < 2, "an answer at once, found one after", seconds)


def test_empty_lines_are_no_request_however_many_come(server):
    with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
        for _ in range(100):
            connection.sendall(b"\r\n" * 1000)
        connection.sendall(b"\r")
        time.sleep(0.05)
        connection.sendall(b"\nGET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        received = b""
        while piece := connection.recv(1 << 16):
            received += piece
    expect_equal([answer.status for answer in parse_all(received, True)], [200], "the answers")
