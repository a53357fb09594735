"""What a test states, and how it fails."""

import contextlib
import itertools
import time


class Failure(AssertionError):
    """A test has not found what its sentence says."""


def expect(condition, *evidence):
    __tracebackhide__ = True
    if not condition:
        raise Failure(" ".join(str(part) for part in evidence))


def expect_equal(found, wanted, what):
    __tracebackhide__ = True
    expect(found == wanted, f"{what}: expected {shorten(wanted)}, found {shorten(found)}")


def passes(judge, *arguments, **others):
    """What the judge returns, or False where it fails."""
    try:
        return judge(*arguments, **others)
    except Failure:
        return False


def wait_until(condition, what, seconds=10, pause=0.01, past=()):
    """Evaluates the condition until its value is true, past these exceptions, and returns that value.

    `what` may be a function of the text: how things are when the time is up.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(past):
            if found := condition():
                return found
        time.sleep(pause)
    raise Failure(f"not within {seconds} s: {what() if callable(what) else what}")


def remains(condition, what, seconds, pause=0.05):
    """The condition holds now, for so many seconds, and at their end."""
    for _ in paced(lasting(seconds), pause):
        expect(condition(), f"not for {seconds} s: {what}")
    expect(condition(), f"not after {seconds} s: {what}")


def steady(measure, what, still, seconds=30):
    """The value of a measure that has been the same for so long."""
    seen = [measure(), time.monotonic()]

    def is_steady():
        if (found := measure()) != seen[0]:
            seen[:] = found, time.monotonic()
        return time.monotonic() > seen[1] + still

    wait_until(is_steady, lambda: f"{what} stays: {seen[0]}", seconds, pause=0.05)
    return seen[0]


def lasting(seconds):
    """The numbers from 0, until the time is up."""
    end = time.monotonic() + seconds
    return itertools.takewhile(lambda _: time.monotonic() < end, itertools.count())


def paced(items, pause):
    """Each item, with a pause of so many seconds between two; a function of the second one may choose it."""
    for number, item in enumerate(items):
        if number:
            time.sleep(pause(item) if callable(pause) else pause)
        yield item


def sleep_until(moment, clock=time.monotonic):
    time.sleep(max(0, moment - clock()))


def shorten(value, most=300):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"
