"""Reducers around reducers, and cases behind cases: what Redux Toolkit makes of them."""

import pytest

from harness.expectations import expect, expect_equal

SLICE = """
const logout = createAction('logout');
const a = createSlice({ name: 'a', initialState: { n: 0 }, selectors: { n: (state) => state.n }, reducers: {
  add: (state) => { state.n += 1 },
  look: (state) => { state.n += 1; state.seen = [isDraft(state), original(state)?.n ?? null, isDraft({})] },
} });
"""
RESET = "(state, action) => app(action.type === 'logout' ? undefined : state, action)"
ROOTS = {
    "an arrow function": f"const app = combineReducers({{ a: a.reducer }});\nexport default {RESET};",
    "a function with a name": "const app = combineReducers({ a: a.reducer });\nexport default function root(state, action) { return app(action.type === 'logout' ? undefined : state, action) }",
    "a function without one": "const app = combineReducers({ a: a.reducer });\nexport default function (state, action) { return app(action.type === 'logout' ? undefined : state, action) };",
    "a variable": f"const app = combineReducers({{ a: a.reducer }}), root = {RESET};\nexport default root;",
    "a variable that is exported as the default": f"const app = combineReducers({{ a: a.reducer }}), root = {RESET};\nexport {{ a, root as default }};",
    "a wrapper around combineSlices": f"const reset = (app) => {RESET};\nexport default reset(combineSlices(a));",
    "the reducer of a store": f"const app = combineReducers({{ a: a.reducer }});\nconfigureStore({{ reducer: {RESET} }});",
    "one beside another default": f"const app = combineReducers({{ a: a.reducer }});\nconfigureStore({{ reducer: {RESET} }});\nexport default (one) => one + 1;",
}


@pytest.mark.parametrize("what", ROOTS)
def test_the_reducer_of_the_whole_state_can_be(what, load):
    model = load(SLICE + ROOTS[what] + "\nview('n', a.selectors.n);")

    expect_equal([(each["name"], each["mount"]) for each in model.description["slices"]], [("a", "/a")], "the slices")
    for kind in ("a/add", "a/look"):
        model.reduce(kind)
    expect_equal(model.state, {"a": {"n": 2, "seen": [True, 1, False]}}, "what the slice has seen")
    expect_equal(model.call("view", "n")["value"], 2, "a selector")
    model.reduce("logout")
    expect_equal(model.state, {"a": {"n": 0}}, "the state behind the reset")


def test_a_function_around_one_slice_has_its_state_as_the_whole(load):
    model = load(SLICE + "export default (state, action) => a.reducer(action.type === 'logout' ? undefined : state, action);")

    model.reduce("a/add")
    expect_equal(model.state, {"n": 1}, "the state")
    model.reduce("logout")
    expect_equal(model.state, {"n": 0}, "the state behind the reset")


def test_the_exported_reducer_of_a_slice_is_no_root(load):
    for text in ("export default a.reducer;", "configureStore({ reducer: { a: a.reducer } });\nexport default a.reducer;"):
        expect_equal(load(SLICE + text).description["initial"], {"a": {"n": 0}}, text)


def test_a_root_that_adds_members_has_the_whole_state_and_one_that_adds_them_later_is_a_fault(load):
    app = "const app = combineReducers({ a: a.reducer });\n"
    model = load(SLICE + app + "export default (state, action) => ({ ...app(state && { a: state.a }, action), last: action.type });")
    model.reduce("a/add")
    expect_equal(model.state, {"a": {"n": 1}, "last": "a/add"}, "the state")
    expect_equal([each["mount"] for each in model.description["slices"]], [""], "the mount")
    model = load(SLICE + app + "export default (state, action) => (action.type === 'logout' ? { b: 1 } : app(state, action));")
    expect("other members than a" in model.reduce("logout")["fault"]["message"], "the fault")
    expect_equal(model.state, {"a": {"n": 0}}, "the state")


def test_a_default_that_is_no_reducer_is_refused(load):
    fault = load(SLICE + "export default (one) => one + 1;").description["fault"]

    expect("which `export default` names, returns an object" in fault["message"], fault)


