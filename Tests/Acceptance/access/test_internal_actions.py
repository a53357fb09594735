"""Internal actions: for reducers and for hooks that name them, and as if they were not there for every client."""

import json

import pytest

from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until
from harness.hooks import Receiver
from harness.tokens import bearer, make_token

MODEL = """import { createSlice, createAction } from '@reduxjs/toolkit'
import { schedule } from 'storekeeper'
const promoted = createAction('roles/promoted', { internal: true })
const tasks = createSlice({ name: 'tasks', initialState: { open: 0, ended: 0, paid: 0, managers: 0 }, reducers: {
  begin(state) { state.open += 1; schedule(tasks.actions.end({ n: 1 }), { after: 0.2 }); schedule(promoted({}), { after: 0 }); },
  end: { internal: true, payload: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } },
    reducer(state, { payload }) { state.ended += payload.n; } },
  paid: { internal: true, reducer(state) { state.paid += 1; } },
}, extraReducers: (builder) => builder.addCase(promoted, (state) => { state.managers += 1; }) })
"""
INTERNAL = ["tasks/end", "tasks/paid", "roles/promoted"]


def served(workspace, data, **settings):
    path = workspace.path("model.js")
    with open(path, "w") as file:
        file.write(MODEL)
    return workspace.server(data, model=path, **settings)


def ask(client, token, method, target, body=None):
    fields = bearer(token) | ({"Content-Type": "application/json"} if body is not None else {})
    return client.request(method, target, body, fields)


def without_names(answer, *types):
    """The answer without what names the request and its type."""
    text = answer.body.decode()
    for kind in types:
        text = text.replace(kind, "TYPE")
    document = json.loads(text)
    document.pop("requestId", None)
    return answer.status, document


GRANTS = {
    "all": ["--all"],
    "pattern": ["--read", "*", "--others", "--dispatch", "tasks/*", "--dispatch", "roles/*"],
    "named": ["--read", "*", *(option for kind in INTERNAL for option in ("--dispatch", kind))],
}


@pytest.mark.parametrize("grant", list(GRANTS))
def test_for_a_client_an_internal_action_is_one_that_is_not_there(workspace, grant):
    data = workspace.path("data")
    token = make_token(workspace, data, "ann", *GRANTS[grant])
    with served(workspace, data).client() as client:
        unknown = "tasks/xxxxxxxxxx"
        for kind in INTERNAL:
            for others in [{}, {"schedule": {"after": 1}}, {"payload": {"n": 1}}, {"payload": {"n": "wrong"}}]:
                answers = [
                    ask(client, token, "POST", "/v1/actions", json.dumps({"type": each, **others}).encode())
                    for each in (kind, unknown)
                ]
                expect_equal(answers[0].status, 422, f"the answer: {answers[0].body}")
                expect_equal(
                    without_names(answers[0], kind), without_names(answers[1], unknown), f"the answer for {kind} {others}")
            for wrap in [lambda body: b"[" + body + b"]", lambda body: body + b"\n" + body]:
                lines = wrap(action(kind)).count(b"\n") > 0
                answer = client.request(
                    "POST", "/v1/actions", wrap(action(kind)),
                    {"Content-Type": "application/x-ndjson" if lines else "application/json", **bearer(token)})
                expect(b"unknown-action" in answer.body and b'"version"' not in answer.body, answer.body)
            dry = ask(client, token, "POST", "/v1/actions?dry-run", action(kind))
            expect_equal(dry.json["code"], "unknown-action", "a dry run")
            near = ask(client, token, "POST", "/v1/actions", action(kind + "x"))
            expect(kind not in near.json["detail"].split(), "a hint names it:", near.body)
        for target in ["/v1/actions", "/v1/openapi.json", "/v1/client.d.ts", "/v1/stores/tasks/actions"]:
            text = ask(client, token, "GET", target).body.decode()
            expect(not any(kind in text for kind in INTERNAL), f"{target} names one")
        if grant == "all":
            fork = ask(client, token, "POST", "/v1/forks", b"{}").json
            inside = ask(client, token, "POST", f"{fork['href']}/actions", action("tasks/paid"))
            expect_equal(inside.json["code"], "unknown-action", "in a fork")
            cursor = ask(client, token, "GET", "/v1").json["cursor"]
            order = json.dumps({"insert": [{"after": cursor, "action": {"type": "tasks/paid"}}]}).encode()
            expect_equal(ask(client, token, "POST", "/v1/forks", order).status, 422, "an insertion")
        state = ask(client, token, "GET", "/v1/state/tasks").json
        expect_equal(state, {"open": 0, "ended": 0, "paid": 0, "managers": 0}, "nothing has happened")


