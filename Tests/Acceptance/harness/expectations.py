"""What a test states, and how it fails."""

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


def passes(judge, *arguments):
    """What the judge returns, or False where it fails."""
    try:
        return judge(*arguments)
    except Failure:
        return False


def wait_until(condition, what, seconds=10):
    """Evaluates the condition until its value is true, and returns that value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise Failure(f"not within {seconds} s: {what}")


def shorten(value, most=300):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"
