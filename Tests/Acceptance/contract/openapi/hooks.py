"""What OpenAPI cannot say: which parameters go together, and that a header field has to match its pattern."""

import json
import re

import schemathesis


# What GET of the commits before a cursor does not take.
BESIDE_NO_BEFORE = {"since", "wait", "debounce", "on-lost", "as"}


@schemathesis.deserializer("application/x-ndjson", "text/event-stream")
def lines(_, response):
    """A body of lines has the schema of a string."""
    return response.text


@schemathesis.serializer("application/x-ndjson")
def ndjson(_, value):
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


@schemathesis.hook
def filter_case(context, case):
    """Leaves out requests whose parameters do not go together, as the descriptions of the parameters say, and what is no HTTP."""
    if any(re.search(r"[\x00-\x1f\x7f]", str(value)) for value in (case.headers or {}).values()):
        # Links put what a body may hold into a header field.
        return False
    if case.media_type == "application/x-ndjson" and not (case.meta and case.meta.generation.mode.is_positive):
        # Any text has the schema of lines, and the answer has the refusal of each.
        return False
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return True
    query, headers = case.query or {}, case.headers or {}
    for name, pattern in PATTERNS.items():
        if name in headers and not re.fullmatch(pattern, str(headers[name])):
            return False
    path = case.operation.path
    if "/streams/" in path and "live" in query:
        return "offset" in query
    if path.endswith("/changes") and not query.keys() & {"since", "before"}:
        return False
    if path.endswith("/changes") and "before" in query and query.keys() & BESIDE_NO_BEFORE:
        return False
    if path.endswith("/actions"):
        return "path" not in query or "If-Match" in headers
    if "/state" in path or "/views/" in path:
        is_keyed = "as" in query
        if is_keyed and query.keys() & {"version", "at-least", "until"}:
            return False
        if "since" in query and not is_keyed:
            return False
        if "version" in query and query.keys() & {"wait", "at-least", "until"}:
            return False
        if query.keys() & {"until", "debounce"} and not query.get("wait") and not is_keyed:
            return False
        if "until" in query:
            try:
                json.loads(query["until"], parse_constant=refuse)
            except ValueError:
                return False
    return True


def refuse(name):
    """Refuses what Python reads as a number and JSON has not."""
    raise ValueError(name)


TAGS = r'(\*|(W/)?"[!#-~]*"(, ?(W/)?"[!#-~]*")*)'
PATTERNS = {
    "If-Match": TAGS,
    "If-None-Match": TAGS,
    "Idempotency-Key": r'("([ -\[\]-~]|\\[ -~]){1,255}\\?"|[!#-~][ -~]{0,254})',
}
