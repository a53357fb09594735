"""`storekeeper model check` and `model test`: what is wrong in a model, with its place, and what its tests say."""

import json
import re
import subprocess

import pytest

from harness.expectations import expect, expect_equal
from harness.models import ROOT
from harness.tools import need

MODELS = sorted((ROOT / "config/models").glob("*.js"))
COUNTER = (ROOT / "config/models/counter.js").read_text()
ADD = {"action": {"type": "counter/add", "payload": {"amount": 2}}, "expect": {"counter": {"value": 2}}}


@pytest.fixture
def command(workspace):
    def run(name, *arguments):
        return subprocess.run(
            [workspace.binary, "model", name, *map(str, arguments)], capture_output=True, text=True, timeout=30
        )

    return run


def test_a_schema_with_a_fault_and_a_payload_that_does_not_fit_are_told(command, tmp_path):
    path, tests = tmp_path / "counter.js", tmp_path / "tests.jsonl"
    path.write_text(COUNTER.replace("type: 'integer'", "type: 'integer', minimun: 1"))
    done = command("check", path)
    expect(done.returncode != 0 and "/properties/amount/minimun" in done.stderr, done)
    path.write_text(COUNTER)
    lines = [{"action": {"type": "counter/add"}, "rejected": "invalid-action"}, ADD | {"action": {"type": "counter/add"}}]
    tests.write_text("\n".join(map(json.dumps, lines)))
    done = command("test", path, tests)
    expect_equal(done.stdout.splitlines()[-1], "1 passed, 1 failed", "the tests")
    expect("/amount: is missing" in done.stdout, done.stdout)


def test_the_types_fit_the_examples_and_find_a_mistake(command, tmp_path):
    need("tsc")
    types = command("types")
    expect_equal((types.returncode, types.stderr), (0, ""), "model types")
    (tmp_path / "storekeeper.d.ts").write_text(types.stdout)
    for path in MODELS:
        (tmp_path / path.name).write_text("// @ts-check\n" + path.read_text())
    checked = ["tsc", "--noEmit", "--allowJs", "--checkJs", "--target", "es2022", "--lib", "es2022", "storekeeper.d.ts"]
    done = subprocess.run([*checked, *(path.name for path in MODELS)], cwd=tmp_path, capture_output=True, text=True)
    expect_equal((done.returncode, done.stdout), (0, ""), "what tsc says of the examples")
    (tmp_path / "wrong.js").write_text(
        "// @ts-check\nimport { createSlice } from '@reduxjs/toolkit';\n"
        "createSlice({ name: 'a', initialState: { n: 0 }, reducers: { add(state) { state.m += 1; } } });\n")
    done = subprocess.run([*checked, "wrong.js"], cwd=tmp_path, capture_output=True, text=True)
    expect("wrong.js(3" in done.stdout and "'m'" in done.stdout, done.stdout)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_the_examples_pass_their_tests_and_the_check(command, path):
    tests = path.with_suffix(".tests.jsonl")
    count = len(tests.read_text().splitlines())
    done = command("test", path, tests)
    expect_equal((done.returncode, done.stdout.splitlines()[-1]), (0, f"{count} passed, 0 failed"), "the tests")
    checked = command("check", path)
    expect_equal((checked.returncode, checked.stderr), (0, ""), "the check")
    expect(checked.stdout.startswith("slices: "), checked.stdout)


