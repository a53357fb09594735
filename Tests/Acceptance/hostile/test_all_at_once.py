"""Clients that each do the worst they may with a document, all at once and each from an address of its own.

While it lasts, 99 of 100 of a quiet client's commits and reads take at most 20 ms, or five times as long as before; all of
them are served; and the server grows by no more than the budgets say.
"""

import time
from urllib.parse import quote

import pytest

from harness.actions import action
from harness.expectations import sleep_until
from harness.forms import of_a_night
from harness.hostile import connections
from harness.hostile.attacks import NDJSON, floods, post
from harness.hostile.connections import Crowd, exchange
from harness.messages import encode_request
from harness.quiet import PERIOD, PERIOD_SHORT_FORM, Line, get
from harness.siege import MEBIBYTE, SECONDS_BOUND_SHORT, judge_siege, run_attack, siege
from harness.streams import EVENTS

SECONDS_BEFORE = 2
#: The budgets of the server under attack: what waits, and the state in memory.
MEMORY_BYTES_MAX, STATE_BYTES_MAX = 256 * MEBIBYTE, 768 * MEBIBYTE
#: By the page Budgets: what waits, the state and one past state, and those behind eight times `history_bytes_max`.
GROWTH_BYTES_MAX = MEMORY_BYTES_MAX + 2 * STATE_BYTES_MAX + 8 * 64 * MEBIBYTE


def load(client):
    """7 MB of rows, an array of 300,000 elements, 8 MB of numbers, 0.8 MB that is expected, and patterns among the data."""
    rows = {str(number): {"v": "y" * 7000, "n": number} for number in range(1000)}
    many = {str(number): {"a": "x" * 40, "p": "x*" * 20 + str(number)} for number in range(10_000)}
    set_value(client, "/rows", rows)
    set_value(client, "/many", many)
    set_value(client, "/array", [{"n": 1}] * 300_000)
    set_value(client, "/numbers", list(range(1_000_000)))
    set_value(client, "/expected", "e" * 800_000)
    patterns = [{"a": "x" * 6000, "p": "\\p{L}" * 1000 + str(number), "n": number} for number in range(250)]
    set_value(client, "/patterns", patterns)
    set_value(client, "/quiet", {"n": 0})


def set_value(client, path, value):
    client.commit(setting(path, value))


def setting(path, value, **others):
    return action("document/set", {"path": path, "value": value}, **others)


def get_query(target, accept=None, **parameters):
    text = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())
    return encode_request("GET", f"/v1/state{target}?{text}", fields={"Accept": accept} if accept else None)


def streams_and_commits(count, request, commit):
    """Streams that are read, of as many different queries, while commits change what they show."""

    def attack(port, ends):
        crowd, writer, number = Crowd(port), Crowd(port), 0
        crowd.open(count, request)
        while not ends():
            number += 1
            exchange(writer, commit(number))
            writer.leave()
            for connection in crowd.sockets:
                connection.setblocking(False)
                try:
                    while connection.recv(1 << 20):
                        pass
                except OSError:
                    pass
        return crowd.text()

    return attack


def many_names(number):
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = "||".join(f"@.{first}{second}" for first in letters for second in letters[number % 3 :])
    return get_query("/many", filter=names, limit="1")


def many_patterns(number):
    return get_query("/patterns", filter=f"match(@.a, @.p) && @.n != {number}", limit="1")


def many_sorts(number):
    return get_query("/many", sort=",".join(f"/k{each}" for each in range(16)), limit="1", offset=str(number % 50))


def alternating_numbers():
    bodies = [post(setting("/numbers", [number + shift for number in range(1_000_000)])) for shift in (0, 1)]
    return lambda number: bodies[number % 2]


def zeros(number):
    return post(b'{"type":"document/set","payload":{"path":"/zeros%d","value":[' % number + b",".join([b"0"] * 3_000_000) + b"]}}")


def wrong_tags(number):
    return post(setting("/array/5/n", number), {"If-Match": '"aaaaaaaaaaaaaaaaaaaaaaaaaa"'}, "/v1/actions?path=/array")


def expectations(number):
    line = setting("/expectations", number, expect=[{"path": "/expected", "value": "e" * 20}])
    return post(b"\n".join([line] * 2000), NDJSON)


def schedules(number):
    later = {"at": "2090-01-01T00:00:00Z"}
    return post(b"\n".join([setting("/later", number, schedule=later)] * 500), NDJSON)


ATTACKS = {
    "streams of queries on 7 MB": streams_and_commits(
        256,
        lambda number: get_query("/rows", EVENTS, filter=f"@.n != {number}", limit="1000"),
        lambda number: post(setting("/rows/5/v", "z" * 7000 + str(number))),
    ),
    "queries on an array": streams_and_commits(
        30,
        lambda number: get_query("/array", EVENTS, filter=f"@.n != {number + 10}", limit="1"),
        lambda number: post(setting("/array/0/n", number)),
    ),
    "patterns of the data": streams_and_commits(
        20,
        lambda number: get_query("/many", EVENTS, filter=f"match(@.a, @.p) || @.n == {number}", limit="1"),
        lambda number: post(setting("/many/1/a", "x" * 40 + str(number))),
    ),
    "filters of many names": floods(many_names, 4),
    "filters of many patterns": floods(many_patterns, 4),
    "sorts by many members": floods(many_sorts, 4),
    "8 MB over 8 MB": floods(alternating_numbers(), 2),
    "arrays of zeros": floods(zeros, 1),
    "tags of large parts": floods(wrong_tags, 8),
    "lines that expect large parts": floods(expectations, 2),
    "schedules": floods(schedules, 2),
}


def run_late(address, attack, port, begin, end):
    connections.HOSTILE_HOST = address
    sleep_until(begin)
    return run_attack(attack, port, end)


@pytest.mark.alone
@pytest.mark.long_form
@pytest.mark.seconds(long=900)
@pytest.mark.parametrize("name", [*ATTACKS, "all at once"])
def test_a_quiet_client_of_a_document_does_not_notice(workspace, figures, request, name):
    is_long = request.config.getoption("--long")
    budgets = {"memory_bytes_max": MEMORY_BYTES_MAX, "state_memory_bytes_max": STATE_BYTES_MAX}
    server = workspace.server(data="none", domain="document", **budgets)
    with server.client() as client:
        load(client)
    time.sleep(1)
    period = PERIOD if is_long else PERIOD_SHORT_FORM
    seconds = (max(20, of_a_night(600)) if name == "all at once" else 20) if is_long else 3
    begin = time.monotonic() + SECONDS_BEFORE
    attacks = list(ATTACKS.values()) if name == "all at once" else [ATTACKS[name]]
    others = [
        workspace.worker(run_late, f"127.0.0.{70 + number}", attack, server.port, begin, begin + seconds)
        for number, attack in enumerate(attacks[1:])
    ]
    outcome = siege(
        workspace,
        server,
        attacks[0],
        seconds=seconds,
        lines=[
            Line("POST", lambda number: encode_request("POST", "/v1/actions", setting("/quiet/n", number)), period=period),
            get("GET", "/v1/state/quiet", period=period),
            get("GET on a new connection", "/livez", is_fresh=True, period=8 * PERIOD),
        ],
        seconds_before=SECONDS_BEFORE,
        memory_bytes_max=GROWTH_BYTES_MAX * 3 // 4,
        seconds_bound=0.02 if is_long else SECONDS_BOUND_SHORT,
    )
    texts = [other.result(60) for other in others]
    server.kill()
    figures("; ".join([judge_siege(outcome), *texts]))
