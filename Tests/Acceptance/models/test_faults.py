"""What a model can do wrong, and what clients can send to it: each ends in its answer, and the next action works."""

import pytest

from harness.expectations import expect, expect_equal

# `other` is the slice that has to work on, whatever the first one does.
FRAME = """const other = createSlice({ name: 'other', initialState: { count: 0 }, reducers: { add: (state) => { state.count += 1 } } });
%s
"""


def slice_of(reducer, initial="{ value: 1, list: [1, 2, 3], table: {}, deep: { a: { b: 1 } } }"):
    return FRAME % f"const it = createSlice({{ name: 'it', initialState: {initial}, reducers: {{ run: {reducer} }} }});"


FAULTS = {
    "a member of undefined is read": ("(state) => { state.value = 9; state.missing.x = 1 }", {"line": 2}),
    "a text is thrown": ("(state) => { state.value = 9; throw 'no' }", {"message": 'the model threw "no", which is not an Error'}),
    "null is thrown": ("(state) => { state.list.push(4); throw null }", {"message": "the model threw null, which is not an Error"}),
    "undefined is stored": ("(state) => { state.deep.a.b = undefined }", {"pointer": "/it/deep/a/b"}),
    "an element is deleted": ("(state) => { delete state.list[1]; state.list.splice(0, 1) }", {"line": 2, "message": "an array in the state has no holes; splice takes an element out"}),
    "an element is far behind the last": ("(state) => { state.list[9] = 1 }", {"line": 2, "message": "an array in the state has no holes; push adds an element"}),
    "an array is made longer": ("(state) => { state.list.length = 1e9 }", {"line": 2, "message": "an array in the state has no holes; push adds elements"}),
    "NaN is stored": ("(state) => { state.list[1] = NaN }", {"pointer": "/it/list/1"}),
    "a BigInt is stored": ("(state) => { state.value = 1n }", {"pointer": "/it/value"}),
    "a function is stored": ("(state) => { state.list.push(() => 1) }", {"pointer": "/it/list/3"}),
    "a symbol is stored": ("(state) => { state.value = Symbol('x') }", {"pointer": "/it/value"}),
    "a Date is stored": ("(state) => { state.deep = { at: new Date(0) } }", {"pointer": "/it/deep/at", "message": "a Date is not JSON; store its toISOString()"}),
    "a Map is returned": ("() => ({ value: new Map() })", {"pointer": "/it/value"}),
    "half a surrogate pair is stored": ("(state) => { state['\\ud800'] = 1; state.value = '\\ud800' }", {"pointer": "/it/value"}),
    "an array with a hole is stored": ("(state) => { state.list = [, 1] }", {"pointer": "/it/list/0"}),
    "the state contains itself": ("(state) => { state.deep.a.up = state.deep }", {"message": "the state contains itself"}),
    "a new object contains itself": ("(state) => { const x = {}; x.x = x; state.value = x }", {"pointer": "/it/value/x"}),
    "it changes the draft and returns another value": ("(state) => (state.value = 5)", {"line": None}),
    "the stack overflows": ("(state) => { state.value = 2; const f = () => f() + 1; f() }", {}),
    "Object.prototype is changed": ("() => { Object.prototype.polluted = 1 }", {"line": 2}),
    "an array method is replaced": ("() => { Array.prototype.push = () => 1 }", {"line": 2}),
    "a global is made": ("() => { globalThis.hits = 1 }", {"line": 2}),
    "the time of now is asked for": ("(state) => { state.value = Date.now() }", {"message": "the present time differs when an action is replayed; use action.meta.time", "line": 2}),
    "new Date() is made": ("(state) => { state.value = new Date().toISOString() }", {"line": 2}),
    "Date() is called": ("(state) => { state.value = Date() }", {"line": 2}),
    "a random number is asked for": ("(state) => { state.value = Math.random() }", {"message": "a random number would be another one when an action is replayed; derive it from action.meta.id"}),
    "the local hour is asked for": ("(state) => { state.value = new Date(0).getHours() }", {"message": "getHours depends on the local time zone; use getUTCHours"}),
    "a local date is read": ("(state) => { state.value = new Date('2030-01-01T00:00').getTime() }", {"line": 2}),
    "a number is formatted for a locale": ("(state) => { state.value = (1).toLocaleString() }", {"line": 2}),
    "eval is called": ("(state) => { state.value = eval('1') }", {"line": 2}),
    "a function is made of a text": ("(state) => { state.value = (() => 1).constructor('return 1')() }", {"line": 2}),
    "a generator function is made of a text": ("(state) => { state.value = Object.getPrototypeOf(function* () {}).constructor('yield 1')() }", {"line": 2}),
    "a timer is set": ("() => { setTimeout(() => 1, 10) }", {"line": 2}),
    "a promise is made": ("() => { Promise.resolve(1) }", {"line": 2}),
    "Intl is used": ("() => { new Intl.NumberFormat() }", {"line": 2}),
    "a slice is changed": ("() => { it.reducer.hits = 1 }", {"line": 2}),
    "a draft is frozen": ("(state) => { Object.freeze(state.deep) }", {"line": 2}),
    "a member is defined": ("(state) => { Object.defineProperty(state, 'value', { get: () => 1 }) }", {"line": 2}),
}