@pytest.mark.parametrize(
    "change, says",
    [
        ({"expect": {"counter": {"value": 3}}}, "/counter/value is 2, expected 3"),
        ({"expect": {"counter": {"value": 2, "name": "a"}}}, '/counter/name is missing, expected "a"'),
        ({"expect": None}, 'the state is {"counter":{"value":2}}, expected null'),
        ({"expect": ..., "rejected": "counter.negative"}, "it is not rejected with counter.negative"),
        ({"action": {"type": "counter/add", "payload": {"amount": -1}}}, "it is rejected with counter.negative"),
        ({"action": {"type": "counter/add", "payload": {"amount": -1}}, "expect": ..., "rejected": "x"}, "and not with x"),
        ({"action": {"type": "counter/none"}}, "counter/none"),
        ({"expect": ...}, "it is not a test"),
        ({"action": {}}, "it is not a test"),
        ({"name": "adds two", "expect": {"counter": {"value": 3}}}, "adds two: /counter/value is 2, expected 3"),
        ({"expected": {}}, "it has a member expected, and the known members are name, state, from, action, actions, meta, view, parameters, subject, path, expect, rejected, schedule; did you mean expect?"),
        ({"action": {"type": "counter/add", "payload": {"amount": 2}, "paylod": 1}}, "it has a member paylod, and the known members are type, payload, meta"),
        ({"path": "/counter/value", "expect": 3}, "/counter/value is 2, expected 3"),
        ({"path": "/counter/none", "expect": 3}, "there is nothing at /counter/none"),
        ({"path": "counter", "expect": 3}, "path must be a JSON Pointer"),
        ({"action": ..., "actions": [ADD["action"], ADD["action"]]}, "/counter/value is 4, expected 2"),
        ({"actions": [ADD["action"]]}, "it must have one of action"),
        ({"action": ..., "actions": [{"type": "counter/add", "payload": {"amount": -1}}, ADD["action"]]}, "action 1, counter/add, is rejected with counter.negative"),
        ({"action": ..., "actions": [ADD["action"], {"type": "counter/add"}], "expect": ..., "rejected": "x"}, "action 2, counter/add, is rejected with invalid-action (its payload does not fit: /amount: is missing), and not with x"),
        ({"action": ..., "view": "none", "expect": 1}, "the model has no view 'none'"),
        ({"action": ..., "state": {}, "from": 1}, "the model has no migrate(state, fromVersion)"),
        ({"action": ..., "from": "1"}, "from must be the version"),
        ({"action": ...}, "it must have one of action, actions (an array), view and from"),
        ({"action": ..., "view": "none", "expect": ..., "rejected": "x"}, "only an action can be rejected"),
        ({"schedule": [{"unschedule": "a"}]}, 'the schedule is [], expected [{"unschedule":"a"}]'),
        ({"expect": ..., "rejected": "counter.negative", "schedule": []}, "it must have either rejected, or expect or schedule or both"),
    ],
)
def test_a_test_that_does_not_hold_is_named_with_its_line(workspace, command, change, says):
    test = {name: value for name, value in (ADD | change).items() if value is not ...}
    tests = workspace.path("tests.jsonl")
    with open(tests, "w") as file:
        file.write(json.dumps(ADD) + "\n\n" + json.dumps(test) + "\n")
    done = command("test", ROOT / "config/models/counter.js", tests)
    expect_equal(done.returncode, 1, "the exit code")
    lines = done.stdout.splitlines()
    expect_equal(lines[-1], "1 passed, 1 failed", "the last line")
    expect(lines[0].startswith(f"{tests}:3: ") and says in done.stdout, done.stdout)


