"""The code that stands in the pages of the documentation."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = ROOT / "Sources/StateServer/StateServer.docc"


def blocks(page, language):
    """Each block of code in this language with the sentence above it, in their order."""
    text = (PAGES / page).read_text()
    found = []
    for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        above = text[: match.start()].rstrip().rpartition("\n\n")[2]
        found.append((" ".join(above.split()), match[1]))
    return found


class Block:
    """A block of code: where it stands, its language, its text, and the block of output that follows it."""

    def __init__(self, page, number, language, text):
        self.page, self.number, self.language, self.text = page, number, language, text
        self.output = None

    def __repr__(self):
        return f"{self.page}-{self.number}"


def all_blocks():
    """Every block of every page and of the README; one of JSON or without a language right below it is its output."""
    found = []
    for path in [ROOT / "README.md", *sorted(PAGES.rglob("*.md"))]:
        page, above, end = path.read_text(), None, 0
        parts = re.finditer(r"^ *```(\w*)\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL)
        for number, part in enumerate(parts, 1):
            block = Block(path.name, number, part[1], part[2])
            is_output = part[1] in ("", "json") and above and not page[end : part.start()].strip()
            if is_output:
                above.output = part[2]
            else:
                found.append(block)
            above, end = None if is_output else block, part.end()
    return found


def normal(text):
    """Text without what differs from run to run: epochs, times, the pause of a stream."""
    text = re.sub(r"\b[a-z0-9]{16}\.(\d+)", r"EPOCH.\1", text)
    text = re.sub(r'"epoch":"[a-z0-9]{16}"', '"epoch":"EPOCH"', text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    return re.sub(r"^retry: \d+", "retry", text, flags=re.MULTILINE)
