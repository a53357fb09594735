"""Bytes on a raw connection, and a strict reader of what comes back."""

import json
import re
import socket
import time

from harness.expectations import Failure, expect, expect_equal, paced, shorten
from harness.messages import HOST

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9][0-9]) [\t\x20-\x7e\x80-\xff]*")
FIELD_LINE = re.compile(rb"(" + TOKEN + rb"):[ \t]*((?:[\x21-\xff](?:[\t\x20-\xff]*[\x21-\xff])?)?)[ \t]*")
# Fields of which an answer has one at most.
SINGLE = {"content-length", "transfer-encoding", "content-type", "connection", "date", "etag", "state-cursor"}


class WireAnswer:
    """An answer as it came, with the form of its body: `length`, `chunked`, `closed` or `none`."""

    def __init__(self, status, fields, body, framing):
        self.status, self.fields, self.body, self.framing = status, fields, body, framing

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def closes(self):
        return "close" in [option.strip().lower() for option in self.fields.get("connection", "").split(",")]

    def __repr__(self):
        return f"{self.status} {self.fields} {shorten(self.body.decode(errors='replace'))}"


class Incomplete(Failure):
    """The connection ended, or was silent, within an answer."""


def parse_head(head):
    """The status and the fields of a head, which must follow RFC 9112 to the letter."""
    first, *lines = head.split(b"\r\n")
    found = STATUS_LINE.fullmatch(first)
    expect(found, "no status line:", shorten(repr(first)))
    fields = {}
    for line in lines:
        match = FIELD_LINE.fullmatch(line)
        expect(match and b"\n" not in line, "a line of the head that is no field:", shorten(repr(line)))
        name, value = match[1].decode().lower(), match[2].decode("latin-1")
        expect(name not in fields or name not in SINGLE, f"a head with two {name}:", shorten(repr(head)))
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return int(found[1]), fields


def parse_chunks(data):
    """The content of a chunked body, how many bytes it takes, and whether it has ended."""
    content, place = bytearray(), 0
    while True:
        end = data.find(b"\r\n", place)
        if end < 0:
            return bytes(content), place, False
        expect(re.fullmatch(rb"[0-9A-Fa-f]+", data[place:end]), "a bad chunk line:", shorten(repr(data[place:end])))
        size = int(data[place:end], 16)
        start = end + 2
        if size == 0:
            if len(data) < start + 2:
                return bytes(content), place, False
            expect_equal(data[start : start + 2], b"\r\n", "the end of the last chunk")
            return bytes(content), start + 2, True
        if len(data) < start + size + 2:
            return bytes(content), place, False
        content += data[start : start + size]
        expect_equal(data[start + size : start + size + 2], b"\r\n", "the end of a chunk")
        place = start + size + 2


def parse_all(data, has_ended, methods=()):
    """All answers in the bytes; `methods` are those of the requests, GET where it is too short."""
    answers, methods = [], list(methods)
    while data:
        head, separator, rest = data.partition(b"\r\n\r\n")
        if not separator:
            raise Incomplete(f"half a head, or no HTTP: {shorten(repr(data))}")
        status, fields = parse_head(head)
        if status < 200:
            answers.append(WireAnswer(status, fields, b"", "none"))
            data = rest
            continue
        method = methods.pop(0) if methods else "GET"
        expect(
            not {"content-length", "transfer-encoding"} <= set(fields), "a length and a transfer coding:", shorten(head)
        )
        if method == "HEAD" or status in (204, 304):
            body, count, framing = b"", 0, "none"
        elif "transfer-encoding" in fields:
            expect_equal(fields["transfer-encoding"].lower(), "chunked", "the transfer coding")
            body, count, ended = parse_chunks(rest)
            if not ended:
                raise Incomplete(f"half a chunked body: {shorten(repr(data))}")
            framing = "chunked"
        elif "content-length" in fields:
            expect(fields["content-length"].isdecimal(), "a Content-Length that is no number:", shorten(head))
            count, framing = int(fields["content-length"]), "length"
            if len(rest) < count:
                raise Incomplete(f"{len(rest)} of {count} bytes of a body: {shorten(repr(data))}")
            body = rest[:count]
        else:
            expect(has_ended, "a body without an end:", shorten(repr(data)))
            body, count, framing = rest, len(rest), "closed"
        answers.append(WireAnswer(status, fields, body, framing))
        data = rest[count:]
    return answers