VERSIONED = """
export const version = 2;
export const migrate = (state, from) => ({ box: { n: state.box.old * 10 + from, m: { a: 1, b: 2 } } });
const box = createSlice({ name: 'box', initialState: { n: 0, m: { a: 1, b: 2 } }, reducers: { add: (state) => { state.n += 1 }, full: () => reject('box.full') } });
view('double', (state) => ({ n: state.box.n * 2, m: state.box.m }));
view('times', (state, { by, odd }) => ({ n: state.box.n * by, odd: odd ?? null }), { parameters: {
  type: 'object', required: ['by'], properties: { by: { type: 'integer', minimum: 2 }, odd: { type: 'string' } } } });
"""
M, ADDS = {"b": 2, "a": 1}, [{"type": "box/add"}] * 3
HOLD = [
    {"action": ADDS[0], "expect": {"box": {"m": M, "n": 1}}},
    {"actions": ADDS, "path": "/box/n", "expect": 3},
    {"actions": [], "path": "/box", "expect": {"m": M, "n": 0}},
    {"actions": [*ADDS, {"type": "box/full"}], "rejected": "box.full"},
    {"view": "double", "expect": {"m": M, "n": 0}},
    {"state": {"box": {"n": 4, "m": {}}}, "view": "double", "path": "/n", "expect": 8},
    {"actions": ADDS, "view": "double", "expect": {"m": M, "n": 6}},
    {"state": {"box": {"n": 4, "m": {}}}, "view": "times", "parameters": {"by": 3}, "expect": {"odd": None, "n": 12}},
    {"state": {"box": {"old": 4}}, "from": 1, "expect": {"box": {"m": M, "n": 41}}},
    {"state": {"box": {"old": 4}}, "from": 0, "actions": ADDS, "view": "double", "path": "/n", "expect": 86},
]


def test_a_test_has_actions_a_part_a_view_and_an_older_state(command, tmp_path):
    model, tests = tmp_path / "model.js", tmp_path / "tests.jsonl"
    model.write_text(VERSIONED)
    tests.write_bytes(b"\xef\xbb\xbf" + "\n".join(map(json.dumps, HOLD)).encode())
    done = command("test", model, tests)
    expect_equal((done.returncode, done.stdout), (0, f"{len(HOLD)} passed, 0 failed\n"), "the tests")
    # The same with another number in each: what is told has the number, and no member that is only in another order.
    wrong = [test | {"expect": json.loads(json.dumps(test["expect"]).replace('"n": ', '"n": 9'))} for test in HOLD if "'n'" in str(test.get("expect"))]
    tests.write_text("\n".join(map(json.dumps, wrong)))
    told = command("test", model, tests).stdout.splitlines()
    expect_equal(told[-1], "0 passed, 6 failed", "the tests")
    expect_equal(
        [line.partition(": ")[2] for line in told[:-1]],
        ["/box/n is 1, expected 91", "/box/n is 0, expected 90", "the view double at /n is 0, expected 90", "the view double at /n is 6, expected 96", "the view times at /n is 12, expected 912", "/box/n is 41, expected 941"],
        "the differences")


@pytest.mark.parametrize("parameters, says", [
    (..., "/by: is missing"), ({"odd": "a"}, "/by: is missing"), ({"by": 1}, "/by: "), ({"by": "3"}, "/by: "), ({"by": 3, "odd": 1}, "/odd: "),
])
def test_the_parameters_of_a_view_have_to_fit(command, tmp_path, parameters, says):
    model, tests = tmp_path / "model.js", tmp_path / "tests.jsonl"
    model.write_text(VERSIONED)
    test = {"view": "times", "parameters": parameters, "path": "/odd", "expect": None}
    tests.write_text(json.dumps({name: value for name, value in test.items() if value is not ...}))
    done = command("test", model, tests)
    expect_equal((done.returncode, done.stdout.splitlines()[-1]), (1, "0 passed, 1 failed"), "the tests")
    expect(f"the parameters of the view times do not fit: {says}" in done.stdout, done.stdout)


JOBS = """
import { createSlice } from '@reduxjs/toolkit';
import { reject, schedule, unschedule } from 'storekeeper';
const jobs = createSlice({ name: 'jobs', initialState: { n: 0 }, reducers: {
  take(state, { payload: { id } }) {
    schedule(jobs.actions.giveBack({ id, by: 'a' }), { after: 60, name: id });
    schedule({ type: 'jobs/tick' }, { at: '2030-01-31T12:00:00Z' });
    state.n += 1;
    if (state.n > 2) reject('jobs.full');
  },
  finish(state, { payload: { id } }) { unschedule(id); },
  giveBack(state) { state.n -= 1; },
  tick() {},
} });
"""
GIVE_BACK = {"name": "x", "after": 60, "action": {"payload": {"by": "a", "id": "x"}, "type": "jobs/giveBack"}}
TICK = {"action": {"type": "jobs/tick"}, "at": "2030-01-31T12:00:00Z"}
TAKE, FINISH = ({"type": f"jobs/{name}", "payload": {"id": "x"}} for name in ("take", "finish"))


