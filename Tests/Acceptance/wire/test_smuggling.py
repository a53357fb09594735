"""Requests whose end a proxy could find at another place: what follows them never runs (RFC 9112, section 11.2).

Each case is a request that adds 1 to the counter, or one that reads it, in a form that a proxy may understand otherwise.
Behind it, on the same connection, is a request that adds 1000.
"""

import collections

import pytest
from harness.actions import add
from harness.expectations import expect, expect_equal
from harness.messages import encode_request
from harness.wire import converse, judge_end

Case = collections.namedtuple("Case", "name request")

BODY = add(1)
LENGTH = len(BODY)
BEHIND = encode_request("POST", "/v1/actions", add(1000))
POST = b"POST /v1/actions HTTP/1.1\r\n"
GET = b"GET /v1/state/counter HTTP/1.1\r\n"
HERE = b"Host: 127.0.0.1\r\n"
JSON = b"Content-Type: application/json\r\n"
LENGTH_FIELD = b"Content-Length: %d\r\n" % LENGTH
CODING = b"Transfer-Encoding: chunked\r\n"
SIZE = b"%x" % LENGTH
END = b"0\r\n\r\n"
CHUNKS = SIZE + b"\r\n" + BODY + b"\r\n" + END


def with_length(name, value):
    return Case(f"Content-Length {name}", POST + HERE + JSON + b"Content-Length: " + value + b"\r\n\r\n" + BODY)


def with_coding(name, *fields):
    return Case(f"Transfer-Encoding {name}", POST + HERE + JSON + b"".join(fields) + b"\r\n" + CHUNKS)


def with_chunks(name, chunks):
    return Case(f"chunks: {name}", POST + HERE + JSON + CODING + b"\r\n" + chunks)


def first_chunk(name, line, after=b"\r\n" + END):
    return with_chunks(name, line + BODY + after)


def with_field(name, line, first=GET):
    return Case(f"a field {name}", first + HERE + line + b"\r\n")


