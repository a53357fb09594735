"""The judges of the wire notice what they exist for."""

import socket
import threading

import pytest
from harness import missing
from harness.chunks import ChunkReader
from harness.expectations import Failure, expect, expect_equal
from harness.messages import HOST
from harness.wire import Received, converse, judge_one_answer, judge_refusal

DOCUMENT = b'{"type":"about:blank","title":"Bad Request","status":400,"code":"malformed-request","detail":"expected one Host, found two"}'


def answer(status=b"400 Bad Request", body=DOCUMENT, form=b"application/problem+json", more=b"Connection: close\r\n"):
    fields = b"Content-Type: %s\r\nContent-Length: %d\r\n%s" % (form, len(body), more)
    return b"HTTP/1.1 %s\r\n%s\r\n%s" % (status, fields, body)


HTML = b"<html><head><title>Request malformed</title></head><body>Your HTTP request was malformed.</body></html>"
HEAD = answer().partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

BAD = {
    "silence": Received(b"", False, 3),
    "an end without a word": Received(b"", True, 0),
    "HTML": Received(answer(body=HTML, form=b"text/html"), True, 0),
    "HTML without a type": Received(
        answer(body=HTML).replace(b"Content-Type: application/problem+json\r\n", b""), True, 0
    ),
    "a head that came twice": Received(HEAD + answer(), True, 0),
    "two answers": Received(answer(more=b"") + answer(), True, 0),
    "an answer to what follows": Received(answer(more=b"") + answer(b"200 OK", b"{}", b"application/json"), True, 0),
    "a connection that stays": Received(answer(), False, 3),
    "an end that is not announced": Received(answer(more=b""), True, 0),
    "half a body": Received(answer()[:-5], True, 0),
    "half a head": Received(answer()[:30], True, 0),
    "more than the body": Received(answer() + b"x", True, 0),
    "a success": Received(answer(b"200 OK", b"{}", b"application/json"), True, 0),
    "another status in the document": Received(answer(b"431 Request Header Fields Too Large"), True, 0),
    "a document that says nothing": Received(
        answer(body=DOCUMENT.replace(b"expected one Host, found two", b"bad")), True, 0
    ),
    "a document without a code": Received(answer(body=DOCUMENT.replace(b'"code"', b'"kode"')), True, 0),
    "two lengths": Received(answer(more=b"Connection: close\r\nContent-Length: 1\r\n"), True, 0),
    "a length and chunks": Received(answer(more=b"Connection: close\r\nTransfer-Encoding: chunked\r\n"), True, 0),
    "a space before a colon": Received(answer(more=b"Connection : close\r\n"), True, 0),
    "lines that end in LF": Received(answer().replace(b"\r\n", b"\n"), True, 0),
}


@pytest.mark.parametrize("name", BAD)
def test_the_judge_of_refusals_does_not_take(name):
    with pytest.raises(Failure):
        judge_refusal(BAD[name])


def test_the_judges_take_a_problem_that_ends_its_connection():
    expect_equal(judge_refusal(Received(answer(), True, 0)).status, 400, "the status")
    expect_equal(judge_one_answer(Received(answer(), True, 0)).status, 400, "the status")
    expect_equal(judge_one_answer(Received(answer(more=b""), False, 0)).status, 400, "the status of one that stays")
    chunked = answer(more=b"Connection: close\r\nTransfer-Encoding: chunked\r\n", body=b"")
    chunked = chunked.replace(b"Content-Length: 0\r\n", b"") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(DOCUMENT), DOCUMENT)
    expect_equal(judge_refusal(Received(chunked, True, 0)).body, DOCUMENT, "the body in chunks")


@pytest.mark.parametrize("says", [b"", HTML, HEAD + answer()])
@pytest.mark.parametrize("stays", [True, False])
def test_a_server_that_answers_like_that_is_noticed_over_a_connection(says, stays):
    """The same through a socket: a server of a few lines that says this to every request, and stays or leaves."""
    listener = socket.create_server((HOST, 0))
    is_over = threading.Event()

    def serve():
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(says)
            if stays:
                is_over.wait(2)

    thread = threading.Thread(target=serve)
    thread.start()
    received = converse(listener.getsockname()[1], b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", seconds=0.5)
    is_over.set()
    thread.join()
    listener.close()
    expect_equal((received.data, received.has_ended), (says, not stays), "bytes, and whether the connection ended")
    for judge in (judge_refusal, judge_one_answer):
        with pytest.raises(Failure):
            judge(received)
    expect(received.seconds < 2, "the reading took so many seconds:", received.seconds)


def test_a_chunked_body_is_read_however_its_bytes_arrive():
    """And one that is not as RFC 9112 says is noticed."""
    content = [b"retry: 1000\n\n", b"x" * 300, b"\n", b"data: 1\n\n"]
    data = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in content) + b"0\r\n\r\n"
    for step in (1, 2, 3, 7, 1000):
        body = ChunkReader()
        found = b"".join(body.take(data[start : start + step]) for start in range(0, len(data), step))
        expect_equal((found, body.has_ended), (b"".join(content), True), f"content, and whether it has ended ({step})")
    body = ChunkReader()
    expect_equal((body.take(data[:-1]), body.has_ended), (b"".join(content), False), "a body without its last byte")
    for bad in (b"5\nhello\r\n", b"5\r\nhello!\r\n", b"zz\r\n", b"0x5\r\nhello\r\n", b"0\r\n\r\nHTTP/1.1 200 OK\r\n"):
        with pytest.raises(Failure):
            ChunkReader().take(bad)


def test_the_list_of_what_is_missing_is_read_with_reasons_and_forms(workspace):
    path = workspace.path("missing.txt")

    def found(text):
        with open(path, "w") as file:
            file.write(text)
        return missing.read(path)

    listed = found("# a comment\n== a reason\nfolder/file.py::one\nlong: folder/file.py::two\n\n== another\nshort: x\n")
    wanted = {
        ("short", "folder/file.py::one"): "a reason",
        ("long", "folder/file.py::one"): "a reason",
        ("long", "folder/file.py::two"): "a reason",
        ("short", "x"): "another",
    }
    expect_equal(listed, wanted, "what is listed")
    for bad in ("a test without a reason\n", "== a reason\none\none\n", "== a reason\none\nlong: one\n"):
        with pytest.raises(pytest.UsageError):
            found(bad)
