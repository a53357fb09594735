"""`serve --model`: a state in JavaScript behind the same contract, and what a bad model does to its clients."""

import ctypes
import json
import os
import pathlib
import subprocess

import pytest

from harness.actions import action
from harness.client import ConnectionLost
from harness.expectations import expect, expect_equal, wait_until
from harness.models import ROOT
from harness.server import codes, log_when_ready, start_refusal

HERE = pathlib.Path(__file__).parent
COUNTER, TODO = ROOT / "config/models/counter.js", ROOT / "config/models/todo.js"


def good(client):
    """Whether an action of another slice is taken."""
    before = client.get("/v1/state/good/n").json
    expect_equal(client.post(action("good/add", {})).status, 200, "an action of another slice")
    expect_equal(client.get("/v1/state/good/n").json, before + 1, "what it does")


def test_a_model_has_the_contract_of_any_domain(workspace):
    server = workspace.server(model=COUNTER)
    with server.client() as client:
        expect_equal(client.commit(action("counter/add", {"amount": 2}))["version"], 1, "the first commit")
        refused = client.post(action("counter/add", {"amount": -5}))
        expect_equal(codes(refused), (409, "counter.negative"), "a rejection")
        expect_equal(refused.json["errors"][0]["pointer"], "/payload/amount", "its pointer")
        unknown = client.post(action("counter/ad", {}))
        expect_equal(codes(unknown), (422, "unknown-action"), "a wrong type")
        expect("did you mean counter/add" in unknown.json["detail"], unknown.json)
        batch = client.post(b'[{"type":"counter/add","payload":{"amount":1}},{"type":"counter/add","payload":{"amount":-9}}]')
        expect_equal((codes(batch), batch.json["index"]), ((409, "counter.negative"), 1), "a batch with a rejected action")
        dry = client.post(action("counter/add", {"amount": 7}), target="/v1/actions?dry-run")
        expect_equal(dry.json["patch"], [{"op": "replace", "path": "/counter/value", "value": 9}], "a dry run's patch")
        expect_equal(client.get("/v1/state").json, {"counter": {"value": 2}}, "the state")
        expect_equal(client.get("/v1/stores/counter/state").json, {"value": 2}, "the derived store of the slice")
        catalogue = {each["type"]: each["payload"] for each in client.get("/v1/actions").json["actions"]}
        expect_equal(catalogue["counter/add"]["required"], ["amount"], "the schema in the catalogue")
        page = client.get("/v1/changes?since=oldest").json["changes"]
        expect_equal([each["action"]["payload"] for each in page], [{"amount": 2}], "the log")
    server.restart()
    with server.client() as client:
        expect_equal(client.commit(action("counter/add", {"amount": 1}))["version"], 2, "the commit after a kill")
        wanted = {"from": page[0]["cursor"].partition(".")[0] + ".0", "skip": [page[0]["id"]]}
        fork = client.post(json.dumps(wanted).encode(), target="/v1/forks")
        state = client.get(f"{fork.json['href']}/state").json
        expect_equal(state, {"counter": {"value": 1}}, "a fork without the first action")


def test_a_payload_and_a_state_fit_their_schemas_or_are_refused_with_the_place(workspace):
    path = pathlib.Path(workspace.path("model.js"))
    path.write_text("""
import { createSlice } from '@reduxjs/toolkit';
const item = { type: 'object', required: ['name'], properties: { name: { type: 'string', pattern: '^[a-z]+$' }, size: { type: 'integer' } } };
export const items = createSlice({
  name: 'items', initialState: [], schema: { type: 'array', maxItems: 2 },
  reducers: { add: { payload: item, reducer(state, { payload }) { state.push(payload); } }, any(state, { payload }) { state.push(payload); } },
});
""")
    server = workspace.server(model=path)
    with server.client() as client:
        answer = client.post(action("items/add", {"name": "A", "size": 1.5}))
        expect_equal(codes(answer), (422, "invalid-action"), "a payload with two faults")
        faults = {each["pointer"]: each["detail"] for each in answer.json["errors"]}
        expect_equal(sorted(faults), ["/payload/name", "/payload/size"], "their places")
        expect_equal(faults["/payload/size"], "expected an integer", "a sentence")
        missing = client.post(b'{"type":"items/add"}').json
        expect_equal(missing["errors"], [{"pointer": "/payload/name", "detail": "is missing"}], "no payload")
        lines = b'{"type":"items/add","payload":{"name":"a"}}\n{"type":"items/add","payload":{}}'
        bulk = client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
        lines = [json.loads(line) for line in bulk.body.splitlines()]
        expect_equal([line.get("code") for line in lines], [None, "invalid-action"], "lines, one with a fault")
        client.commit(action("items/add", {"name": "b"}))
        expect_equal(codes(client.post(action("items/any", {}))), (422, "state-misfit"), "a state that does not fit")
        expect_equal(len(client.get("/v1/state/items").json), 2, "the state")
        for text in ("payload: { type: 'integr' }", "payload: { minimun: 1 }"):
            path.write_text(path.read_text().replace("payload: item", text))
            start_refusal(workspace, workspace.path(text[11:15]), "the payload of items/add", model=path)
            path.write_text(path.read_text().replace(text, "payload: item"))