@pytest.mark.parametrize("what", FAULTS)
def test_it_is_a_fault_when(what, load):
    reducer, wanted = FAULTS[what]
    model = load(slice_of(reducer))
    before = model.state

    found = model.reduce("it/run")

    expect("fault" in found, found)
    for key, value in wanted.items():
        expect_equal(found["fault"].get(key), value, key)
    expect_equal(model.state, before, "the state")
    expect_equal(model.reduce("other/add")["patch"], [{"op": "replace", "path": "/other/count", "value": 1}], "the next patch")


def test_an_endless_loop_ends_and_the_model_goes_on(load):
    for reducer in [
        "(state) => { state.value = 5; state.list.splice(1, 1); for (;;) {} }",
        "(state) => { for (;;) { try { for (;;) {} } finally { continue } } }",
        "(state) => { for (;;) state.list.push('more') }",
        "(state) => { state.value = /^(a+)+$/.test('a'.repeat(25) + 'b'); for (;;) {} }",
    ]:
        model = load(slice_of(reducer), seconds=0.05)
        before = model.state

        for _ in range(3):
            found = model.reduce("it/run")
            expect_equal(found["fault"].get("timeout"), True, "the time-out")
            expect_equal(model.state["it"], before["it"], "the state")
            expect("patch" in model.reduce("other/add"), "the next action")


def test_an_endless_loop_at_the_top_of_the_file_ends(load):
    expect_equal(load("for (;;) {}", seconds=0.01).description["fault"].get("timeout"), True, "the time-out")


def test_a_variable_that_is_set_once_is_a_constant(load):
    variables = "let first = { value: 1 }, last = 2;\nvar both = [first, last];\nconst it = createSlice"
    model = load(slice_of("(state) => { state.value = both[1] === last && last >= 2 ? { first, both }.first.value : 0 }").replace("const it = createSlice", variables))

    expect_equal(model.reduce("it/run")["patch"], [], "the patch")
    model = load(slice_of("(state) => { [last] = [3] }").replace("const it = createSlice", variables))
    expect("outside of it is frozen" in model.reduce("it/run")["fault"]["message"], "a fault")


def test_a_draft_that_is_kept_is_dead_when_its_reducer_has_ended(load):
    kept = slice_of("(state, { payload }) => { if (payload) box.draft = state; else box.draft.value = 3 }").replace(
        "const it", "const box = (() => { let kept; return { set draft(value) { kept = value }, get draft() { return kept } } })(); const it"
    )
    model = load(kept)

    model.reduce("it/run", 1)
    found = model.reduce("it/run", 0)

    expect("a draft was used after its reducer had ended" in found["fault"]["message"], found)
    expect_equal(model.state["it"]["value"], 1, "the value")


