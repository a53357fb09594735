"""What the answers of a hook dispatch."""


import pytest

from harness.actions import action, add
from harness.expectations import expect, expect_equal, remains, wait_until
from harness.hooks import Receiver
from harness.tokens import bearer, make_token

DISPATCHES = ["--read", "*", "--dispatch", "counter/*"]


def answering(workspace, *actions, options=DISPATCHES, **settings):
    data = workspace.path("data")
    receiver = Receiver(workspace, data, *options, answers={"tasks/add": list(actions)})
    return receiver, workspace.server(data, **settings)


def last(client, **fields):
    return client.get("/v1/changes?before=now&limit=1", **fields).json["changes"][0]


def test_an_answer_is_one_commit_that_names_its_cause(workspace):
    receiver, server = answering(
        workspace,
        {"type": "counter/add", "payload": {"amount": 2}},
        {"type": "counter/add", "payload": {"amount": 3}, "id": "mine"},
    )
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "t"}, id="task"))
        receiver.wait_for(2)
        commit = last(client)
        expect_equal(
            (commit["version"], commit["cause"], commit["root"], commit["by"]),
            (2, "task", "task", f"hook:{receiver.id}"),
            "the commit of the answer",
        )
        epoch = commit["cursor"].split(".")[0]
        expect_equal(
            [element["id"] for element in commit["action"]], [f"{receiver.id}_{epoch}_1/1", "mine"], "the IDs"
        )
        expect_equal(client.get("/v1/state/counter/value").json, 5, "the counter")
        expect_equal(client.get("/v1/actions/mine").json["version"], 2, "the commit by its ID")


@pytest.mark.parametrize(
    "answer, says",
    [
        ({"type": "counter/add", "payload": {"amount": "two"}}, "invalid-action"),
        ({"type": "tasks/add", "payload": {"id": 2, "title": "t"}}, "unknown-action"),
        ({"type": "tasks/rename", "payload": {"id": 7, "title": "t"}}, "tasks.unknown"),
    ],
)
def test_a_refused_answer_is_named_and_the_next_commit_comes(workspace, answer, says):
    options = ["--read", "*", "--dispatch", "counter/*", "--dispatch", "tasks/rename"]
    receiver, server = answering(workspace, answer, options=options)
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "t"}))
        wait_until(lambda: server.metric(client, "hook_refusals_total") == 1, "the refusal is counted")
        wait_until(lambda: says in receiver.listed(), "the list names it")
        client.commit(add(1))
        receiver.wait_for(2)
        expect("actions of a hook refused" in server.log_text() and says in server.log_text(), server.log_text())
        expect_equal(client.get("/v1/state/counter/value").json, 1, "the counter")
        receiver.hook("resume")
        wait_until(lambda: "refused" not in receiver.listed(), "the list ends")


ADD = '{"type":"counter/add","payload":{"amount":1}}'


@pytest.mark.parametrize(
    "answer, says",
    [
        (f"[{ADD}]", "the answer is an array"),
        (f" [1, {ADD}]", "the answer is an array"),
        (ADD, "no member actions"),
        (f'{{"action":{ADD}}}', "no member actions"),
        (f'{{"actions":{ADD}}}', "actions is not an array"),
        (f'{{"actions":[{ADD}]', "the answer is not JSON"),
        ("[info] done", None),
        ("[]", None),
        ("[1,2]", None),
        ('{"ok":true,"type":"success"}', None),
        ('{"actions":[]}', None),
        ("", None),
    ],
)
def test_actions_in_another_form_are_named_and_other_answers_have_none(workspace, answer, says):
    data = workspace.path("data")
    receiver = Receiver(workspace, data, *DISPATCHES, "--types", "tasks/add", answer=answer)
    server = workspace.server(data)
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "t"}))
        receiver.wait_for(1)
        wait_until(lambda: "up to date" in receiver.listed(), "the hook goes on")
        expect((says or "refused") in receiver.listed() if says else "refused" not in receiver.listed(), receiver.listed())
        expect_equal(client.get("/v1/state/counter/value").json, 0, "the counter")