MATCHED = """
const logout = createAction('logout'), initialState = { user: null, log: [], deep: { list: [] } };
const LIST = [0], PART = { log: LIST, deep: { list: LIST } };
const s = createSlice({ name: 's', initialState, reducers: { login: (state) => { state.user = 'ann'; state.log.push(1) }, reset: %s },
  extraReducers: (builder) => builder
    .addMatcher(() => true, (state, action) => { state.log.push(action.type); state.deep.list.push([isDraft(state), isDraft(action)]) })
    .addMatcher(isAnyOf(logout, (action) => action.type === 's/reset'), (state) => { state.log.push('two') }) });
"""
CASES = {
    "a constant": ("() => initialState", {"user": None, "log": [], "deep": {"list": []}}),
    "its initial state": ("() => s.getInitialState()", {"user": None, "log": [], "deep": {"list": []}}),
    "a copy of a constant": ("() => ({ ...initialState, user: 'x' })", {"user": "x", "log": [], "deep": {"list": []}}),
    "a copy of the state with a constant": ("(state) => ({ ...state, log: LIST })", {"user": "ann", "log": [0], "deep": {"list": ["m"]}}),
    "a constant that it has assigned": ("(state) => { state.log = LIST }", {"user": "ann", "log": [0], "deep": {"list": ["m"]}}),
    "constants that it has assigned": ("(state) => { Object.assign(state, PART) }", {"user": "ann", "log": [0], "deep": {"list": [0]}}),
    "a constant in two places": ("(state) => { state.log = LIST; state.deep.list = LIST }", {"user": "ann", "log": [0], "deep": {"list": [0]}}),
    "a constant in a new element": ("(state) => { state.log.splice(0, 2, PART.log) }", {"user": "ann", "log": [[0]], "deep": {"list": ["m"]}}),
    "a payload": ("(state, action) => action.payload", {"user": 5, "log": [], "deep": {"list": []}}),
}


@pytest.mark.parametrize("what", CASES)
def test_a_matcher_changes_what_the_case_before_it_has_returned(what, load):
    case, wanted = CASES[what]
    model = load(MATCHED % case)

    for _ in range(2):
        model.reduce("s/login")
        found = model.reduce("s/reset", {"user": 5, "log": [], "deep": {"list": []}})
        expect("patch" in found, found)
        state = model.state["s"]
        expect_equal(state["log"][-2:], ["s/reset", "two"], "the log")
        expect_equal(state["deep"]["list"][-1], [True, False], "whether it is a draft")
        if wanted["deep"]["list"] != ["m"]:
            expect_equal(state["deep"]["list"][:-1], wanted["deep"]["list"], "the list")
        expect_equal(state["log"][: len(wanted["log"])], wanted["log"], "what was in the log")
        expect_equal(state["user"], wanted["user"], "the user")


def test_matchers_of_a_reducer_that_a_function_calls_change_a_constant(load):
    model = load("""
const go = createAction('go'), FIRST = { list: [] };
const part = createReducer(FIRST, (builder) => builder.addCase(go, () => FIRST).addMatcher((action) => action.type === 'go', (state) => { state.list.push(1) }));
configureStore({ reducer: { own: part, called: (state, action) => part(state, action) } });
""")

    for _ in range(2):
        model.reduce("go")
        expect_equal(model.state, {"own": {"list": [1]}, "called": {"list": [1]}}, "the state")


@pytest.mark.parametrize("matcher, says", [
    ("'a/add'", "isAnyOf takes action creators or functions of an action, not a text"), ("undefined", "isAnyOf takes action creators"), ("{}", "isAnyOf takes action creators"),
])
def test_a_matcher_that_is_none_is_refused_with_its_line(matcher, says, load):
    text = "createSlice({ name: 'b', initialState: { n: 0 }, reducers: {}, extraReducers: (builder) => { builder.addMatcher(%s, (state) => {}) } });"
    for each, sentence in ((f"isAnyOf({matcher})", says), (f"isAllOf({matcher})", says.replace("isAny", "isAll")), (matcher, says.replace("isAnyOf", "addMatcher"))):
        fault = load(SLICE + text % each).description["fault"]
        expect_equal((sentence in fault["message"], fault["line"]), (True, 7), fault)


def test_what_runs_elsewhere_runs_here(load):
    model = load("""#!/usr/bin/env node
const first = { v: [1] };
const it = createSlice({ name: 'it', initialState: structuredClone(first), reducers: { run: (state) => {
  const copy = structuredClone(state.v);
  copy.push(2);
  state.v = [copy, Date.parse('Thu, 01 Jan 1970 00:00:01 GMT'), Date.parse('2030-01-31 12:00:00Z') === Date.parse('2030-01-31T12:00:00Z'), new Date('1970-01-01 01:00+01:00').getTime()];
}, local: (state) => { Date.parse('2030-01-31 12:00:00') }, map: (state) => { structuredClone(new Map()) } } });
""")

    expect("patch" in model.reduce("it/run"), "a patch")
    expect_equal(model.state["it"]["v"], [[1, 2], 1000, True, 0], "what it finds")
    expect("with its time zone" in model.reduce("it/local")["fault"]["message"], "a local time")
    found = model.reduce("it/map")["fault"]
    expect_equal((found["message"], found["line"]), ("structuredClone copies JSON here: a Map is not JSON", 7), "a Map")
