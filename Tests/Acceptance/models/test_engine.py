"""What the engine promises to its host: changes that are taken back, patches from elsewhere, views, versions."""

import random

import jsonpatch
import pytest

from harness.expectations import expect, expect_equal
from harness.models import META, compact, difference

TABLE = """
const adapter = createEntityAdapter({ sortComparer: (one, other) => one.rank - other.rank });
const table = createSlice({ name: 'table', initialState: adapter.getInitialState(), reducers: { ...Object.fromEntries(
  ['addOne', 'addMany', 'setOne', 'setMany', 'setAll', 'removeOne', 'removeMany', 'removeAll', 'updateOne', 'updateMany', 'upsertOne', 'upsertMany'].map((verb) => [verb, adapter[verb]])),
  counted: (state, action) => { state.entities[action.payload].count += 1 } } });
const seen = createSlice({ name: 'seen', initialState: { last: null, removals: 0 }, reducers: {}, extraReducers: (builder) => builder
  .addMatcher((action) => action.type.startsWith('table/remove'), (state) => { state.removals += 1 })
  .addDefaultCase((state, action) => { state.last = action.type }) });
view('ranks', (state) => adapter.getSelectors((all) => all.table).selectAll(state).map((entity) => entity.rank));
view('sorting', (state) => state.table.ids.sort());
export const version = 2;
export const migrate = (state, from) => { state.seen = { last: `version ${from}`, removals: 0 }; return state };
"""


def entity(choice):
    return {"id": choice.choice("abcdef"), "rank": choice.randrange(3)}


def verbs(choice):
    changes = [
        {"id": choice.choice("abcdef"), "changes": choice.choice([{"rank": choice.randrange(3)}, {"note": 1}, {"id": choice.choice("abcdef")}])}
        for _ in range(3)
    ]
    return choice.choice(
        [(verb, entity(choice)) for verb in ("addOne", "setOne", "upsertOne")]
        + [(verb, [entity(choice) for _ in range(3)]) for verb in ("addMany", "setMany", "upsertMany", "setAll")]
        + [("removeOne", choice.choice("abcdef")), ("removeMany", ["a", "b", "x"]), ("updateOne", changes[0]), ("updateMany", changes)]
        + ([("removeAll", None)] if choice.randrange(5) == 0 else [])
    )


def plain(table, verb, payload):
    """The table that Redux Toolkit makes of it; equal ranks keep their order, and an entity with another ID keeps its place."""
    ids, entities = ([], {}) if verb in ("setAll", "removeAll") else (list(table["ids"]), dict(table["entities"]))
    payload = payload if isinstance(payload, list) else [] if payload is None else [payload]

    def put(each):
        if each["id"] in entities:
            ids.remove(each["id"])
        entities[each["id"]] = each
        ids.append(each["id"])

    updates = {}
    if verb.startswith("set"):
        for each in {each["id"]: each for each in payload}.values():
            put(each)
    for each in payload:
        if verb.startswith("remove") and each in entities:
            del entities[each]
            ids.remove(each)
        elif verb.startswith(("add", "upsert")) and each["id"] not in entities:
            put(each)
        elif verb.startswith("upsert"):
            updates[each["id"]] = updates.get(each["id"], {}) | each
        elif verb.startswith("update") and each["id"] in entities:
            updates[each["id"]] = updates.get(each["id"], {}) | each["changes"]
    ids.sort(key=lambda each: entities[each]["rank"])
    for old, changes in updates.items():
        if old in entities:
            changed = entities.pop(old) | changes
            if changed["id"] in entities:
                ids.remove(changed["id"])
            ids[ids.index(old)] = changed["id"]
            entities[changed["id"]] = changed
    return {"ids": sorted(ids, key=lambda each: entities[each]["rank"]), "entities": entities}


def test_random_verbs_keep_a_sorted_table_and_a_patch_leads_back(pytestconfig, load):
    choice = random.Random(pytestconfig.seed)
    model = load(TABLE)
    state = model.state

    for number in range(3000):
        verb, payload = verbs(choice)
        found = model.reduce(f"table/{verb}", payload)
        case = f"{number}: {verb} {payload} on {state}: {found}"
        new = jsonpatch.apply_patch(state, found["patch"])
        table = new["table"]
        expect_equal(table, plain(state["table"], verb, payload), case)
        ranks = [table["entities"][each]["rank"] for each in table["ids"]]
        expect_equal(model.call("view", "ranks")["value"], ranks, case)
        expect_equal(new["seen"]["removals"] - state["seen"]["removals"], int(verb.startswith("remove")), case)
        if choice.randrange(3) == 0:
            model.call("apply", compact(difference(new, state)))
            expect_equal(model.state, state, case)
        else:
            state = new


