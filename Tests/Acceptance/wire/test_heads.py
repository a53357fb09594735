"""Heads at the limits and beyond: each is answered, or the connection ends behind one refusal at most."""

import collections
import itertools
import re

import pytest
from harness.actions import add
from harness.expectations import Failure, expect, expect_equal
from harness.wire import converse, head, judge_end, judge_one_answer

Case = collections.namedtuple("Case", "name request wanted method", defaults=(None, "GET"))

COUNTER = "/v1/state/counter"
# What the contract says of each head that is not refused for its size.
OK, NO_SUCH_PATH, UNKNOWN_PARAMETER = 200, 404, 400
# The longest head that is always taken: libmicrohttpd has 16 KiB for it, with 64 bytes for each field and parameter, and
# with a copy of each Cookie.
HEAD_BYTES_MAX, POOL_BYTES, FIELDS_MAX, PARAMETERS_MAX, TARGET_BYTES_MAX = 12 << 10, 15_500, 100, 100, 8000


def parameters_of(count, form):
    return head("GET", f"{COUNTER}?" + "&".join(form % number for number in range(count)))


def target_of(size):
    return head("GET", "/v1/state/" + "x" * (size - len("/v1/state/")))


def fields_of(count):
    return head("GET", COUNTER, *[f"X-Field-{number}: value" for number in range(count)])


def cookie_of(size):
    return head("GET", COUNTER, "Cookie: session=" + "x" * (size - len("session=")))


def bearer_of(size):
    return head("GET", COUNTER, "Authorization: Bearer " + "x" * (size - len("Bearer ")))


def table():
    """About a hundred heads, and the status of each where it is not refused for its size."""
    for count in (50, 100, 110, 114, 115, 116, 117, 118, 120, 128, 150, 200, 300, 500, 1000):
        yield Case(f"{count} parameters", parameters_of(count, "a%d=1"), UNKNOWN_PARAMETER)
    for count in (116, 200):
        yield Case(f"{count} parameters without values", parameters_of(count, "a%d"), UNKNOWN_PARAMETER)
    sizes = (1000, 4000, 4096, 6000, 7000, 7168, 7900, 8000, 8060, 8070, 8080, 8090, 8100, 8150, 8180, 8190, 8192)
    for size in sizes + (8200, 9000, 12_000, 16_000, 16_384, 20_000, 32_768, 65_000, 70_000, 200_000):
        yield Case(f"a target of {size} bytes", target_of(size), NO_SUCH_PATH)
    for count in (20, 50, 80, 100, 105, 108, 110, 115, 120, 150, 200, 500, 1000, 5000):
        yield Case(f"{count} fields", fields_of(count), OK)
    sizes = (1000, 2000, 3000, 3500, 3800, 3900, 4000, 4096, 5000, 6000, 7000, 8000, 8192, 10_000, 12_000, 16_000)
    for size in sizes + (16_384, 17_000, 20_000, 32_000, 33_000, 65_536, 70_000, 300_000):
        yield Case(f"a cookie of {size} bytes", cookie_of(size), OK)
    for size in (1000, 3900, 7000, 7900, 8000, 8192, 16_000):
        yield Case(f"a bearer token of {size} bytes", bearer_of(size), OK)
    for size in (4000, 8000, 16_000):
        yield Case(f"a field name of {size} bytes", head("GET", COUNTER, "x" * size + ": v"), OK)
    yield Case("a method of 9000 bytes", head("A" * 9000, COUNTER), 405)
    yield Case("an empty line before", b"\r\n" + head("GET", COUNTER), OK)


HEADS = list(table())


def is_within_limits(request):
    first, *fields = request.strip().split(b"\r\n")
    target, cookies = first.split()[1], sum(len(field) for field in fields if field.startswith(b"Cookie"))
    parameters = target.count(b"&")
    return (
        len(request) <= HEAD_BYTES_MAX
        and len(request) + cookies + 64 * (len(fields) + parameters) <= POOL_BYTES
        and len(fields) <= FIELDS_MAX
        and parameters < PARAMETERS_MAX
        and len(target) <= TARGET_BYTES_MAX
    )


@pytest.mark.parametrize("case", HEADS, ids=lambda case: case.name)
def test_a_head_is_answered_or_the_connection_ends_behind_one_refusal(server, case):
    """Never with silence or with two heads."""
    received = converse(server.port, case.request)
    if is_within_limits(case.request):
        expect_equal(judge_one_answer(received, case.method).status, case.wanted, "the status")
    elif received.has_ended or not received.data:
        judge_end(received)
    else:
        expect_equal(judge_one_answer(received, case.method).status, case.wanted, "the status")


