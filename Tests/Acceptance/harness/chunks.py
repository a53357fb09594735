"""The chunked transfer coding, as a stream arrives."""

import re

from harness.expectations import expect, shorten


class Dechunker:
    """Takes the bytes of a chunked body as they come, and returns its content (RFC 9112, section 7.1)."""

    def __init__(self):
        self.rest = bytearray()
        self.left = None  # of the chunk that is under way; nothing between chunks
        self.has_ended = False

    def take(self, data):
        self.rest += data
        content = bytearray()
        while not self.has_ended:
            if self.left is None:
                end = self.rest.find(b"\r\n")
                if end < 0:
                    break
                line = bytes(self.rest[:end])
                expect(re.fullmatch(rb"[0-9A-Fa-f]+", line), "a bad chunk line:", shorten(repr(line)))
                del self.rest[: end + 2]
                self.left = int(line, 16)
                self.is_last = self.left == 0
            part = self.rest[: self.left]
            content += part
            del self.rest[: len(part)]
            self.left -= len(part)
            if self.left or len(self.rest) < 2:
                break
            expect(self.rest[:2] == b"\r\n", "a chunk that does not end where it says:", bytes(self.rest[:20]))
            del self.rest[:2]
            self.left, self.has_ended = None, self.is_last
        expect(not (self.has_ended and self.rest), "bytes behind the last chunk:", bytes(self.rest[:100]))
        return bytes(content)


class Unchunked:
    """A body that ends with its connection."""

    has_ended = False

    def take(self, data):
        return bytes(data)


def body_reader(fields):
    """A reader for the body of an answer with these fields, whose names are in lower case."""
    return Dechunker() if fields.get("transfer-encoding", "").lower() == "chunked" else Unchunked()
