"""One hostile client of each kind beside a quiet one, which has to notice nothing.

While it lasts, 99 of 100 of the quiet client's commits and reads take at most 100 ms, or five times as long as before;
all of them are served; the server grows by no more than `memory_bytes_max` and a third; and a second after the end all
is as before. The two clients have different addresses. The long form (--long) has the scale of an attack, and a larger
budget; the short one shows that the budget is there at all.
"""

import dataclasses
import os
from typing import Callable

import pytest
from harness.actions import action, add, batch
from harness.actions import bulk as load_lines
from harness.films_server import Stub
from harness.hostile.attacks import (
    NDJSON,
    bombs,
    bulk,
    chunk_dribble,
    churning_streams,
    connects,
    floods,
    hang_ups,
    load_tasks,
    post,
    rename,
    slow_bytes,
    together,
    unfinished_bodies,
    unread,
    unread_streams_and_commits,
    waits_and_commits,
)
from harness.messages import encode_request
from harness.quiet import PERIOD, PERIOD_SHORT_FORM, Line, get, usual_lines
from harness.siege import MEBIBYTE, SECONDS_BOUND, SECONDS_BOUND_SHORT, judge_siege, siege
from harness.streams import EVENTS, LINES


@dataclasses.dataclass
class Kind:
    """A kind of hostile client: what it does at a scale, and the state and the settings of its server.

    A kind whose short scale is 0 is only in the long form.
    """

    name: str
    attack: Callable
    short: int
    long: int
    load: Callable = None
    settings: dict = dataclasses.field(default_factory=dict)
    lines: list = dataclasses.field(default_factory=list)


def read(target, method="GET", **fields):
    return encode_request(method, target, fields={name.replace("_", "-"): value for name, value in fields.items()})


def large_state(client):
    """2 MB."""
    load_tasks(client, 2000, 1000)


def many_tasks(client):
    """10,000 tasks in 1.3 MB."""
    load_tasks(client, 10_000, 100)


def many_favourites(client):
    load_tasks(client, 10_000, 10)
    client.commit(batch(*[action("tasks/favourite", {"id": number}) for number in range(10_000)]))


def many_objects(client):
    """20,000 objects in one block."""
    frame = {"x": 0, "y": 0, "width": 1, "height": 1}
    client.commit(action("canvas/addBlock", {"id": 1, "frame": frame}))
    for start in range(0, 20_000, 2000):
        objects = range(start, start + 2000)
        client.commit(
            batch(*[action("canvas/addObject", {"id": number, "block": 1, "frame": frame}) for number in objects])
        )


def many_versions(client):
    """A state of 1.3 MB, and a thousand versions behind it."""
    many_tasks(client)
    for start in range(0, 1000, 100):
        load_lines(client, [rename(start + number) for number in range(100)])


def many_films(client):
    client.commit(action("films/load"), Prefer="wait=20")


