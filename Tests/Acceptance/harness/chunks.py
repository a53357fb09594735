"""The framing of a chunked body, read strictly as its bytes come."""

import re

from harness.expectations import expect, expect_equal


class ChunkReader:
    """Takes the bytes of a chunked body, and returns the content of the chunks that are complete.

    `size_line` is what the line before a chunk must be: the server writes digits in lower case.
    """

    def __init__(self, size_line=rb"[0-9a-f]+"):
        self.size_line = size_line
        self.rest = bytearray()
        self.has_ended = False

    def take(self, data):
        expect(not self.has_ended, "bytes behind the last chunk:", bytes(data[:100]))
        self.rest += data
        content = bytearray()
        while not self.has_ended and (end := self.rest.find(b"\r\n")) >= 0:
            line, start = bytes(self.rest[:end]), end + 2
            expect(re.fullmatch(self.size_line, line), "no chunk size:", line[:100])
            size = int(line, 16)
            if len(self.rest) < start + size + 2:
                break
            expect_equal(bytes(self.rest[start + size : start + size + 2]), b"\r\n", "the end of a chunk")
            content += self.rest[start : start + size]
            del self.rest[: start + size + 2]
            self.has_ended = size == 0
        expect(not self.has_ended or not self.rest, "bytes behind the last chunk:", bytes(self.rest[:100]))
        return bytes(content)