def test_views_tables_and_what_the_server_sets(workspace):
    server = workspace.server(model=TODO)
    with server.client() as client:
        first = client.commit(action("todos/added", {"title": "milk"}, id="mine"))
        second = client.commit(action("todos/added", {"title": "bread"}))
        batch = client.commit(b'[%s,%s]' % ((action("todos/added", {"title": "tea"}),) * 2))
        ids = [first["id"], second["id"], batch["id"], f"{batch['id']}/1"]
        expect_equal(client.get("/v1/state/todos/ids").json, ids, "the IDs that the server sets")
        client.commit(action("todos/changed", {"id": "mine", "changes": {"done": True}}))
        titles = [each["title"] for each in client.get("/v1/views/open-todos").json]
        expect_equal(titles, ["bread", "tea", "tea"], "a view")
        # A payload can be any JSON value where its schema says so.
        client.commit(b'{"type":"todos/removed","payload":"mine"}')
        change = client.get("/v1/changes?since=oldest").json["changes"][-1]
        expect_equal(change["action"], {"type": "todos/removed", "payload": "mine"}, "the recorded action")
    server.stop()
    done = subprocess.run(
        [workspace.binary, "journal", "verify", "--deep", "--model", TODO, "--data", server.data],
        capture_output=True, text=True, timeout=60,
    )
    expect_equal(done.returncode, 0, f"the verification, {done.stdout} {done.stderr}")


@pytest.mark.parametrize("name, code", [
    ("loop", "reducer-timeout"), ("finallyLoop", "reducer-timeout"), ("allocate", "reducer-timeout"),
    ("fill", "reducer-timeout"), ("recurse", "reducer-fault"), ("text", "reducer-fault"),
    ("nothing", "reducer-fault"), ("global", "reducer-fault"), ("pollute", "reducer-fault"), ("keep", "reducer-fault"),
    ("deep", "reducer-fault"), ("cycle", "reducer-fault"), ("date", "reducer-fault"), ("random", "reducer-fault"),
    ("undefinedMember", "reducer-fault"),
])
def test_a_bad_reducer_is_answered_and_the_next_action_of_another_slice_works(workspace, name, code):
    server = workspace.server(model=HERE / "hostile.js")
    with server.client() as client:
        before = client.get("/v1/state").json
        answer = client.post(action(f"evil/{name}", {}))
        expect_equal(answer.status, 422, f"the status, {answer.json}")
        expect_equal(answer.json["code"], code, "its code")
        expect_equal(client.get("/v1/state").json, before, "the state")
        good(client)


def test_a_reducer_whose_time_is_over_is_run_again_in_another_engine(workspace):
    model = workspace.path("slow.js")
    with open(model, "w") as file:
        # A closure keeps what a model must not keep, and stands for an engine that is busy with itself.
        file.write("""
const isBusy = (() => { let runs = 0; return () => (runs += 1) > 3; })();
createSlice({ name: 'it', initialState: { runs: 0 }, reducers: { run: (state) => { state.runs += 1; while (isBusy()) for (;;) {} } } });
""")
    server = workspace.server(model=model)
    with server.client() as client:
        for _ in range(8):
            client.commit(action("it/run"))
        expect_equal(client.get("/v1/state/it/runs").json, 8, "what the runs have changed")
        expect_equal(server.log_text().count("model failed"), 0, "faults in the log")


