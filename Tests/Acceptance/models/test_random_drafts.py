"""Random programs of changes to a draft, against the same programs on a plain deep copy."""

import pathlib
import random

import jsonpatch
import pytest

from harness.expectations import expect, expect_equal
from harness.models import Lines, compact, difference

HERE = pathlib.Path(__file__).parent
MODEL = """
const document = createSlice({ name: 'document', initialState: {}, reducers: {
  run: (state, action) => runProgram(state, action.payload),
} });
"""


def random_value(choice, depth=0):
    kind = choice.randrange(8 if depth < 3 else 4)
    if kind < 4:
        return choice.choice([0, 1, -7, 2.5, "", "text", "ä", None, True, False])
    size = choice.randrange(5)
    if kind < 6:
        return [random_value(choice, depth + 1) for _ in range(size)]
    names = ["a", "b", "c", "", "a/b", "m~n", "__proto__", "constructor", "7", "10", "x1"]
    return {choice.choice(names): random_value(choice, depth + 1) for _ in range(size)}


@pytest.mark.rounds(4000, long=100_000)
@pytest.mark.seconds(long=1500)
def test_the_patch_of_a_random_program_leads_from_the_old_state_to_that_of_a_plain_copy(pytestconfig, load, rounds):
    choice = random.Random(pytestconfig.seed)
    model = load((HERE / "random_program.js").read_text() + MODEL)
    reference = Lines("node", str(HERE / "reference.js"))
    seen = {"state": 0, "fails": 0}

    state = {}
    for number in range(rounds):
        if number % 5 == 0 or not isinstance(state, (dict, list)):
            state = {"a": random_value(choice), "b": random_value(choice), "list": [random_value(choice) for _ in range(6)]}
            model.load({"document": state})
        words = [choice.randrange(1 << 20) for _ in range(60)]
        wanted = reference.ask(compact({"state": state, "words": words}))
        found = model.reduce("document/run", words)
        case = f"case {number}: {compact(state)} {words}"
        seen["state" if "state" in wanted else "fails"] += 1
        if "fails" in wanted:
            expect("fault" in found, case, "should fail:", wanted, found)
        else:
            expect("patch" in found, case, found)
            patched = jsonpatch.apply_patch({"document": state}, found["patch"])
            expect(patched["document"] == wanted["state"], case, "patch:", found, "wanted:", wanted)
            if choice.randrange(4) == 0:
                model.call("apply", compact(difference(patched, {"document": state})))
            else:
                state = wanted["state"]
        if number % 7 == 0:
            expect_equal(model.state, {"document": state}, case)

    reference.close()
    expect(min(seen.values()) > rounds / 50, "the programs fail, or hold, too seldom:", seen)