class Received:
    """What came on a connection: its bytes, whether the server has ended it, and after how many seconds."""

    def __init__(self, data, has_ended, seconds):
        self.data, self.has_ended, self.seconds = data, has_ended, seconds

    def answers(self, *methods):
        return parse_all(self.data, self.has_ended, methods)


def is_complete(data, method):
    """Whether whole answers have come, after the last of which the server keeps the connection."""
    try:
        answers = parse_all(data, False, [method] * data.count(b"HTTP/1.1 "))
    except Failure:
        return False
    return bool(answers) and answers[-1].status >= 200 and not answers[-1].closes


def converse(port, *pieces, seconds=3, pause=0.0, half_close=False, method="GET", quiet=0.1):
    """Sends the pieces, a pause between them, and reads until the server ends the connection or the time is up.

    Whole answers that keep the connection end the reading, too, after a moment in which something may follow them.
    """
    begun = time.monotonic()
    data, has_ended = bytearray(), False
    with socket.create_connection((HOST, port), seconds) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for piece in paced(pieces, pause):
                connection.sendall(piece)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server reads no further; what it has sent still counts
        while (left := begun + seconds - time.monotonic()) > 0:
            is_over = is_complete(bytes(data), method)
            connection.settimeout(min(left, quiet) if is_over else left)
            try:
                part = connection.recv(1 << 18)
            except TimeoutError:
                break
            except OSError:
                has_ended = True
                break
            if not part:
                has_ended = True
                break
            data += part
    return Received(bytes(data), has_ended, time.monotonic() - begun)


def judge_document(answer, statuses=None):
    """The answer is a problem document and says that the connection ends."""
    expect(400 <= answer.status < 600, "a request that had to be refused was answered", answer)
    expect_equal(answer.fields.get("content-type"), "application/problem+json", f"the media type of {answer}")
    expect(statuses is None or answer.status in statuses, f"the status, which should be one of {statuses}:", answer)
    problem = answer.json
    for member in ("title", "status", "detail", "code"):
        expect(member in problem, f"no {member} in", problem)
    expect_equal(problem["status"], answer.status, "the status in the document")
    expect(len(problem["detail"]) > 15, "a detail that says little:", problem)


def judge_refusal(received, statuses=None, method="GET"):
    """One problem document, `Connection: close`, the end of the connection, and nothing else; returns the answer."""
    expect(received.data, "the server ended the connection without a word" if received.has_ended else "silence")
    answers = received.answers(method)
    final = [answer for answer in answers if answer.status >= 200]
    expect_equal(len(final), 1, f"the number of answers in {shorten(repr(received.data), 600)}")
    if method != "HEAD":
        judge_document(final[0], statuses)
    expect(final[0].closes, "the answer does not say that the connection ends:", final[0])
    expect(received.has_ended, "the connection was not ended")
    return final[0]


def judge_end(received):
    """The connection has ended, behind one refusal at most, by the server or by libmicrohttpd."""
    expect(received.has_ended, "the connection was not ended")
    # libmicrohttpd 0.9.75 sends the head of some refusals twice.
    statuses = {int(status) for status in re.findall(rb"HTTP/1\.1 ([2-5]\d\d) ", received.data)}
    expect(len(statuses) < 2, f"several answers in {shorten(repr(received.data), 600)}")
    expect(all(status >= 400 for status in statuses), "a request that had to be refused was answered:", statuses)


def judge_one_answer(received, method="GET"):
    """One answer in the form of the contract: what was asked for, or a problem; returns it.

    Whether the connection ends is told by the answer.
    """
    expect(received.data, "the server ended the connection without a word" if received.has_ended else "silence")
    final = [answer for answer in received.answers(method) if answer.status >= 200]
    expect_equal(len(final), 1, f"the number of answers in {shorten(repr(received.data), 600)}")
    answer = final[0]
    if answer.status >= 400 and method != "HEAD":
        judge_document(answer)
    expect_equal(received.has_ended, answer.closes, f"whether the connection has ended, after {answer}")
    return answer


def head(method, target, *lines, host=HOST, version="HTTP/1.1"):
    """The head of a request, with these lines as they are."""
    first = [f"{method} {target} {version}".encode()] + ([f"Host: {host}".encode()] if host is not None else [])
    return b"\r\n".join(first + [line if isinstance(line, bytes) else line.encode() for line in lines]) + b"\r\n\r\n"