def test_a_refused_answer_is_listed_until_it_is_sent_again_and_committed_once(workspace):
    rename = {"type": "tasks/rename", "payload": {"id": 7, "title": "named"}}
    options = ["--read", "*", "--types", "tasks/add", "--dispatch", "tasks/rename"]
    receiver, server = answering(workspace, rename, options=options)
    with server.client() as client:
        first = client.commit(action("tasks/add", {"id": 1, "title": "t"}))
        # The task that the answer names comes when the answer has been refused.
        says = f"1 answer refused, the newest at {first['cursor']}"
        wait_until(lambda: says in receiver.listed(), "the list has the refusal of the first one")
        client.commit(action("tasks/add", {"id": 7, "title": "t"}))
        wait_until(lambda: client.get("/v1").json["version"] == 3, "the second answer is committed")
        [hook] = client.get("/v1/operations").json["hooks"]
        expect_equal((hook["refusedAt"], hook["refusedCount"]), (first["cursor"], 1), "the refusal over HTTP")
        expect("is not the cursor" in receiver.hook("resume", "--from", "x", code=78), "a cursor that is none")
        for version in [0, 999]:
            cursor = first["cursor"].partition(".")[0] + f".{version}"
            expect("has no commit" in receiver.hook("resume", "--from", cursor, code=78), f"version {version}")

        receiver.hook("resume", "--from", first["cursor"])
        wait_until(lambda: client.get("/v1").json["version"] == 4, "the first answer is committed")
        receiver.hook("resume", "--from", first["cursor"])
        wait_until(lambda: len(receiver.taken) == 6, "both commits have come three times")
        wait_until(lambda: "up to date" in receiver.listed(), "it is done")
        expect("refused" not in receiver.listed(), receiver.listed())
        expect_equal(client.get("/v1").json["version"], 4, "the version")
    server.restart()
    with server.client() as client:
        client.commit(add(1))
        found = lambda: (len(receiver.taken), client.get("/v1").json["version"])
        remains(lambda: found() == (6, 5), "nothing is sent a fourth time", 1)


def test_a_commit_that_is_sent_again_and_refused_again_is_listed_again(workspace):
    rename = {"type": "tasks/rename", "payload": {"id": 7, "title": "named"}}
    receiver, server = answering(workspace, rename, options=["--read", "*", "--dispatch", "tasks/rename"])
    with server.client() as client:
        cursor = client.commit(action("tasks/add", {"id": 1, "title": "t"}))["cursor"]
        wait_until(lambda: "1 answer refused" in receiver.listed(), "the list has it")
        receiver.hook("resume")
        wait_until(lambda: "refused" not in receiver.listed(), "the list ends")
        expect_equal(
            receiver.hook("resume", "--from", cursor), f"resumed: {receiver.id}, from {cursor}\n", "an order by cursor")
        wait_until(lambda: server.metric(client, "hook_refusals_total") == 2, "it is refused again")
        wait_until(lambda: "1 answer refused" in receiver.listed(), "the list has it again")


def test_an_answer_may_schedule_what_the_hook_may_dispatch_while_there_is_the_hook(workspace):
    later = {"type": "counter/add", "payload": {"amount": 1}, "schedule": {"after": 2}}
    receiver, server = answering(workspace, later)
    own = bearer(make_token(workspace, server.data, "root", "--all"))
    wait_until(lambda: "no longer open" in server.log_text(), "it asks for tokens")
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "t"}), **own)
        wait_until(lambda: client.get("/v1/state/counter/value", **own).json == 1, "it is dispatched")
        client.commit(action("tasks/add", {"id": 2, "title": "t"}), **own)
        receiver.wait_for(5)
        server.restart(down=2)
    with server.client() as client:
        wait_until(lambda: client.get("/v1/state/counter/value", **own).json == 2, "it is dispatched behind a start")
        client.commit(action("tasks/add", {"id": 3, "title": "t"}), **own)
        receiver.wait_for(8)
        receiver.hook("delete")
        wait_until(lambda: client.get("/v1", **own).json["version"] == 9, "it is refused")
        expect_equal(last(client, **own)["action"]["payload"]["code"], "token-revoked", "why it is refused")


def test_a_hook_that_may_dispatch_nothing_dispatches_nothing(workspace):
    receiver, server = answering(
        workspace, {"type": "counter/add", "payload": {"amount": 1}}, options=["--read", "*"]
    )
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "t"}))
        client.commit(action("tasks/add", {"id": 2, "title": "t"}))
        receiver.wait_for(2)
        expect_equal(client.get("/v1").json["version"], 2, "the version")


def test_a_model_whose_hook_wakes_itself_is_cut_at_the_budget_of_the_cascade(workspace):
    model = workspace.path("model.js")
    with open(model, "w") as file:
        file.write(
            """
            import { createSlice } from '@reduxjs/toolkit';
            createSlice({
              name: 'pings',
              initialState: { count: 0 },
              reducers: { add: (state) => { state.count += 1; } },
            });
            """
        )
    data = workspace.path("data")
    receiver = Receiver(
        workspace, data, "--read", "*", "--dispatch", "*", answers={"pings/add": [{"type": "pings/add"}]}
    )
    server = workspace.server(data, model=model, cascade_depth_max=50)
    with server.client() as client:
        client.commit(b'{"type":"pings/add","id":"first"}')
        wait_until(lambda: server.metric(client, "hook_refusals_total") == 1, "it is cut", 30)
        wait_until(lambda: "cascade-over-budget" in receiver.listed(), "the list says so")
        expect_equal(client.get("/v1").json["version"], 51, "the version")
        expect("the cascade of first" in server.log_text(), server.log_text())
        # Another cascade has a budget of its own.
        client.commit(b'{"type":"pings/add","id":"second"}')
        wait_until(lambda: client.get("/v1").json["version"] == 102, "the other cascade ends", 30)
        commits = client.get("/v1/changes?since=oldest&limit=200").json["changes"]
        roots = {commit.get("root", commit["id"]) for commit in commits}
        expect_equal(roots, {"first", "second"}, "the roots")
