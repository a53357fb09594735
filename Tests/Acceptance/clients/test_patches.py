"""The pointers and patches of client.js against a second implementation, with keys and values of every kind."""

import copy
import json
import random

from harness.expectations import expect, expect_equal
from harness.javascript import ended, start
from harness.patches import apply_patch

KEYS = ["a", "b", "", ".", "..", "/", "~", "~1", "a/b", "%2e", "__proto__", "constructor", "length", "0", "1", "-", "\u202e", "</script>"]
CHECK = """
import { writeFileSync } from "node:fs"
const text = readFileSync("client.mjs", "utf8")
writeFileSync("inside.mjs", text + "\\nexport { at, doubt, routeOf, tokensOf, withPatches }")
const { at, doubt, routeOf, tokensOf, withPatches } = await import("./inside.mjs")
for (const { document, path, patch } of given) {
    const before = JSON.stringify(document)
    const value = withPatches(at(document, tokensOf(path)), path, patch)
    const { route, rest } = routeOf(path)
    const around = path.split("/").slice(1, rest.length > 0 ? -rest.length : undefined)
    const isReachable = new URL(`http://host/v1${route}`).pathname.split("/").slice(3).map(decodeURIComponent).join("/") === around.join("/")
    print("case", value === doubt ? "doubt" : { value }, JSON.stringify(document) === before, isReachable)
}
"""


def pointer(tokens):
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def tree(chance, depth=3):
    kind = chance.random()
    if depth == 0 or kind < 0.2:
        return chance.choice([None, 0, 1.5, "text", "", True, [], {}])
    if kind < 0.5:
        return [tree(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {key: tree(chance, depth - 1) for key in chance.sample(KEYS, chance.randrange(5))}


def places(value, above=()):
    """Every place of a document, as tokens."""
    yield above
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*above, str(key)))


def operation(chance, document):
    """An operation that fits the document."""
    tokens = chance.choice(list(places(document)))
    kind = chance.choice(["add", "remove", "replace"])
    if kind == "add":
        around = at(document, tokens)
        if isinstance(around, dict):
            tokens = (*tokens, chance.choice(KEYS))
        elif isinstance(around, list):
            tokens = (*tokens, str(chance.randrange(len(around) + 1)))
        else:
            kind = "replace"
    if kind == "remove" and not tokens:
        kind = "replace"
    return {"op": kind, "path": pointer(tokens)} | ({} if kind == "remove" else {"value": tree(chance)})


def at(document, tokens):
    for token in tokens:
        document = document[int(token) if isinstance(document, list) else token]
    return document


def found(document, tokens):
    """What is at a place, as JSON has it."""
    try:
        return {"value": at(document, tokens)}
    except (KeyError, IndexError, ValueError, TypeError):
        return {}


def test_patches_lead_to_the_value_or_to_doubt(workspace, figures):
    chance = random.Random(workspace.seed)
    cases, wanted = [], []
    for _ in range(4000):
        document = tree(chance)
        after, patch = copy.deepcopy(document), []
        tokens = chance.choice([*places(document), (chance.choice(KEYS),), ("a", chance.choice(KEYS))])
        for _ in range(chance.randrange(1, 4)):
            patch.append(operation(chance, after))
            after = apply_patch(after, patch[-1:])
        cases.append({"document": document, "path": pointer(tokens), "patch": patch})
        wanted.append(found(after, tokens))
    # A value that is not there, and a change inside of it, do not go together: such a value is one that may not be seen.

    lines = ended(start(workspace, 1, CHECK, given=cases))

    doubts = 0
    expect_equal(len(lines), len(cases), "the cases")
    for case, value, (_, given, is_kept, is_reachable) in zip(cases, wanted, lines):
        expect(is_kept, "the document was changed:", case)
        expect(is_reachable, "a URL does not lead to the path:", case["path"])
        if given == "doubt":
            doubts += 1
            expect(shifts(case), "a patch without an inserted or removed element is in doubt:", json.dumps(case))
        else:
            expect_equal(given, value, f"the value of {json.dumps(case)}")
    expect(doubts < len(cases) / 3, f"{doubts} of {len(cases)} patches are in doubt")
    figures(f"{len(cases)} patches, {doubts} in doubt")


def shifts(case):
    """Whether a patch inserts or removes what can be an element of an array around the path."""
    return any(
        operation["op"] != "replace" and operation["path"].rpartition("/")[2].replace("-", "0").isdigit()
        and case["path"].startswith(operation["path"].rpartition("/")[0] + "/")
        for operation in case["patch"]
    )