WRAPPED = """
const adapter = createEntityAdapter();
const books = createSlice({ name: 'books', initialState: { shelf: adapter.getInitialState(), moves: 0 }, reducers: {
  put: (state, action) => { adapter.upsertOne(state.shelf, action.payload); state.moves += 1 },
  clear: (state) => { adapter.removeAll(state.shelf) } } });
const undoable = (state = { past: [], present: books.getInitialState() }, action) => {
  if (action.type === 'UNDO') return { past: state.past.slice(1), present: state.past[0] };
  const present = books.reducer(state.present, action);
  return present === state.present ? state : { past: [state.present, ...state.past], present };
};
createAction('UNDO');
const read = createAction('read');
const log = produce((draft, action) => {
  if (action.type === 'read') draft.names.push(action.payload);
  else return draft;
}, { names: [] });
const copies = createSlice({ name: 'copies', initialState: { kept: { pages: [1] }, copy: null }, reducers: {
  take: (state, action) => {
    const same = produce(state.kept, () => {});
    const copy = produce(state.kept, (draft) => { draft.pages.push(action.payload); });
    if (same !== state.kept || copy === state.kept) reject('copies.same');
    state.copy = copy;
  } } });
configureStore({ reducer: { undoable, log, copies: copies.reducer } });
"""


def test_an_adapter_changes_the_state_of_a_slice_that_another_function_calls(load):
    model = load(WRAPPED)
    empty, one = {"ids": [], "entities": {}}, {"ids": ["a"], "entities": {"a": {"id": "a", "pages": 1}}}

    model.reduce("books/put", {"id": "a", "pages": 1})
    expect_equal(model.state["undoable"]["present"], {"shelf": one, "moves": 1}, "the slice after an entity is added")
    model.reduce("books/clear", None)
    expect_equal(model.state["undoable"]["present"], {"shelf": empty, "moves": 1}, "the slice after all are removed")
    model.reduce("UNDO", None)
    expect_equal(model.state["undoable"]["present"], {"shelf": one, "moves": 1}, "the slice after that is undone")


def test_produce_changes_a_copy_and_makes_a_reducer_of_a_function(load):
    model = load(WRAPPED)

    found = model.reduce("copies/take", 2)
    expect_equal(found["patch"], [{"op": "replace", "path": "/copies/copy", "value": {"pages": [1, 2]}}], "the patch")
    found = model.reduce("read", "x")
    expect_equal(found["patch"], [{"op": "add", "path": "/log/names/0", "value": "x"}], "the patch of a curried reducer")


def test_slices_name_each_other_in_their_extra_reducers(load):
    model = load("""
const first = createSlice({ name: 'first', initialState: 0, reducers: { run: (count) => count + 1 },
  extraReducers: (builder) => { builder.addCase(second.actions.run, (count) => count + 10); } });
const second = createSlice({ name: 'second', initialState: 0, reducers: (create) => ({ run: create.reducer((count) => count + 1) }),
  extraReducers: (builder) => builder.addCase(first.actions.run, (count) => count + 10).addCase('both', () => 0) });
configureStore({ reducer: combineSlices(first, { other: second.reducer }) });
""")

    model.reduce("first/run")
    model.reduce("second/run")

    expect_equal(model.state, {"first": 11, "other": 11}, "the state")
    expect_equal(sorted(each["type"] for each in model.description["actions"]), ["both", "first/run", "second/run"], "the actions")


def test_a_patch_that_does_not_fit_changes_nothing(load):
    model = load(TABLE)
    before = model.state

    found = model.call("apply", '[{"op":"replace","path":"/seen/last","value":"x"},{"op":"add","path":"/missing/at","value":1}]')

    expect("fault" in found, found)
    expect_equal(model.state, before, "the state")


def test_a_view_that_changes_the_state_is_a_fault(load):
    model = load(TABLE)
    model.reduce("table/addMany", [{"id": "b", "rank": 1}, {"id": "a", "rank": 2}])

    found = model.call("view", "sorting")

    expect("fault" in found, found)
    expect_equal(model.state["table"]["ids"], ["b", "a"], "the order")


def test_a_state_of_another_version_is_migrated(load):
    model = load(TABLE)

    found = model.call("migrate", '{"table":{"ids":[],"entities":{}}}', "1")

    expect_equal(model.description["version"], 2, "version")
    expect_equal(found["state"]["seen"]["last"], "version 1", "the migrated state")
    expect_equal(model.state["seen"]["last"], None, "the engine's own")


@pytest.mark.alone
def test_a_change_of_one_of_100000_entities_costs_at_most_twice_one_of_100(load, figures):
    microseconds = {}
    for count in (100, 100_000):
        model = load(TABLE)
        ids = [f"e{number}" for number in range(count)]
        entities = {each: {"id": each, "rank": rank, "count": 0} for rank, each in enumerate(ids)}
        model.load({"table": {"ids": ids, "entities": entities}, "seen": {"last": None, "removals": 0}})
        action = compact({"type": "table/counted", "payload": "e77", "meta": META})
        microseconds[count] = min(model.call("time", "20000", "table/counted", action) for _ in range(6))
        expect_equal(model.state["table"]["entities"]["e77"]["count"], 120_000, "the count")
    figures(f"of 100 entities: {microseconds[100]} us of CPU time an action, of 100,000: {microseconds[100_000]} us")
    expect(microseconds[100_000] < 2 * microseconds[100], microseconds)