@pytest.mark.parametrize(
    "statement, line",
    [
        ("let hits;", 2),
        ("let hits = 0; const count = () => hits++;", 2),
        ("var one = 1, hits = 0; const count = () => { hits = hits + 1 };", 2),
        ("let hits = 0;\nconst count = () => --hits;", 2),
        ("let hits = 0; const count = () => { hits ??= 1 };", 2),
        ("let { hits } = { hits: 0 };", 2),
        ("import fs from 'node:fs';", 2),
        ("import { thing } from './thing.js';", 2),
        ("import { createAsyncThunk } from '@reduxjs/toolkit';", 2),
        ("\nimport {\n  createSlice as make,\n  nanoid } from '@reduxjs/toolkit';", 5),
        ("export * from './other.js';", 2),
        ("const load = async () => 1;", 2),
        ("const load = () => import('x');", 2),
        ("const thunk = createAsyncThunk('x', () => 1);", 2),
        ("interface State { value: number }", 2),
        ("type State = { value: number };", 2),
        ("import type { PayloadAction } from '@reduxjs/toolkit';", 2),
        ("const f = (x: number) => x;", 2),
        ("const x = {a: 1, b; 2};", 2),
        ("}", 2),
        ("const it = createSlice({ name: 'x', initialState: 0, reducers: { a: { prepare: () => 1, reducer: () => 1 } } });", 2),
        ("const it = createSlice({ name: 'x', initialState: 0, reducers: (create) => ({ a: create.preparedReducer(() => 1, () => 1) }) });", 2),
        ("const it = createSlice({ name: 'x', initialState: 0, reducers: (create) => ({ a: create.asyncThunk(() => 1) }) });", 2),
        ("import produce from 'immer';", 2),
        ("const it = createSlice({ name: 'x', reducers: {} });", 2),
        ("const it = createSlice({ name: 'other', initialState: 0, reducers: {} });", None),
        ("const it = createSlice({ name: 'x', initialState: { at: undefined }, reducers: { a() {} } });", None),
        ("Array.prototype.last = function () { return this[this.length - 1] };", 2),
        ("throw new Error('no');", 2),
    ],
)
def test_a_file_is_refused_with_its_line_because_of(statement, line, load):
    fault = load(FRAME % statement).description.get("fault")

    expect(fault is not None, "the file should be refused")
    expect_equal(fault.get("line"), line, fault)
    if line is not None:
        expect_equal(fault["source"], (FRAME % statement).split("\n")[line - 1], "the line itself")


def test_a_file_for_redux_toolkit_keeps_its_lines(load):
    model = load(
        """import {
  createSlice, // for the slice
  createAction as make,
} from '@reduxjs/toolkit'
const pattern = /[/'"`]+/g, half = 4 / 2 / 1, text = `import ${`${'}'}`} from 'x'`;
const slice = createSlice({ name: 'a', initialState: { text }, reducers: { run(state) { if (half) /'/.test('x'); throw new Error('here') } } })
export const { run } = slice.actions, more = make('more')
export { slice as theSlice, pattern }
export default slice.reducer
export const version = 3;
"""
    )

    expect_equal(model.description["version"], 3, "version")
    expect_equal([action["type"] for action in model.description["actions"]], ["a/run", "more"], "actions")
    expect_equal(model.description["initial"], {"a": {"text": "import } from 'x'"}}, "state")
    expect_equal(model.reduce("a/run")["fault"]["line"], 6, "line")


def test_a_part_of_the_state_is_the_text_that_it_is_without_a_draft(load):
    model = load(slice_of("(state) => { state.value = [`${state.table}`, state.table + '', [state.table, 1].join(), `${state.list}`] }"))
    expect_equal(
        model.reduce("it/run")["patch"][0]["value"],
        ["[object Object]", "[object Object]", "[object Object],1", "1,2,3"], "texts")


def test_names_that_clients_send_are_data(load):
    model = load(slice_of("(state, { payload: [key, value] }) => { if (state.table[key] !== undefined) reject('it.taken', `<${key}>`); state.table[key] = value }"))
    names = ["__proto__", "constructor", "toString", "valueOf", "__defineGetter__", "a/b~c", ""]

    for name in names:
        expect("patch" in model.reduce("it/run", [name, {"__proto__": {"isAdmin": True}, "constructor": 1}]), name)
        expect_equal(model.reduce("it/run", [name, 1])["rejected"], {"code": "it.taken", "detail": f"<{name}>"}, name)

    expect_equal(list(model.state["it"]["table"]), sorted(names, key=names.index), "names")
    expect_equal(model.state["it"]["table"]["constructor"]["__proto__"], {"isAdmin": True}, "a member")
    expect_equal(load(slice_of("(state) => { state.value = [({}).isAdmin ?? null, typeof ({}).constructor] }")).reduce("it/run")["patch"][0]["value"], [None, "undefined"], "others")