def test_a_time_that_is_over_is_told_with_its_limit(workspace):
    server = workspace.server(model=HERE / "hostile.js", model_milliseconds_max=20)
    with server.client() as client:
        refused = client.post(action("evil/loop", {}))
        expect("20 ms" in refused.json["detail"] and "model_milliseconds_max" in refused.json["detail"], refused.json)
        fault = client.get("/v1/views/endless")
        expect("200 ms" in fault.json["detail"] and "model_milliseconds_max" in fault.json["detail"], fault.json)


# Half of an emoji is in each of these; a payload is another one each time, so that nothing is set aside.
CUT = """
const titles = createSlice({ name: 'titles', initialState: { list: [], of: {} }, reducers: {
  refused: (state, { payload: { title } }) => reject('titles.long', `the title "${title.slice(0, 20)}..." is too long`),
  thrown: (state, { payload: { title } }) => { throw new Error(`no ${title.slice(0, 20)}`) },
  plain: (state, { payload: { title } }) => { throw title.slice(0, 20) },
  key: (state, { payload: { title } }) => { state.of[title.slice(0, 20)] = 1 },
  value: (state, { payload: { title } }) => { state.list.push(title.slice(0, 20)) },
  pointer: (state, { payload: { title } }) => { throw Object.assign(new Error('x'), { pointer: deep(3000), at: deep(3000) }) },
  printed: (state, { payload: { title } }) => { console.log(title.slice(0, 20)); state.list.push('printed') },
} });
const deep = (levels) => { let at = {}; for (let level = 0; level < levels; level += 1) at = { at }; return at };
view('thrown', (state) => { throw new Error('\\ud83d') });
view('made', (state) => ({ '\\ud83d': '\\ud83d' }));
view('refused', (state) => reject('titles.x', '\\ud83d'));
"""


def test_half_an_emoji_in_what_a_model_says_ends_no_process(workspace):
    path = pathlib.Path(workspace.path("model.js"))
    path.write_text(CUT)
    server = workspace.server(model=path)
    wanted = {"refused": (409, "titles.long"), "printed": (200, None)}
    with server.client() as client:
        for number in range(3):
            for name in ("refused", "thrown", "plain", "key", "value", "pointer", "printed"):
                answer = client.post(action(f"titles/{name}", {"title": "1234567890123456789\U0001f600" + f" {number}"}))
                found = (answer.status, answer.json.get("code"))
                expect_equal(found, wanted.get(name, (422, "reducer-fault")), f"{name}: {answer.json}")
                if name == "refused":
                    expect("1234567890123456789\ufffd..." in answer.json["detail"], answer.json)
            for name in ("thrown", "made", "refused"):
                expect_equal(codes(client.get(f"/v1/views/{name}")), (500, "view-fault"), name)
        expect_equal(client.get("/v1/state/titles").json, {"list": ["printed"] * 3, "of": {}}, "the state")
    expect(server.process.poll() is None, "the process has ended", server.log_text())


def test_more_than_an_answer_holds_is_refused_soon_and_the_engine_is_another_one(workspace):
    path = pathlib.Path(workspace.path("model.js"))
    path.write_text("""
const it = createSlice({ name: 'it', initialState: { n: 0, text: '', list: [] }, reducers: {
  add: (state) => { state.n += 1 },
  text: (state, { payload: { size } }) => { state.n += 1; state.text = 'xy'.repeat(size / 2) },
  list: (state) => { state.n += 1; const text = 'x'.repeat(60000); for (let count = 0; count < 2000; count += 1) state.list.push(text) },
  name: (state, { payload: { size } }) => { state.n += 1; state['xy'.repeat(size / 2)] = 1 },
  wide: (state, { payload: { size } }) => { state.n += 1; state.text = '\\u0001'.repeat(size / 12) },
} });
view('text', () => 'xy'.repeat(360_000_000));
""")
    server = workspace.server(model=path, model_milliseconds_max=2000)
    with server.client() as client:
        for number, (name, size) in enumerate([("text", 720_000_000), ("list", 0), ("name", 100_000_000), ("wide", 360_000_000)]):
            answer = client.post(action(f"it/{name}", {"size": size}))
            expect_equal(codes(answer), (413, "model-too-large"), f"{name}: {answer.json}")
            client.commit(action("it/add"))
            expect_equal(client.get("/v1/state/it").json, {"n": number + 1, "text": "", "list": []}, f"the state after {name}")
        client.commit(action("it/text", {"size": 2_000_000}))
        expect_equal(codes(client.get("/v1/views/text")), (500, "view-fault"), "a view")
        expect_equal(len(client.get("/v1/state/it/text").json), 2_000_000, "a text that is not too large")
    with open(f"/proc/{server.process.pid}/status") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    expect(peak < 1_200_000, "kB at most:", peak)


