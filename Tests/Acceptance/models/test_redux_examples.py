"""The reducers of Redux's examples, in their shape: the engine gives the states of plain Redux semantics."""

import json
import pathlib
import random

import jsonpatch
import pytest

from harness.expectations import expect, expect_equal
from harness.models import Lines, Model, compact

HERE = pathlib.Path(__file__).parent / "redux"
PRODUCTS = [{"id": number, "title": f"title {number}", "inventory": 10 * number} for number in range(1, 6)]


def undo_action(choice):
    number = choice.randrange(8)
    return choice.choice(
        [
            ("todos/add", {"id": number, "text": f"text {choice.randrange(30)}"}),
            ("todos/add", {"id": number, "text": f"text {choice.randrange(30)}"}),
            ("todos/toggle", {"id": number}),
            ("todos/clear", None),
            ("todos/sort", None),
            ("UNDO", None),
            ("UNDO", None),
            ("REDO", None),
        ]
    )


def cart_action(choice):
    return choice.choice(
        [("ADD_TO_CART", {"productId": choice.randrange(1, 7)})] * 6
        + [
            ("RECEIVE_PRODUCTS", choice.sample(PRODUCTS, choice.randrange(1, 6))),
            ("CHECKOUT_REQUEST", None),
            ("CHECKOUT_FAILURE", {"cart": {"addedIds": [1, 2], "quantityById": {"1": 2, "2": 1}}}),
        ]
    )


def tree_action(choice):
    node, child = choice.randrange(12), choice.randrange(12)
    # Only a younger node is a child, so that no node descends from itself.
    kinds = ["INCREMENT", "CREATE_NODE", "ADD_CHILD", "ADD_CHILD", "REMOVE_CHILD"] + ["DELETE_NODE"] * (choice.randrange(4) == 0)
    kind = choice.choice(kinds)
    if kind == "CREATE_NODE":
        return kind, {"nodeId": 100 + choice.randrange(20)}
    return kind, {"nodeId": node, "childId": max(node, child) + 1}


EXAMPLES = {
    "counter": lambda choice: choice.choice(
        [("counter/increment", None), ("counter/decrement", None), ("counter/incrementIfOdd", None), ("counter/incrementBy", choice.randrange(-9, 9))]
    ),
    "todos": lambda choice: choice.choice(
        [
            ("ADD_TODO", {"id": choice.randrange(20), "text": "text"}),
            ("TOGGLE_TODO", {"id": choice.randrange(20)}),
            ("SET_VISIBILITY_FILTER", choice.choice(["SHOW_ALL", "SHOW_ACTIVE", "SHOW_COMPLETED"])),
        ]
    ),
    "todos-with-undo": undo_action,
    "shopping-cart": cart_action,
    "tree-view": tree_action,
}


@pytest.mark.rounds(1000, long=3000)
@pytest.mark.parametrize("example", EXAMPLES)
def test_random_actions_give_the_states_of_plain_redux(example, pytestconfig, rounds, model_lines):
    choice = random.Random(f"{pytestconfig.seed} {example}")
    path = HERE / f"{example}.js"
    model = Model(model_lines, path, seconds=5)
    reference = Lines("node", str(HERE / "reference.js"), str(path))
    state = json.loads(reference.process.stdout.readline())
    expect_equal(model.description.get("initial"), state, f"the initial state {model.description}")

    for number in range(rounds):
        kind, payload = EXAMPLES[example](choice)
        wanted = reference.ask(compact({"type": kind, "payload": payload}))
        found = model.reduce(kind, payload)
        expect("patch" in found, number, kind, payload, found)
        expect_equal(jsonpatch.apply_patch(state, found["patch"]), wanted, f"the state after action {number}, {kind} {payload}")
        if number % 50 == 0:
            expect_equal(model.state, wanted, "the engine's copy")
            # As after a restart, where the state comes from a snapshot with its names in another order.
            model.load(json.loads(json.dumps(wanted, sort_keys=True)))
        state = wanted

    model.close()
    reference.close()
