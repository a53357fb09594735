"""Requests and answers as bytes of HTTP/1.1."""

import json

from harness.expectations import shorten

HOST = "127.0.0.1"


class Answer:
    """An HTTP answer that came whole."""

    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def cursor(self):
        return self.fields["state-cursor"]

    @property
    def version(self):
        return version_of(self.cursor)

    @property
    def closes(self):
        return self.fields.get("connection", "").lower() == "close"

    def __repr__(self):
        return f"{self.status} {self.fields} {shorten(self.body.decode(errors='replace'))}"


def version_of(cursor):
    return int(cursor.rpartition(".")[2])


def encode_request(method, target, body=None, fields=None, host=HOST):
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    fields = dict(fields or {})
    if body is not None:
        fields.setdefault("Content-Type", "application/json")
        fields.setdefault("Content-Length", str(len(body)))
    lines += [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def parse_answer(buffer, method="GET"):
    """The first answer in the buffer and how many bytes it takes, or nothing while it is incomplete."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    lines = bytes(buffer[:end]).decode("latin-1").split("\r\n")
    status = int(lines[0].split(" ", 2)[1])
    fields = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        fields[name.lower()] = value.strip()
    start = end + 4
    if method == "HEAD" or status in (204, 304) or status < 200:
        return Answer(status, fields, b""), start
    length = int(fields["content-length"])
    if len(buffer) < start + length:
        return None
    return Answer(status, fields, bytes(buffer[start : start + length])), start + length