def test_a_limit_of_addresses_below_what_the_engine_reserves_is_a_sentence(workspace):
    for kilobytes in (1_000_000, 4_000_000):
        command = f"ulimit -v {kilobytes}; exec {workspace.binary} model check {COUNTER}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
        expect_equal((done.returncode, done.stdout), (1, ""), f"the exit code, and what is printed: {done.stderr}")
        expect_equal(len(done.stderr.splitlines()), 1, done.stderr)
        expect(f"ulimit -v {kilobytes}" in done.stderr, done.stderr)


def test_an_expression_that_backtracks_without_end_is_given_up_or_set_aside(workspace):
    """By the engine, about when ten times the time limit ends the process: after two ends the action is refused at once."""
    server = workspace.server(model=HERE / "hostile.js")
    before = server.client().get("/v1/state").json
    answer, ends = None, 0
    while answer is None:
        try:
            answer = server.client().post(action("evil/expression", {}))
        except ConnectionLost:
            ends += 1
            expect_equal((server.wait(), ends <= 2), (75, True), "the exit code, and how often it ends")
            server.start()
    expect_equal(answer.status, 422, f"the status, {answer.json}")
    with server.client() as client:
        expect_equal(client.get("/v1/state").json, before, "the state")
        good(client)


def test_names_of_prototypes_are_data(workspace):
    server = workspace.server(model=HERE / "hostile.js")
    with server.client() as client:
        for key in ("__proto__", "constructor", "toString", "hasOwnProperty"):
            answer = client.post(b'{"type":"evil/member","payload":{"key":"%s","value":{"x":1}}}' % key.encode())
            expect(answer.status in (200, 422), answer.json)
            found = client.get(f"/v1/state/evil/object/{key}")
            expect_equal(found.status, 200 if answer.status == 200 else 404, f"whether {key} is there")
        payload = b'{"type":"evil/member","payload":{"key":"a","value":{"__proto__":{"x":1},"constructor":2}}}'
        expect_equal(client.post(payload).status, 200, "a value with such names")
        expect_equal(client.get("/v1/state/evil/object/a").json, {"__proto__": {"x": 1}, "constructor": 2}, "the value")
        good(client)
        expect_equal(client.commit(action("evil/clear", {}))["changed"], True, "a slice without its members")
        expect_equal(client.get("/v1/state/evil").json, {}, "what is left")
        good(client)