def test_a_slice_that_is_deleted_as_a_whole_is_one_removal(load):
    model = load(slice_of("(state) => { for (const key of Object.keys(state)) delete state[key] }"))

    found = model.reduce("it/run")

    expect_equal(sorted(operation["path"] for operation in found["patch"]), ["/it/deep", "/it/list", "/it/table", "/it/value"], "paths")
    expect_equal(model.state["it"], {}, "the slice")


def test_hidden_state_of_a_variable_is_a_fault(load):
    for declaration, use in [("const box = { hits: 0 };", "box.hits += 1"), ("const seen = new Map();", "seen.set(1, 1)"), ("const list = [[]];", "list[0].push(1)"), ("function count() {}", "count.hits = 1"), ("class Box { static hits = 0 }", "Box.hits = 1")]:
        model = load(declaration + "\n" + slice_of(f"(state) => {{ {use} }}"))
        expect_equal(model.reduce("it/run")["fault"].get("line"), 3, declaration)


KEEPERS = {
    "a typed array": ("const box = new Uint8Array(8);", "box[0] += 1", "Uint8Array"),
    "one inside an object": ("const box = { a: [new Float64Array(1)] };", "box.a[0][0] += 1", "Float64Array"),
    "one inside a map": ("const box = new Map([['a', new Int8Array(1)]]);", "box.get('a')[0] += 1", "Int8Array"),
    "a buffer": ("const box = new ArrayBuffer(8);", "new Uint8Array(box)[0] += 1", "ArrayBuffer"),
    "a DataView": ("const box = new DataView(new ArrayBuffer(8));", "box.setInt8(0, 1)", "DataView"),
    "a generator": ("function* numbers() { for (let n = 0;; n += 1) yield n }\nconst box = numbers();", "box.next()", "an iterator"),
    "an iterator": ("const box = [1, 2][Symbol.iterator]();", "box.next()", "an iterator"),
    "a private field": ("class Box { #n = 0; next() { return ++this.#n } }\nconst box = new Box();", "box.next()", "a private field"),
    "an inherited one": ("class Base { #n = 0; next() { return ++this.#n } }\nclass Box extends Base {}\nconst box = { a: new Box() };", "box.a.next()", "a private field"),
    "a private static field": ("class Box { static #n = 0; static next() { return ++Box.#n } }", "Box.next()", "a private static field"),
}


@pytest.mark.parametrize("what", KEEPERS)
def test_a_variable_that_cannot_be_frozen_is_refused_with_its_line(what, load):
    declaration, use, named = KEEPERS[what]
    fault = load(slice_of(f"(state) => {{ {use}; state.value += 1 }}") + "\n" + declaration).description.get("fault")

    expect(fault is not None and named in fault["message"] and "the state does not record" in fault["message"], fault)
    expect_equal(fault["line"], 4 + declaration.count("\n"), fault)   # the frame has three lines, and the last one declares it


@pytest.mark.parametrize("declaration, use", [
    ("const box = new Date(0);", "box.setTime(1)"),
    ("const box = new Date(0);", "Date.prototype.setUTCHours.call(box, 3)"),
    ("const box = new Map();", "Object.getPrototypeOf(box).set.call(box, 1, 2)"),
    ("const box = new Map([[1, 2]]);", "Map.prototype.clear.call(box)"),
    ("const box = { a: new Set() };", "Set.prototype.add.call(box.a, 1)"),
    ("const box = new WeakSet();", "WeakSet.prototype.add.call(box, {})"),
    ("const box = new Map([['a', { n: 0 }]]);", "box.get('a').n += 1"),
    ("class Box extends Map {}\nconst box = new Box();", "box.set(1, 2)"),
    ("const box = /x/g;", "box.exec('xx')"),
])
def test_a_variable_is_not_changed_by_the_method_of_a_prototype(declaration, use, load):
    model = load(slice_of(f"(state) => {{ state.value += 1; {use} }}") + "\n" + declaration)

    for _ in range(2):
        expect_equal(model.reduce("it/run").get("fault", {}).get("line"), 2, declaration)
    expect_equal(model.state["it"]["value"], 1, "the value")