def everyday():
    """Heads that browsers and proxies send every day: each is answered as if it were short."""
    body = add(0)
    plain = head("GET", COUNTER)
    fields = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    yield Case("a cookie of 3900 bytes", [cookie_of(3900)], [OK])
    yield Case("a cookie of 4096 bytes", [cookie_of(4096)], [OK])
    yield Case("a cookie of 6000 bytes", [cookie_of(6000)], [OK])
    split = head("GET", COUNTER, *[f"Cookie: part{number}=" + "x" * 1400 for number in range(4)])
    yield Case("four cookies of 1.4 kB", [split], [OK])
    yield Case("a bearer token of 7.9 kB", [bearer_of(7900)], [OK])
    yield Case("a cookie of 4 kB and a bearer token of 4 kB", [both_of(4000, 4000)], [OK])
    yield Case("99 fields and Host", [fields_of(99)], [OK])
    yield Case("a target of 4 kB and a cookie of 3 kB", [head("GET", long_types(4000), cookie(3000))], [OK])
    yield Case("a large head behind a small one", [plain, cookie_of(6000)], [OK, OK])
    yield Case("a small head behind a large one", [cookie_of(6000), plain], [OK, OK])
    yield Case("five large heads in turn", [cookie_of(6000)] * 5, [OK] * 5)
    yield Case("large and small heads in turn", [cookie_of(6000), plain] * 3, [OK] * 6)
    yield Case("a POST with a cookie of 6 kB", [head("POST", "/v1/actions", cookie(6000), *fields) + body], [OK])
    yield Case("a HEAD with a cookie of 6 kB", [head("HEAD", COUNTER, cookie(6000))], [OK], "HEAD")


def cookie(size):
    return "Cookie: session=" + "x" * (size - len("session="))


def both_of(cookie_size, token_size):
    return head("GET", COUNTER, cookie(cookie_size), "Authorization: Bearer " + "x" * token_size)


def long_types(size):
    """A target of the contract that is long because it names the same type many times."""
    name = "counter/add"
    return "/v1/changes?since=now&types=" + ",".join(itertools.repeat(name, size // (len(name) + 1)))


EVERYDAY = list(everyday())


@pytest.mark.parametrize("case", EVERYDAY, ids=lambda case: case.name)
@pytest.mark.parametrize("way", ["at once", "in pieces"])
def test_everyday_heads_pass(server, case, way):
    """Also where they arrive in pieces of a packet each, and on a connection that had other requests before."""
    data = b"".join(case.request)
    step = len(data) if way == "at once" else 1400
    pieces = [data[start : start + step] for start in range(0, len(data), step)]
    received = converse(server.port, *pieces, pause=0.002, method=case.method, seconds=2)
    answers = received.answers(*[case.method] * len(case.request))
    expect_equal([answer.status for answer in answers], case.wanted, "the statuses")
    expect(not any(answer.closes for answer in answers), "an everyday head ends its connection:", answers[-1])


CLOSE = "Connection: close"
FAMILIES = {
    "a cookie": lambda size: head("GET", COUNTER, CLOSE, cookie(size)),
    "a bearer token": lambda size: head("GET", COUNTER, CLOSE, "Authorization: Bearer " + "x" * size),
    "a target": lambda size: head("GET", "/v1/state/" + "x" * size, CLOSE),
    "parameters": lambda size: head("GET", f"{COUNTER}?" + "&".join(f"a{each}=1" for each in range(size // 60)), CLOSE),
    "fields": lambda size: head("GET", COUNTER, CLOSE, *[f"X-{each}: v" for each in range(size // 60)]),
    "long fields": lambda size: head(
        "GET", COUNTER, CLOSE, *[f"X-{each}: " + "v" * (size // 20) for each in range(20)]
    ),
    "a field name": lambda size: head("GET", COUNTER, CLOSE, "x" * size + ": v"),
    "a cookie behind a target of 4 kB": lambda size: head("GET", "/v1/state/" + "x" * 4000, CLOSE, cookie(size)),
    "many cookies": lambda size: head("GET", COUNTER, CLOSE, "Cookie: " + "; ".join(["a=b"] * (size // 5))),
    "a method": lambda size: head("A" * size, COUNTER, CLOSE),
    "a cookie behind one": lambda size: head("GET", COUNTER, cookie(size)) + head("GET", COUNTER, CLOSE, cookie(size)),
    "a cookie behind a small head": lambda size: head("GET", COUNTER) + head("GET", COUNTER, CLOSE, cookie(size)),
    "a cookie before a body": lambda size: head("POST", "/v1/actions", CLOSE, cookie(size), *JSON) + add(0),
}
JSON = ("Content-Type: application/json", f"Content-Length: {len(add(0))}")


@pytest.mark.rounds(244, long=1823)
@pytest.mark.parametrize("name", FAMILIES)
def test_there_is_no_size_at_which_a_head_is_met_with_silence(server, figures, rounds, name):
    """In so many steps, past all limits: there are places between them where nothing is in charge."""
    faults, statuses = [], collections.Counter()
    for size in range(300, 24_000, 23_700 // rounds):
        try:
            received = converse(server.port, FAMILIES[name](size), seconds=1)
            expect(received.has_ended, "the connection was not ended within a second")
            found = re.findall(rb"HTTP/1\.1 ([2-5]\d\d) ", received.data)
            statuses.update(status.decode() for status in found or [b"no answer"])
        except Failure as fault:
            faults.append(f"{size} bytes: {fault}")
            if len(faults) == 5:
                break
    expect(not faults, f"{name}: " + "; ".join(faults))
    figures(", ".join(f"{count} times {status}" for status, count in sorted(statuses.items())))