def test_a_view_is_computed_anew_only_where_what_it_reads_has_changed(workspace):
    path = pathlib.Path(workspace.path("model.js"))
    path.write_text("""
const log = (name) => console.log(`computes ${name}`);
const one = createSlice({ name: 'one', initialState: { n: 0 }, reducers: { add: (state) => { state.n += 1 } },
  selectors: { n: (state) => { log('selector'); return state.n } } });
const adapter = createEntityAdapter();
const two = createSlice({ name: 'two', initialState: adapter.getInitialState(),
  reducers: { put: { payload: { type: 'object', required: ['id'] }, reducer: adapter.setOne } } });
const { selectTotal } = adapter.getSelectors(two.selectSlice);
view('selector', one.selectors.n);
view('named', (state) => { log('named'); return { n: state.one.n } }, { reads: ['one'] });
view('both', createSelector(one.selectors.n, selectTotal, (n, total) => { log('both'); return n + total }));
view('total', createSelector(selectTotal, (total) => { log('total'); return total }));
view('whole', (state) => { log('whole'); return state.one.n });
view('astray', (state) => state.two.ids.length, { reads: ['one'] });
""")
    server = workspace.server(model=path)
    with server.client() as client:
        computed = lambda: {name: server.log_text().count(f"computes {name}") for name in ("selector", "named", "both", "total", "whole")}
        values = lambda: [client.get(f"/v1/views/{name}").json for name in ("selector", "named", "both", "total", "whole")]
        expect_equal(values(), [0, {"n": 0}, 0, 0, 0], "the views of the initial state")
        client.commit(action("two/put", {"id": "a"}))
        expect_equal(values(), [0, {"n": 0}, 1, 1, 0], "the views when the other slice has changed")
        wait_until(lambda: computed()["whole"] == 2, "the log has the second evaluation")
        expect_equal(
            computed(), {"selector": 3, "named": 1, "both": 2, "total": 2, "whole": 2},
            "how often each was computed: the selector once for its view, and at each turn of `both`")
        client.commit(action("one/add", {}))
        expect_equal(values(), [1, {"n": 1}, 2, 1, 1], "the views when what they read has changed")
        wait_until(lambda: computed()["whole"] == 3, "the log has the third evaluation")
        expect_equal(computed()["total"], 2, "a view of the other slice")
        fault = client.get("/v1/views/astray")
        expect_equal(codes(fault), (500, "view-fault"), "a view that reads what it does not name")
        said = "the view astray reads 'two', which is not among its reads"
        wait_until(lambda: said in server.log_text(), "its fault is logged")
        lines = [json.loads(line) for line in server.log_text().splitlines() if said in line]
        expect_equal({(line["level"], line["message"]) for line in lines}, {("error", "model failed")}, "how it is logged")
    for text, told in (
        ("{ reads: ['on'] }", "the view named reads 'on', and no slice is mounted there; did you mean one?"),
        ("{ reads: 'one' }", "the view named: reads must be an array of names"),
        ("{ read: ['one'] }", "has a member 'read', which is not known here; did you mean reads?"),
    ):
        path.write_text(path.read_text().replace("{ reads: ['one'] });\nview('both'", text + ");\nview('both'"))
        start_refusal(workspace, workspace.path("refused"), told, model=path)
        path.write_text(path.read_text().replace(text + ");\nview('both'", "{ reads: ['one'] });\nview('both'"))


def test_a_failing_view_harms_no_other(workspace):
    server = workspace.server(model=HERE / "hostile.js")
    with server.client() as client:
        for name in ("failing", "endless"):
            expect_equal(codes(client.get(f"/v1/views/{name}")), (500, "view-fault"), name)
        good(client)
        expect_equal(client.get("/v1/views/double").json, 2, "another view")


def test_what_cannot_be_interrupted_ends_the_process_twice_at_most(workspace):
    server = workspace.server(model=HERE / "hostile.js")
    for _ in range(2):
        with server.client() as client:
            try:
                answer = client.post(action("evil/uninterruptible", {}))
                expect(False, "an answer", answer)
            except ConnectionLost:
                expect_equal(server.wait(), 75, "the exit code")
        server.start()
    with server.client() as client:
        answer = client.post(action("evil/uninterruptible", {}))
        expect_equal(codes(answer), (422, "action-quarantined"), "the answer after two ends")
        good(client)


def test_a_state_above_the_memory_limit_is_refused_and_the_server_says_so(workspace):
    server = workspace.server(model=HERE / "hostile.js", model_bytes_max=40_000_000)
    with server.client() as client:
        big = "x" * 900_000
        number, answer = 0, None

        def grow():
            nonlocal number, answer
            answer = client.post(action("evil/member", {"key": f"k{number}", "value": big}))
            number += 1
            if answer.status == 200 and number % 20 == 0:
                client.post(action("evil/loop", {}))
            return answer.status != 200

        wait_until(grow, "an action is refused", 60)
        expect_equal(codes(answer), (413, "model-too-large"), "the refusal")
        expect_equal(codes(client.get("/readyz")), (503, "model-too-large"), "the readiness")
        expect("model_bytes_max" in client.get("/readyz?verbose").body.decode(), "no word in the verbose readiness")
        expect_equal(client.get("/v1/state/good/n").status, 200, "what is still read")


def deny_executable_memory():
    """What MemoryDenyWriteExecute of systemd does, with prctl(2) where the kernel has it."""
    expect(ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) == 0, "PR_SET_MDWE")


def test_a_model_runs_where_no_memory_may_be_written_and_executed(workspace):
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 3):
        pytest.skip("Linux has PR_SET_MDWE from 6.3 on")
    server = workspace.server(prepare=deny_executable_memory, model=COUNTER)
    with server.client() as client:
        for _ in range(2000):
            client.commit(action("counter/add", {"amount": 1}))
        expect_equal(client.get("/v1/state/counter/value").json, 2000, "the counter")


