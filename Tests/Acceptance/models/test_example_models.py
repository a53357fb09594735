"""The models of config/models: each of their tests, as `storekeeper model test` reads them."""

import json
import pathlib

import pytest

from harness.expectations import expect, expect_equal
from harness.models import META, ROOT, Model

MODELS = sorted((ROOT / "config/models").glob("*.js"), key=lambda path: path.name)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_an_example_does_what_the_lines_beside_it_say(path: pathlib.Path, model_lines):
    model = Model(model_lines, path)
    expect("fault" not in model.description, model.description)
    reduced = set()

    for line in path.with_suffix(".tests.jsonl").read_text().splitlines():
        test = json.loads(line)
        model.load(test.get("state", model.description["initial"]))
        action = test["action"]
        found = model.reduce(action["type"], action.get("payload"), META | test.get("meta", {}))
        if "rejected" in test:
            expect_equal(found.get("rejected", {}).get("code"), test["rejected"], f"{line}: {found}")
        else:
            expect("patch" in found, line, found)
            expect_equal(model.state, test["expect"], line)
        reduced.add(action["type"])
    for view in model.description["views"]:
        expect("value" in model.call("view", view["name"]), view)

    expect_equal(reduced, {action["type"] for action in model.description["actions"]}, "the actions that have a test")
    model.close()