def test_constants_and_what_a_reducer_makes_for_itself_are_free(load):
    model = load("""
const names = new Map([['a', { n: 1 }]]), days = new Set(['mon']), first = new Date(0), color = '#fff', pattern = /a/;
class Counter { #n = 0; add() { return ++this.#n } #hidden() {} static #helper() {} }
class Plain { n = '#a'; #method() { return 5 } call() { return this.#method() } }
const plain = new Plain();
function* count() { yield 1; yield 2 }
const it = createSlice({ name: 'it', initialState: { found: null }, reducers: { run: (state) => {
  const own = new Map([[1, 2]]), bytes = new Uint8Array(2), at = new Date(5), counter = new Counter();
  own.set(3, 4); own.delete(1); bytes[0] = 7; at.setUTCFullYear(1980); counter.add();
  state.found = [names.get('a').n, days.has('mon'), first.getTime(), plain.call(), [...count()], own.size, bytes[0], at.getUTCFullYear(), counter.add(), pattern.test(color + 'a')];
} } });
""")

    expect_equal(model.reduce("it/run")["patch"][0]["value"], [1, True, 0, 5, [1, 2], 1, 7, 1980, 2, True], "what is found")


@pytest.mark.parametrize("call, says", [
    ("'taken'", "a code with a dot"), ("'not-durable', 'x'", "a code with a dot"), ("'', 'x'", "a code with a dot"),
    ("'it.a b', 'x'", "a code with a dot"), ("'it.\\0', 'x'", "a code with a dot"), ("'it.' + 'x'.repeat(100), 'x'", "at most 100"),
    ("{ toString: () => 'it.x' }, 'x'", "a code with a dot"), ("'it.x', ''", "a sentence of 1 to 1000"), ("'it.x', 'a\\0'", "control characters"),
    ("'it.x', 'x'.repeat(1001)", "a sentence of 1 to 1000"), ("'it.x', 'xy'.repeat(3e8)", "a sentence of 1 to 1000"), ("'it.x', 5", "a sentence of 1 to 1000"),
    ("'it.x', 'x', 'amount'", "a JSON Pointer"), ("'it.x', 'x', '/a~2'", "a JSON Pointer"), ("'it.x', 'x', {}", "a JSON Pointer"),
    ("'it.x', 'x', '/' + 'x'.repeat(1000)", "a JSON Pointer"),
])
def test_reject_takes_a_code_of_the_domain_and_a_short_sentence(call, says, load):
    model = load(slice_of(f"(state) => {{ state.value = 2; reject({call}) }}"))

    fault = model.reduce("it/run").get("fault", {})

    expect_equal((says in fault["message"], fault["line"]), (True, 2), fault)
    expect_equal(model.state["it"]["value"], 1, "the value")


@pytest.mark.parametrize("call, wanted", [
    ("'it.x'", {"detail": "it.x"}), ("'it.x', 'x'.repeat(1000)", {"detail": "x" * 1000}), ("'it.x', 'a\\nb', ''", {"detail": "a\nb", "pointer": ""}),
    ("'it.x', '\\ud83d', '/a~1/\\ud83d'", {"detail": "\ufffd", "pointer": "/a~1/\ufffd"}), ("'it.x', 'x', null", {"detail": "x"}),
    ("'my-Slice_2/é.x', 'x'", {"code": "my-Slice_2/é.x", "detail": "x"}),
])
def test_what_reject_takes_reaches_the_host(call, wanted, load):
    found = load(slice_of(f"() => reject({call})")).reduce("it/run")

    expect_equal(found, {"rejected": {"code": "it.x"} | wanted}, call)


@pytest.mark.parametrize("change", [
    "error.code = 'not-durable'; throw error", "throw Object.assign(Object.create(Object.getPrototypeOf(error)), { code: 'draining', detail: 'x' })",
    "throw new error.constructor('draining', 'x')", "throw { ...error, code: 'draining', detail: 'x' }", "throw new Proxy(error, { get: () => 'draining' })",
])
def test_a_rejection_that_is_caught_cannot_be_changed(change, load):
    found = load(slice_of(f"() => {{ try {{ reject('it.x', 'y') }} catch (error) {{ {change} }} }}")).reduce("it/run")

    expect("fault" in found or found["rejected"] == {"code": "it.x", "detail": "y"}, found)


def test_console_reaches_the_host(load):
    model = load(slice_of("(state) => { console.log('value', state.value, { a: [1] }); console.warn('x'.repeat(9999)) }"))

    lines = model.reduce("it/run")["console"]

    expect_equal(lines[0], {"level": "log", "text": 'value 1 {"a":[1]}'}, "the first line")
    expect_equal(len(lines[1]["text"]), 500, "the length of the second")
    expect("console" not in model.reduce("other/add"), "later answers have none")
