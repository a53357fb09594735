"""What comes before a request, or in its place."""

import socket

import pytest
from harness.expectations import expect_equal, paced
from harness.wire import converse, judge_end, parse_all

# The beginning of a greeting of TLS 1.3 (RFC 8446, section 5.1).
GREETING = bytes.fromhex("1603010200010001fc0303") + b"\x55" * 200


@pytest.mark.parametrize(
    "data",
    [GREETING, b"\x00", b"{\"type\":", b"\x80\x2e\x01", b"\r\n(", b"GET /v1 HTTP/1.1\n", b"GET /v1\r\n"],
)
def test_bytes_that_are_no_request_end_their_connection_when_the_time_of_a_head_is_up(workspace, data):
    server = workspace.server(data="none", **workspace.known(request_head_seconds=1))

    judge_end(converse(server.port, data, seconds=4))


def test_an_empty_line_before_a_request_is_ignored_however_it_is_cut(server):
    with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
        for piece in paced([b"\r", b"\nGET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"], 0.05):
            connection.sendall(piece)
        received = b""
        while piece := connection.recv(1 << 16):
            received += piece
    expect_equal([answer.status for answer in parse_all(received, True)], [200], "the answers")