def test_what_a_reducer_schedules_is_dispatched_and_replays(workspace):
    data = workspace.path("data")
    ann = make_token(workspace, data, "ann", "--read", "/tasks", "--dispatch", "tasks/begin")
    root = make_token(workspace, data, "root", "--all")
    server = served(workspace, data)
    with server.client() as client:
        expect_equal(ask(client, ann, "POST", "/v1/actions", action("tasks/begin")).status, 200, "the action")
        done = ask(client, ann, "GET", "/v1/state/tasks/ended?until=1&wait=5")
        expect_equal((done.status, done.json), (200, 1), "what it has scheduled")
        expect_equal(ask(client, ann, "GET", "/v1/state/tasks/managers").json, 1, "its follow-up")
        log = ask(client, root, "GET", "/v1/changes?since=oldest&types=tasks/end,roles/promoted").json["changes"]
        expect_equal([each["action"]["type"] for each in log], ["roles/promoted", "tasks/end"], "the log has both")
        fork = ask(client, root, "POST", "/v1/forks", b'{"from":"%s.0"}' % log[0]["cursor"].split(".")[0].encode()).json
        expect_equal((fork["appliedCount"], fork["refusedCount"]), (3, 0), "a fork runs them again")
    server.stop()


@pytest.mark.parametrize("dispatch, paid", [(["tasks/paid"], 1), (["tasks/*"], 0), (["*"], 0), (["tasks/*", "tasks/paid"], 1)])
@pytest.mark.parametrize("schedule", [None, {"after": 0.1}])
def test_a_hook_sends_the_internal_actions_that_its_grant_names(workspace, dispatch, paid, schedule):
    data = workspace.path("data")
    root = make_token(workspace, data, "root", "--all")
    server = served(workspace, data)
    answer = {"type": "tasks/paid", **({"schedule": schedule} if schedule else {})}
    options = [option for each in dispatch for option in ("--dispatch", each)]
    receiver = Receiver(
        workspace, data, "--read", "*", "--types", "tasks/begin", *options, answers={"tasks/begin": [answer]})
    with server.client() as client:
        wait_until(lambda: receiver.id in receiver.listed(), "the hook is there")
        ask(client, root, "POST", "/v1/actions", action("tasks/begin"))
        if paid:
            found = ask(client, root, "GET", "/v1/state/tasks/paid?until=1&wait=10")
            expect_equal((found.status, found.json), (200, 1), "what the hook has sent")
        else:
            wait_until(lambda: "unknown-action" in receiver.listed(), "the refusal is listed")
            expect_equal(ask(client, root, "GET", "/v1/state/tasks/paid").json, 0, "the state")


def test_a_type_that_becomes_internal_is_refused_to_the_client_that_has_scheduled_it(workspace):
    path = workspace.path("model.js")
    text = """import { createSlice } from '@reduxjs/toolkit'
const s = createSlice({ name: 's', initialState: { n: 0 }, reducers: { add: { %s reducer(state) { state.n += 1 } }, put(state) { state.n = 9 } } })
"""
    with open(path, "w") as file:
        file.write(text % "")
    server = workspace.server(model=path)
    with server.client() as client:
        client.commit(action("s/add", id="now"))
        client.commit(action("s/add", id="later", schedule={"after": 2}))
    server.stop()
    with open(path, "w") as file:
        file.write(text % "internal: true,")
    server.start()
    with server.client() as client:
        expect_equal(client.get("/v1/state/s/n").json, 1, "what was committed stays")
        refused = lambda: client.get("/v1/actions/later").json.get("refused")
        wait_until(refused, "it is refused")
        expect_equal(refused()["code"], "unknown-action", "the code")
        expect_equal(client.get("/v1/state/s/n").json, 1, "the state")
