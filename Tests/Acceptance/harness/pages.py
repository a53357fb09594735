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