@pytest.mark.parametrize("text, says", [
    ("const = 2;", "model.js:1"), ("export const nothing = 1;", "no reducer"), ("", "no reducer"),
    ("import fs from 'fs';", "model.js:1"),
])
def test_a_model_with_a_fault_is_not_served(workspace, text, says):
    path = pathlib.Path(workspace.path("model.js"))
    path.write_text(text)
    refusal = start_refusal(workspace, workspace.path("data"), says, model=path)
    expect("model" in refusal, refusal)


def test_a_new_slice_begins_with_its_initial_state_and_one_that_is_gone_is_refused(workspace):
    path = pathlib.Path(workspace.path("model.js"))
    slice_of = "export const {0} = createSlice({{ name: '{0}', initialState: {{ n: 1 }}, reducers: {{ add(s) {{ s.n += 1 }} }} }});\n"
    path.write_text(slice_of.format("a"))
    server = workspace.server(model=path)
    with server.client() as client:
        client.commit(action("a/add", {}))
    server.stop()
    path.write_text(slice_of.format("a") + slice_of.format("b"))
    server.start()
    log_when_ready(server)
    with server.client() as client:
        expect_equal(client.get("/v1/state").json, {"a": {"n": 2}, "b": {"n": 1}}, "the state with a new slice")
        types = [each["action"]["type"] for each in client.get("/v1/changes?since=oldest").json["changes"]]
        expect_equal(types, ["a/add", "storekeeper/upgrade"], "the commits")
        client.commit(action("b/add", {}))
    server.stop()
    path.write_text(slice_of.format("b"))
    start_refusal(workspace, server.data, "/a", model=path)


VERSIONED = """
import {{ createSlice }} from '@reduxjs/toolkit';
export const version = {version};
{migrate}
export const notes = createSlice({{
  name: 'notes', initialState: {{ {member}: [] }},
  reducers: {{ add(state, action) {{ state.{member}.push(action.payload.text); }} }},
}});
"""


def test_another_version_migrates_the_state_once_or_is_refused(workspace):
    path = pathlib.Path(workspace.path("model.js"))

    def write(version, member, migrate=""):
        path.write_text(VERSIONED.format(version=version, member=member, migrate=migrate))

    write(1, "list")
    server = workspace.server(model=path)
    with server.client() as client:
        client.commit(action("notes/add", {"text": "a"}))
        expect_equal(client.get("/v1/state").json, {"_version": 1, "notes": {"list": ["a"]}}, "the first state")
    server.stop()
    write(2, "texts")
    start_refusal(workspace, server.data, "migrate", model=path)
    migrate = "export const migrate = (state, from) => ({ notes: { texts: [...state.notes.list, `from ${from}`] } });"
    write(2, "texts", migrate)
    for _ in range(2):
        server.start()
        with server.client() as client:
            expect_equal(client.get("/v1/state").json, {"_version": 2, "notes": {"texts": ["a", "from 1"]}}, "the state")
            types = [each["action"]["type"] for each in client.get("/v1/changes?since=oldest").json["changes"]]
            expect_equal(types, ["notes/add", "storekeeper/upgrade"], "the commits")
            expect_equal(client.get("/v1/state?version=1").json, {"_version": 1, "notes": {"list": ["a"]}}, "the past")
        server.kill()
    write(3, "texts", "export const migrate = () => { throw new Error('not today'); };")
    expect("not today" in start_refusal(workspace, server.data, "migrate has a fault", model=path), "the reason")


def test_a_slice_that_is_gone_can_be_dropped(workspace):
    path = pathlib.Path(workspace.path("model.js"))
    slice_of = "export const {0} = createSlice({{ name: '{0}', initialState: {{ n: 1 }}, reducers: {{ add(s) {{ s.n += 1 }} }} }});\n"
    path.write_text(slice_of.format("a") + slice_of.format("b"))
    server = workspace.server(model=path)
    server.stop()
    path.write_text(slice_of.format("b"))
    start_refusal(workspace, server.data, "/a", model=path)
    server.settings["drop_slice"] = "a"
    server.start()
    with server.client() as client:
        expect_equal(client.get("/v1/state").json, {"b": {"n": 1}}, "the state")
        change = client.get("/v1/changes?since=oldest").json["changes"][-1]
        expect_equal(change["patch"], [{"op": "remove", "path": "/a"}], "the commit that drops it")