def toggles(count, number=0):
    """Takes so many favourites from the middle of the list; the next time, it adds them again."""
    return [
        action("tasks/favourite", {"id": each * 7919 % 10_000, "favourite": bool((number + each // 10_000) % 2)})
        for each in range(count)
    ]


def past(number):
    return read(f"/v1/state/tasks?version={number * 37 % 990 + 3}")


def meta(text):
    return post(b'{"type":"counter/add","payload":{"amount":0},"meta":%s}' % text)


def keys_of(count):
    return meta(b"{" + b",".join(b'"%x":1' % number for number in range(count)) + b"}")


def head_of(size, number):
    """A head of so many bytes that no cache has seen before."""
    fields = {f"X-{number}-{each}": "v" * 40 for each in range(size // 55)}
    return encode_request("GET", "/v1/state/counter", fields=fields)


CLEAR = action("canvas/removeBlock", {"id": 1})
SLOW_HEAD = b"GET /v1/state/counter HTTP/1.1\r\nX: " + b"a" * 1000
SLOW_BODY = encode_request("POST", "/v1/actions", None, {"Content-Type": "application/json", "Content-Length": 9999})
CHEAP = [
    read("/metrics"),
    read("/v1/openapi.json"),
    read("/v1/actions"),
    read("/v1"),
    read("/v1/state/tasks/ids"),
    read("/v1/state/tasks", "OPTIONS"),
]
# A server with few places, of which the hostile client wants more than there are.
FEW_PLACES = {"connections_max": 64, "waiters_max": 32}
# Commits of large values fill the history up to its own limit, which is not what is tested here.
SHORT_HISTORY = {"history_bytes_max": 4 * MEBIBYTE}
# What the bodies of NDJSON may fill of a small ledger; the quiet client commits with keys of its own.
FEW_KEYS = {"idempotency_keys_max": 2000}
# Fewer in the ten seconds of the long form than the share of a client, which is half of the keys.
KEYED = Line("POST with a key", lambda number: post(add(1), {"Idempotency-Key": f"quiet-{number}"}), period=0.02)
UNKNOWN = get("GET of an unknown action", "/v1/actions/nobody", wanted=(404,), period=0.05)
DEBOUNCED = get("GET with debounce", "/v1/changes?since=oldest&limit=1&wait=0.05&debounce=1", period=0.05)

KINDS = [
    # Turns.
    Kind(
        "lines that each expect the whole state",
        lambda count: bombs(bulk([add(1, expect=[{"path": "", "value": 0}])] * count)),
        short=2000,
        long=6000,
        load=many_tasks,
    ),
    Kind(
        "lines that each expect a deep pointer",
        lambda count: bombs(bulk([add(1, expect=[{"path": "/a" * 900, "value": 0}])] * count)),
        short=3000,
        long=4000,
    ),
    Kind(
        "an array of toggles of 10,000 favourites",
        lambda count: bombs(lambda number: post(batch(*toggles(count, number)))),
        short=3000,
        long=10_000,
        load=many_favourites,
    ),
    Kind(
        "lines of toggles of 10,000 favourites",
        lambda count: bombs(lambda number: bulk(toggles(count, number))),
        short=5000,
        long=100_000,
        load=many_favourites,
    ),
    Kind(
        "dry runs of arrays of 10,000 actions",
        lambda count: bombs(post(batch(*[add(1)] * count), target="/v1/actions?dry-run=true")),
        short=0,
        long=10_000,
    ),
    Kind(
        "actions that answer with a large part",
        lambda count: floods(lambda number: post(rename(number), {"Prefer": "return=representation"}), count),
        short=4,
        long=16,
        load=large_state,
    ),
    Kind(
        "dry runs of a patch of 4 MB",
        lambda count: floods(post(CLEAR, target="/v1/actions?dry-run"), count),
        short=8,
        long=64,
        load=many_objects,
    ),
    Kind(
        "lines of dry runs of a patch of 4 MB",
        lambda count: bombs(post(b"\n".join([CLEAR] * count), NDJSON, "/v1/actions?dry-run")),
        short=50,
        long=200,
        load=many_objects,
    ),
    Kind(
        "lines that match anything",
        lambda count: bombs(bulk([action("counter/reset")] * count, **{"If-Match": "*"})),
        short=5000,
        long=150_000,
        load=many_tasks,
    ),
    Kind(
        "commits that another tag guards",
        lambda count: floods(post(action("counter/reset"), {"If-Match": '"x"'}), count),
        short=8,
        long=64,
        load=many_tasks,
    ),
    Kind(
        "lines that each answer with a list of 10,000",
        lambda count: bombs(
            lambda number: post(b"\n".join(toggles(count, number)), NDJSON | {"Prefer": "return=representation"})
        ),
        short=2000,
        long=8000,
        load=many_favourites,
    ),
    Kind("rejected actions", lambda count: floods(post(action("tasks/remove", {"id": 7})), count, 4), short=0, long=64),
    # Loops.
    Kind(
        "lines of unknown types",
        lambda count: bombs(bulk([action(f"task/ad{number}") for number in range(count)])),
        short=200_000,
        long=200_000,
    ),
    Kind("short lines of no JSON", lambda count: bombs(post(b"x\n" * count, NDJSON)), short=150_000, long=200_000),
    Kind("a body of open brackets", lambda count: bombs(post(b"[" * count)), short=8_000_000, long=8_388_608),
    Kind("a body of many keys", lambda count: bombs(keys_of(count)), short=700_000, long=700_000),
    Kind(
        "a body of many numbers",
        lambda count: bombs(meta(b"[" + b",".join([b"1"] * count) + b"]")),
        short=3_900_000,
        long=4_100_000,
    ),
    Kind("a body of one digit after the other", lambda count: bombs(meta(b"1" * count)), short=0, long=8_000_000),
    Kind("reads of 2 MB, not read", lambda count: unread(read("/v1/state/tasks"), count), 300, 1000, large_state),
    Kind(
        "indented reads of 2 MB, not read",
        lambda count: unread(read("/v1/state/tasks?pretty"), count),
        300,
        1000,
        large_state,
    ),
    Kind("indented reads of 2 MB", lambda count: floods(read("/v1/state/tasks?pretty"), count), 0, 32, large_state),
    Kind("reads of a Codable value", lambda count: floods(read("/v1/state/films?pretty"), count), 0, 32, many_films),
    Kind("heads of 7 kB that differ", lambda count: floods(lambda number: head_of(3000, number), count, 4), 8, 64),
    Kind("reads of deep pointers", lambda count: floods(read("/v1/state" + "/a" * 990), count, 10), 8, 64),
    Kind("HEAD", lambda count: floods(read("/v1/state/tasks", "HEAD"), count, 10), 0, 64, large_state),
    Kind("cheap reads", lambda count: floods(lambda number: CHEAP[number % len(CHEAP)], count, 10), 8, 64, large_state),
    Kind("pipelined reads", lambda count: floods(read("/v1/state/counter"), 8, count), 100, 1000),
    Kind("pipelined commits", lambda count: floods(post(add(1)), 8, count), 0, 1000),
    # Bytes in flight.
    Kind("bodies of 8 MB that lack a byte", lambda count: unfinished_bodies(count, 8 << 20), 20, 373),
    Kind(
        "pipelined reads of 2 MB, not read",
        lambda count: unread(read("/v1/state/tasks"), count, copies=400),
        20,
        200,
        large_state,
    ),
    Kind(
        "streams of 2 MB, not read",
        lambda count: unread_streams_and_commits(count, "/v1/state/tasks", lambda number: post(rename(number))),
        150,
        500,
        large_state,
        SHORT_HISTORY,
    ),
    Kind(
        "streams of large commits, not read",
        lambda count: unread_streams_and_commits(
            count, "/v1/changes?since=oldest", lambda number: post(rename(number, 500_000)), LINES
        ),
        50,
        500,
        large_state,
        SHORT_HISTORY,
    ),
    Kind(
        "pages of large commits, not read",
        lambda count: together(
            bombs(lambda number: post(rename(number, 1_000_000))),
            unread(read("/v1/changes?since=oldest&limit=1000"), count),
        ),
        50,
        500,
        large_state,
        SHORT_HISTORY,
    ),
    Kind(
        "waits for a value of 3.4 kB",
        lambda count: unread(read("/v1/state/tasks?wait=50&until=[" + ",".join(["1"] * 1650) + "]"), count),
        2500,
        15_000,
    ),
    Kind(
        "commits of 4 MB at once",
        lambda count: floods(meta(b'{"a":"' + b"x" * 4_000_000 + b'"}'), count),
        40,
        200,
        None,
        SHORT_HISTORY,
    ),
    Kind(
        "commits with a meta of 8 MB", lambda count: bombs(meta(b'{"a":"' + b"x" * count + b'"}')), 8_000_000, 8_300_000
    ),
    # Places and time.
    Kind("heads byte by byte", lambda count: slow_bytes(count, SLOW_HEAD, 0.1), 80, 80, None, FEW_PLACES),
    Kind("bodies byte by byte", lambda count: slow_bytes(count, SLOW_BODY, 0.1), 80, 80, None, FEW_PLACES),
    Kind("silent connections", lambda count: unread(b"", count), 0, 80, None, FEW_PLACES),
    Kind("heads without an end", lambda count: unread(SLOW_HEAD, count), 80, 80, None, FEW_PLACES),
    Kind(
        "waits that take every place",
        lambda count: unread(read("/v1/changes?since=now&debounce=1", Accept=EVENTS), count),
        80,
        80,
        None,
        FEW_PLACES,
    ),
    Kind("chunks of one byte without an end", lambda count: chunk_dribble(count), 8, 64),
    Kind("connections", lambda count: together(*[connects(), connects(read("/livez"))] * count), 1, 3),
    # Past versions.
    Kind(
        "past versions",
        lambda count: floods(past, count),
        32,
        300,
        many_versions,
        lines=[UNKNOWN, DEBOUNCED, get("GET of 1 MB", "/v1/state/tasks", period=0.1)],
    ),
    Kind(
        "past versions, not read",
        lambda count: unread(past, count),
        150,
        900,
        many_versions,
        lines=[UNKNOWN, DEBOUNCED],
    ),
    Kind("unknown action IDs", lambda count: floods(lambda number: read(f"/v1/actions/x{number}"), count), 16, 64),
    Kind(
        "keyed differences",
        lambda count: floods(read("/v1/changes?since=oldest&as=keyed&limit=1000"), count),
        8,
        32,
        many_versions,
    ),
    Kind(
        "keyed differences of a large state", lambda count: floods(read("/v1/state?as=keyed"), count), 0, 32, many_tasks
    ),
    # Keys.
    Kind(
        "keys that fill the ledger",
        lambda count: bombs(
            lambda number: post(b"\n".join([add(1)] * count), NDJSON | {"Idempotency-Key": f"hostile-{number}"})
        ),
        500,
        1900,
        None,
        FEW_KEYS,
        [KEYED],
    ),
    # Waits.
    Kind(
        "waiters that hang up at once",
        lambda count: hang_ups(count, read("/v1/state/session?wait=50&until=7")),
        1000,
        2000,
    ),
    Kind(
        "waits with debounce that each commit wakes",
        lambda count: waits_and_commits(
            count, read("/v1/changes?since=oldest&limit=1&wait=50&debounce=1"), post(add(1))
        ),
        300,
        5000,
    ),
    Kind(
        "streams of a large value that each commit changes",
        lambda count: waits_and_commits(
            count, read("/v1/state/tasks?debounce=1", Accept=EVENTS), lambda number: post(rename(number))
        ),
        100,
        500,
        large_state,
        SHORT_HISTORY,
    ),
    Kind("streams that come and go", lambda count: churning_streams(count, "/v1/state/tasks"), 0, 200, large_state),
]


# One or two for each budget; a variable runs the short form of all, which takes half a minute more.
SHORT_FORM = {
    "lines that each expect a deep pointer",
    "an array of toggles of 10,000 favourites",
    "lines of toggles of 10,000 favourites",
    "dry runs of a patch of 4 MB",
    "lines that match anything",
    "lines of unknown types",
    "a body of many keys",
    "reads of 2 MB, not read",
    "streams of 2 MB, not read",
    "bodies of 8 MB that lack a byte",
    "commits with a meta of 8 MB",
    "heads byte by byte",
    "bodies byte by byte",
    "past versions",
    "keys that fill the ledger",
    "waiters that hang up at once",
}


def pytest_generate_tests(metafunc):
    is_long = metafunc.config.getoption("--long")
    has_all = bool(os.environ.get("ALL_HOSTILE_CLIENTS"))
    kinds = [kind for kind in KINDS if is_long or kind.short and (has_all or kind.name in SHORT_FORM)]
    if unknown := SHORT_FORM - {kind.name for kind in KINDS if kind.short}:
        raise pytest.UsageError(f"no hostile client is called {unknown}")
    metafunc.parametrize("kind", kinds, ids=lambda kind: kind.name)


@pytest.mark.alone
@pytest.mark.long_form
def test_a_quiet_client_does_not_notice_a_hostile_one_of(workspace, figures, request, kind):
    is_long = request.config.getoption("--long")
    outcome = besiege(workspace, kind, is_long)
    for _ in range(2):
        # A busy machine can stop any process for a tenth of a second; what the server does wrong, it does again.
        if outcome.is_near_miss():
            outcome = besiege(workspace, kind, is_long)
    figures(judge_siege(outcome))


def besiege(workspace, kind, is_long):
    memory_bytes_max = (256 if is_long else 128) * MEBIBYTE
    budget = workspace.known(memory_bytes_max=memory_bytes_max)
    films = Stub(workspace)
    films.will(films.films([{"title": "x" * 200, "director": "y" * 200, "episode_id": 1}] * 1000))
    server = workspace.server(data="none", films_base_url=films.address, **kind.settings, **budget)
    if kind.load:
        with server.client() as client:
            kind.load(client)
    outcome = siege(
        workspace,
        server,
        kind.attack(kind.long if is_long else kind.short),
        seconds=10 if is_long else 0.8,
        lines=usual_lines(PERIOD if is_long else PERIOD_SHORT_FORM) + kind.lines,
        memory_bytes_max=memory_bytes_max,
        seconds_bound=SECONDS_BOUND if is_long else SECONDS_BOUND_SHORT,
    )
    server.kill()
    return outcome