def lengths():
    for name, value in {
        "with a plus sign": b"+%d" % LENGTH,
        "with a minus sign": b"-%d" % LENGTH,
        "in hexadecimal digits": b"0x%x" % LENGTH,
        "that is empty": b"",
        "as a list of unequal numbers": b"%d, %d" % (LENGTH, LENGTH + 1),
        "of two numbers": b"%d %d" % (LENGTH, LENGTH),
        "above 64 bits": b"%d" % ((1 << 64) + LENGTH),
        "with a fraction": b"%d.0" % LENGTH,
        "with an exponent": b"%de0" % LENGTH,
        "with an underscore": b"%d_%d" % (LENGTH // 10, LENGTH % 10),
        "behind a vertical tab": b"\x0b%d" % LENGTH,
        "with a letter": b"%da" % LENGTH,
        "in digits of another script": "٤٤".encode(),
    }.items():
        yield with_length(name, value)
    yield Case("two Content-Lengths that are equal", POST + HERE + JSON + LENGTH_FIELD * 2 + b"\r\n" + BODY)
    other = b"Content-Length: 0\r\n"
    yield Case("two Content-Lengths that differ", POST + HERE + JSON + LENGTH_FIELD + other + b"\r\n" + BODY)
    yield Case("two Content-Lengths, the first 0", POST + HERE + JSON + other + LENGTH_FIELD + b"\r\n" + BODY)


def codings():
    yield with_coding("and Content-Length", CODING, LENGTH_FIELD)
    yield with_coding("behind Content-Length", LENGTH_FIELD, CODING)
    yield with_coding("twice", CODING, CODING)
    yield with_coding("of a list", b"Transfer-Encoding: chunked, chunked\r\n")
    yield with_coding("with another before it", b"Transfer-Encoding: gzip, chunked\r\n")
    yield with_coding("with another behind it", b"Transfer-Encoding: chunked, gzip\r\n")
    yield with_coding("identity", b"Transfer-Encoding: identity\r\n", LENGTH_FIELD)
    yield with_coding("of another name", b"Transfer-Encoding: xchunked\r\n")
    yield with_coding("in quotes", b'Transfer-Encoding: "chunked"\r\n')
    yield with_coding("with a parameter", b"Transfer-Encoding: chunked;q=1\r\n")
    yield with_coding("behind a vertical tab", b"Transfer-Encoding: \x0bchunked\r\n")
    yield with_coding("that is empty", b"Transfer-Encoding: \r\n", LENGTH_FIELD)
    old = POST.replace(b"HTTP/1.1", b"HTTP/1.0")
    yield Case("Transfer-Encoding in HTTP/1.0", old + HERE + JSON + CODING + b"\r\n" + CHUNKS)
    yield with_coding("before a CR and a space", b"Transfer-Encoding: chunked\rX: a \r\n")
    yield Case("Transfer-Encoding on another line by CR", POST + HERE + JSON + b"X: a\r" + CODING + b"\r\n" + CHUNKS)


def chunks():
    yield first_chunk("LF behind the size", SIZE + b"\n")
    yield first_chunk("LF behind the content", SIZE + b"\r\n", b"\n" + END)
    yield first_chunk("LF behind the last size", SIZE + b"\r\n", b"\r\n0\n\r\n")
    yield first_chunk("LF at the very end", SIZE + b"\r\n", b"\r\n0\r\n\n")
    yield first_chunk("LF everywhere", SIZE + b"\n", b"\n0\n\n")
    yield first_chunk("LF behind an extension", SIZE + b";a\n")
    yield first_chunk("LF within an extension", SIZE + b";a\nb\r\n")
    yield first_chunk("LF within the last extension", SIZE + b"\r\n", b"\r\n0;a\nb\r\n\r\n")
    yield first_chunk("LF within a trailer", SIZE + b"\r\n", b"\r\n0\r\nA: b\nC: d\r\n\r\n")
    yield first_chunk("CR behind the size", SIZE + b"\r")
    yield first_chunk("CR within an extension", SIZE + b";a\rb\r\n")
    yield first_chunk("two CR behind the size", SIZE + b"\r\r\n")
    yield first_chunk("a size with 0x", b"0x" + SIZE + b"\r\n")
    yield first_chunk("a size with a plus sign", b"+" + SIZE + b"\r\n")
    yield first_chunk("a size with a minus sign", b"-" + SIZE + b"\r\n")
    yield first_chunk("a size behind a space", b" " + SIZE + b"\r\n")
    yield first_chunk("a size before a space", SIZE + b" \r\n")
    yield first_chunk("a size before a tab", SIZE + b"\t\r\n")
    yield first_chunk("a size with an underscore", SIZE[:1] + b"_" + SIZE[1:] + b"\r\n")
    yield first_chunk("a size of letters", b"zz\r\n")
    yield first_chunk("no size", b"\r\n")
    yield first_chunk("an extension without a size", b";a\r\n")
    yield first_chunk("a size above 64 bits", b"f" * 17 + b"\r\n")
    yield first_chunk("a size that is right in its last 64 bits", b"1" + SIZE.rjust(16, b"0") + b"\r\n")
    yield first_chunk("an extension of 20 kB", SIZE + b";" + b"a" * 20_000 + b"\r\n")
    yield first_chunk("content that is longer than its size", SIZE + b"\r\n", b"xx\r\n" + END)
    yield with_chunks("content that is shorter than its size", b"%x\r\n" % (LENGTH + 2) + BODY + b"\r\n" + END)
    yield first_chunk("a trailer that is no field", SIZE + b"\r\n", b"\r\n0\r\nGET / HTTP/1.1\r\n\r\n")
    yield first_chunk("a folded trailer", SIZE + b"\r\n", b"\r\n0\r\nA: b\r\n c\r\n\r\n")
    yield first_chunk("a trailer with a space before the colon", SIZE + b"\r\n", b"\r\n0\r\nA : b\r\n\r\n")


def fields():
    sized = POST + LENGTH_FIELD + JSON
    yield with_field("folded", b"A: b\r\n c\r\n")
    yield with_field("folded behind the request line", b"", GET + b" A: b\r\n")
    yield with_field("folded into nothing", b"A: b\r\n \r\n")
    yield Case(
        "a Content-Length that is folded", POST + HERE + JSON + b"Content-Length:\r\n %d\r\n\r\n" % LENGTH + BODY
    )
    yield Case("a coding that is folded", POST + HERE + JSON + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + CHUNKS)
    yield Case("a coding in a folded field", sized + HERE + b"A: b\r\n Transfer-Encoding: chunked\r\n\r\n" + BODY)
    yield Case("a space before the colon of Content-Length", POST + HERE + JSON + b"Content-Length : 9\r\n\r\n" + BODY)
    yield Case("a space before the colon of a coding", sized + HERE + b"Transfer-Encoding : chunked\r\n\r\n" + CHUNKS)
    yield Case("a tab before the colon of a coding", sized + HERE + b"Transfer-Encoding\t: chunked\r\n\r\n" + CHUNKS)
    yield with_field("without a colon", b"nonsense\r\n")
    yield with_field("without a name", b": v\r\n")
    yield with_field("with a space in its name", b"A B: v\r\n")
    yield with_field("with a parenthesis in its name", b"a(b: v\r\n")
    yield with_field("with a name that is not ASCII", "Ä: v\r\n".encode())
    yield with_field("with NUL", b"A: a\0b\r\n")
    yield with_field("with NUL in its name", b"A\0: b\r\n")
    yield with_field("with CR", b"A: a\rb\r\n")
    yield with_field("with a control character", b"A: a\x01b\r\n")
    yield with_field("with DEL", b"A: a\x7fb\r\n")
    yield with_field("that ends in LF", b"A: b\n")
    yield Case("a head that ends in LF", GET + HERE + b"\n")
    yield Case("a head whose lines end in LF", (GET + HERE + b"\r\n").replace(b"\r", b""))
    yield Case("two Hosts", GET + HERE * 2 + b"\r\n")
    yield Case("no Host", GET + b"\r\n")


def request_lines():
    for name, line in {
        "of HTTP/2.0": b"GET /v1/state/counter HTTP/2.0",
        "of HTTP/0.9": b"GET /v1/state/counter HTTP/0.9",
        "of HTTP/11": b"GET /v1/state/counter HTTP/11",
        "of http/1.1": b"GET /v1/state/counter http/1.1",
        "of HTTP/1.10": b"GET /v1/state/counter HTTP/1.10",
        "without a version": b"GET /v1/state/counter",
        "without a target": b"GET HTTP/1.1",
        "with two spaces behind the target": b"GET /v1/state/counter  HTTP/1.1",
        "with a space in its target": b"GET /v1/state /counter HTTP/1.1",
        "with a space at its end": b"GET /v1/state/counter HTTP/1.1 ",
        "with a space at its begin": b" GET /v1/state/counter HTTP/1.1",
        "with tabs": b"GET\t/v1/state/counter\tHTTP/1.1",
        "with CR": b"GET /v1/state/counter\r HTTP/1.1",
        "with NUL in its target": b"GET /v1/state/\0 HTTP/1.1",
        "with a target that is not ASCII": "GET /v1/state/ä HTTP/1.1".encode(),
        "with a method that is no token": b"G(T /v1/state/counter HTTP/1.1",
        "of binary data": bytes(range(128, 256)),
        "of a TLS handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x07" * 200,
        "of an HTTP/2 connection": b"PRI * HTTP/2.0",
    }.items():
        yield Case(f"a request line {name}", line + b"\r\n" + HERE + b"\r\n")


REFUSED = [*lengths(), *codings(), *chunks(), *fields(), *request_lines()]


def count(server):
    with server.client() as client:
        return client.get("/v1/state/counter").json["value"]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_follows_a_request_with_two_readings_never_runs(server, case):
    """The sentence that matters most, whatever the answer looks like: the counter stands where it stood."""
    before = count(server)
    converse(server.port, case.request + BEHIND, seconds=1)
    expect(count(server) - before < 1000, "what followed the request has run")


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_a_request_with_two_readings_gets_one_refusal_at_most_and_the_end_of_its_connection(server, case):
    before = count(server)
    judge_end(converse(server.port, case.request + BEHIND, seconds=2))
    expect_equal(count(server), before, "the counter after a request that was refused")


@pytest.mark.parametrize("name", ["LF behind the size", "LF everywhere", "a size of letters", "CR within an extension"])
@pytest.mark.parametrize("step", [1, 7])
def test_a_request_with_bad_chunks_is_refused_also_where_it_arrives_in_pieces(server, name, step):
    """A check that looks at the bytes before the parser has them sees parts of lines."""
    request = next(case for case in REFUSED if case.name == f"chunks: {name}").request + BEHIND
    before = count(server)
    pieces = [request[start : start + step] for start in range(0, len(request), step)]
    judge_end(converse(server.port, *pieces, pause=0.0005, seconds=3))
    expect_equal(count(server), before, "the counter after a request that was refused")


def neighbours():
    """Forms beside the refused ones, which RFC 9112 allows."""
    yield with_chunks("as usual", CHUNKS)
    yield with_chunks("a chunk for each byte", b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + END)
    yield first_chunk("zeros before the size", b"000" + SIZE + b"\r\n")
    yield first_chunk("capitals in the size", SIZE.upper() + b"\r\n")
    yield first_chunk("an extension", SIZE + b";a=b\r\n")
    yield first_chunk("an extension with a quoted semicolon", SIZE + b';a="b;c"\r\n')
    yield first_chunk("a trailer", SIZE + b"\r\n", b"\r\n0\r\nA: b\r\n\r\n")
    yield first_chunk("a last size of several zeros", SIZE + b"\r\n", b"\r\n000\r\n\r\n")
    yield with_coding("in capitals", b"Transfer-Encoding: CHUNKED\r\n")
    yield with_coding("between spaces", b"Transfer-Encoding:  chunked \r\n")
    yield with_length("with a zero before it", b"0%d" % LENGTH)
    yield Case("a request line behind an empty line", b"\r\n" + POST + HERE + JSON + LENGTH_FIELD + b"\r\n" + BODY)
    yield Case("a field without a value", POST + HERE + JSON + LENGTH_FIELD + b"A:\r\n\r\n" + BODY)
    latin = b"A: \xe4\r\n"
    yield Case("a field whose value is not ASCII", POST + HERE + JSON + LENGTH_FIELD + latin + b"\r\n" + BODY)


@pytest.mark.parametrize("case", list(neighbours()), ids=lambda case: case.name)
def test_a_request_with_one_reading_runs_and_so_does_what_follows_it(server, case):
    """Both run, or the form is refused as a whole: then neither does.

    Below 1.0, the server takes no chunks (RFC 9112, section 6.3). libmicrohttpd 1.0.1 counts a line with a chunk extension
    one byte short, and refuses some of them.
    """
    before = count(server)
    received = converse(server.port, case.request + BEHIND)
    answers = received.answers("POST", "POST")
    if len(answers) == 1:
        judge_end(received)
        is_allowed = answers[0].status == 411 or answers[0].status == 400 and b";" in case.request
        expect(is_allowed, "chunks without an extension were refused:", answers[0])
        expect(b"chunked" in case.request.lower(), "a request of a known length was refused:", answers[0])
        expect_equal(count(server), before, "the counter after a request that was refused")
        return
    expect_equal([answer.status for answer in answers], [200, 200], "the statuses")
    expect_equal(count(server), before + 1001, "the counter after both")