@pytest.mark.parametrize("test, says", [
    ({"action": TAKE, "schedule": [GIVE_BACK, TICK]}, None),
    ({"action": TAKE, "schedule": [GIVE_BACK, TICK], "expect": {"jobs": {"n": 1}}}, None),
    ({"actions": [TAKE, FINISH], "schedule": [GIVE_BACK, TICK, {"unschedule": "x"}], "path": "/jobs/n", "expect": 1}, None),
    ({"action": {"type": "jobs/tick"}, "schedule": []}, None),
    ({"actions": [TAKE] * 3, "rejected": "jobs.full"}, None),
    ({"action": TAKE, "schedule": [GIVE_BACK | {"after": 61}, TICK]}, "the schedule at /0/after is 60, expected 61"),
    ({"action": TAKE, "schedule": [TICK, GIVE_BACK]}, "the schedule at /0"),
    ({"action": TAKE, "schedule": [GIVE_BACK]}, "the schedule is ["),
    ({"action": FINISH, "schedule": []}, 'the schedule is [{"unschedule":"x"}], expected []'),
    ({"action": TAKE, "schedule": [GIVE_BACK, TICK], "expect": {"jobs": {"n": 2}}}, "/jobs/n is 1, expected 2"),
    ({"actions": [TAKE] * 3, "schedule": [GIVE_BACK, TICK] * 3}, "action 3, jobs/take, is rejected with jobs.full"),
])
def test_what_the_actions_schedule_is_what_the_test_says(command, tmp_path, test, says):
    model, tests = tmp_path / "model.js", tmp_path / "tests.jsonl"
    model.write_text(JOBS)
    tests.write_text(json.dumps(test))
    done = command("test", model, tests)
    expect_equal((done.returncode, done.stdout.splitlines()[-1]), (1, "0 passed, 1 failed") if says else (0, "1 passed, 0 failed"), done.stdout)
    expect(says is None or says in done.stdout, done.stdout)


def test_a_check_says_which_reducers_have_not_run_to_their_end(command, tmp_path):
    path = tmp_path / "model.js"
    text = """createSlice({ name: 'a', initialState: { n: 0 }, reducers: {
  whole(state) { state.n = 1; },
  stops(state) { if (state.n === 0) reject('a.empty'); state.n = nothing; },
  misfit(state, { payload }) { state.n = payload.a.b; state.m = nothing; },
} });"""
    path.write_text(text)
    done = command("check", path)
    expect_equal((done.returncode, done.stderr), (0, ""), "the check")
    expect("\nwarning: these reducers stop at the example, and the rest of them is not checked: a/stops, a/misfit\n" in done.stdout, done.stdout)
    path.write_text(text.replace("n: 0", "n: 1").replace("payload.a.b", "2").replace("= nothing", "= 3"))
    done = command("check", path)
    expect("warning" not in done.stdout and done.returncode == 0, "a warning of what has run", done.stdout)


@pytest.mark.parametrize("line, says", [
    (b'{"action":{"type":"counter/reset"},"expect":{},}', "it is not JSON: expected a key in quotes, found '}' at byte"),
    (b'{"action":{"type":"counter/reset"},"expect":"caf\xe9"}', "it is not JSON: byte 48 is not valid UTF-8"),
    (b'{"a":1,"a":1}', "it is not JSON at /a"), (b"[]", "it is not a test: it is an object"), (b"nonsense", "it is not JSON: "),
])
def test_a_line_that_is_no_test_says_why(command, tmp_path, line, says):
    tests = tmp_path / "tests.jsonl"
    tests.write_bytes(b"\n" + line + b"\n")
    done = command("test", ROOT / "config/models/counter.js", tests)
    expect_equal((done.returncode, done.stdout.splitlines()[-1]), (1, "0 passed, 1 failed"), "the tests")
    expect(done.stdout.startswith(f"{tests}:2: {says}"), done.stdout)


