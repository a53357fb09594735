"""A quiet client beside a hostile one: how long its requests take, and what it is answered.

Each kind of request has a schedule of its own. A request's time counts from when it was due, so that a server that
stands still for a second is charged for every request of that second, and not only for the one that met it.
"""

import collections
import selectors
import socket
import time

from harness.actions import add
from harness.expectations import expect
from harness.messages import HOST, encode_request, parse_answer

Sample = collections.namedtuple("Sample", "kind due seconds status")

# Where the quiet client comes from, and where the hostile one does: budgets have shares for each address.
QUIET_HOST, HOSTILE_HOST = "127.0.0.1", "127.0.0.66"

PERIOD = 0.005
# On a machine that has other work. 99 of 100 commits behind a turn take 24 ms on two processors that twelve programs share:
# requests that are due in shorter periods wait for one another then, whatever the hostile client does.
PERIOD_SHORT_FORM = 0.025
# A request that has no answer after this time counts as lost; its connection is given up.
LOST_SECONDS = 5


class Line:
    """One kind of request, on one connection; with `is_fresh` on a new connection each time."""

    def __init__(self, kind, request, wanted=(200,), is_fresh=False, period=PERIOD):
        self.kind, self.wanted, self.is_fresh, self.period = kind, wanted, is_fresh, period
        self.request = request if callable(request) else lambda number: request
        self.number = 0
        self.connection, self.buffer, self.due, self.sent = None, bytearray(), 0.0, None


def get(kind, target, **others):
    return Line(kind, encode_request("GET", target), **others)


def usual_lines(period=PERIOD):
    """A commit and a read in each period, and now and then a probe on a new connection."""
    return [
        Line("POST", encode_request("POST", "/v1/actions", add(1)), period=period),
        get("GET", "/v1/state/counter", period=period),
        get("GET on a new connection", "/livez", is_fresh=True, period=8 * PERIOD),
    ]


def watch(port, lines, until, report=None):
    """Makes the requests of all lines until `until()` holds; returns the samples. Runs in a process of its own."""
    selector = selectors.DefaultSelector()
    samples = []
    begun = time.monotonic()
    for number, line in enumerate(lines):
        line.due = begun + line.period * number / len(lines)

    def drop(line):
        if line.connection:
            selector.unregister(line.connection)
            line.connection.close()
        line.connection, line.sent, line.buffer = None, None, bytearray()

    def finish(line, status, now):
        samples.append(Sample(line.kind, line.due, now - line.due, status))
        if report:
            report(samples[-1])
        line.due += line.period
        line.sent = None
        if line.is_fresh or not isinstance(status, int):
            drop(line)

    def begin(line):
        try:
            if line.connection is None:
                line.connection = socket.create_connection((HOST, port), LOST_SECONDS, (QUIET_HOST, 0))
                line.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(line.connection, selectors.EVENT_READ, line)
            line.number += 1
            line.sent = time.monotonic()
            line.connection.sendall(line.request(line.number))
        except OSError as error:
            finish(line, f"{type(error).__name__} while connecting or sending", time.monotonic())

    while True:
        now = time.monotonic()
        stops = until()
        if stops and not any(line.sent for line in lines):
            break
        for line in lines:
            if line.sent is None and line.due <= now and not stops:
                begin(line)
            elif line.sent is not None and now - line.due > LOST_SECONDS:
                finish(line, f"no answer within {LOST_SECONDS} s", now)
        waiting = [line.due for line in lines if line.sent is None and not stops]
        timeout = max(0.0, min(waiting, default=now + 0.05) - time.monotonic())
        for key, _ in selector.select(min(timeout, 0.05)):
            line = key.data
            try:
                data = line.connection.recv(1 << 20)
            except OSError as error:
                finish(line, f"{type(error).__name__} while receiving", time.monotonic())
                continue
            if not data:
                finish(line, "the connection ended without an answer", time.monotonic())
                continue
            line.buffer += data
            parsed = parse_answer(line.buffer)
            if parsed:
                answer, count = parsed
                del line.buffer[:count]
                finish(line, answer.status, time.monotonic())
                if answer.closes:
                    drop(line)
    for line in lines:
        drop(line)
    selector.close()
    return samples


def percentile(seconds, share=0.99):
    """The time that this share of the samples keeps within."""
    expect(seconds, "NOT CHECKED: no sample")
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