def test_a_check_where_no_reducer_can_be_run_fails(command, tmp_path):
    path = tmp_path / "model.js"
    path.write_text("createSlice({ name: 'it', initialState: { n: 0 }, reducers: {\n  one: (state, action) => { state.n = action.payload.a.b },\n  two: (state, action) => { state.n = action.payload.a.b }%s } });")
    text = path.read_text()
    path.write_text(text % "")
    done = command("check", path)
    expect_equal((done.returncode, done.stdout, len(re.findall("^Error: ", done.stderr, re.M))), (1, "", 2), "the check")
    expect("model.js:2:" in done.stderr and "a payload schema gives it an example" in done.stderr, done.stderr)
    path.write_text(text % ", three: (state) => { state.n = 3 }")
    done = command("check", path)
    expect_equal((done.returncode, done.stderr), (0, ""), "the check where one can")


@pytest.mark.parametrize(
    "text, place, says",
    [
        ("const a = 1;\nimport x from 'lodash';\n", "model.js:2", "import x from 'lodash';"),
        (COUNTER + "\nconst = 2;\n", f"model.js:{len(COUNTER.splitlines()) + 2}", "const = 2;"),
        ("const nothing = 1;\n", "no reducer", "createSlice"),
        (COUNTER.replace("state.value = 0", "state.value = undefined"), "counter/reset", "undefined"),
        (COUNTER.replace("createSlice(", "creatSlice("), "model.js:", "did you mean createSlice?"),
        (COUNTER.replace("payload:", "paylaod:"), "model.js:", "did you mean payload?"),
        (COUNTER.replace("initialState:", "intialState:"), "model.js:", "did you mean initialState?"),
        (COUNTER.replace("import { createSlice }", "import { creatSlice }"), "model.js:", "did you mean createSlice?"),
        (COUNTER.replace("state.value = 0", "COUNTS.n = 1") + "\nconst COUNTS = { n: 0 };\n", "model.js:", "what is outside of it is frozen"),
        (COUNTER.replace("state.value = 0", "state.id = crypto.randomUUID()"), "model.js:", "use action.meta.id"),
        (COUNTER.replace("state.value = sum", "state.value = NaN").replace("state.value = 0", "state.value = undefined"), "counter/add with an example of its payload, {\"amount\":1}: NaN", "counter/reset"),
        (COUNTER + "\nmodule.exports = counter;\n", f"model.js:{len(COUNTER.splitlines()) + 2}", "neither Node nor a browser"),
    ],
)
def test_a_fault_is_told_with_file_line_and_the_line_itself(workspace, command, text, place, says):
    path = workspace.path("model.js")
    with open(path, "w") as file:
        file.write(text)
    done = command("check", path)
    expect_equal((done.returncode, done.stdout), (1, ""), "the exit code, and what it prints")
    expect(place in done.stderr and says in done.stderr, done.stderr)


def test_a_reducer_whose_payload_has_no_schema_is_not_failed_by_the_example(workspace, command):
    path = workspace.path("model.js")
    with open(path, "w") as file:
        file.write(COUNTER.replace("reset: (state) =>", "put: (state, action) => { state.value = action.payload.value; },\n    reset: (state) =>"))
    done = command("check", path)
    expect_equal((done.returncode, done.stderr), (0, ""), "the check")
    expect("counter/put: fails with the payload {}, and has no payload schema to make an example of: undefined" in done.stdout, done.stdout)


def test_a_file_that_is_not_there_is_a_sentence(command):
    done = command("check", "/nowhere/model.js")
    expect_equal((done.returncode, done.stderr), (1, "Error: the file /nowhere/model.js cannot be read\n"), "what it says")
