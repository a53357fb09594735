"""Paths, parameters and cursors that the server refuses."""

import time

from harness.actions import add
from harness.expectations import expect, expect_equal
from harness.refusals import Case, get, judge, judge_problem, post


def test_a_bad_path_parameter_or_cursor_gets_a_problem_at_once_even_with_wait(workspace, figures):
    """The connection stays open."""
    server = workspace.server()
    with server.client() as client:
        client.commit(add(1))
        here = client.get("/v1").json
    epoch, version = here["epoch"], here["version"]
    other = epoch[:-1] + ("a" if epoch[-1] != "a" else "b")
    changes = "/v1/changes?wait=30&since="
    cases = [
        get("unknown parameter of changes", "/v1/changes?sinse=now", 400, "unknown-parameter", says="since"),
        get("unknown parameter of state", "/v1/state?wiat=3", 400, "unknown-parameter", says="wait"),
        get("unknown parameter of v1", "/v1?x", 400, "unknown-parameter"),
        get("unknown parameter of metrics", "/metrics?x=1", 400, "unknown-parameter"),
        post("unknown parameter of actions", add(1), 400, "unknown-parameter", target="/v1/actions?dryrun=true"),
        get("parameter twice", "/v1/changes?since=now&since=oldest", 400),
        get("no since", "/v1/changes", 400, "since-required"),
        get("since without a value", "/v1/changes?since=", 400),
        get("bad cursor", changes + "banana", 400, "bad-cursor", says="since"),
        get("bare version", changes + "1", 400, "bad-cursor"),
        get("negative version", changes + epoch + ".-1", 400, "bad-cursor"),
        get("version with letters", changes + epoch + ".1x", 400, "bad-cursor"),
        get("version beyond 64 bits", changes + epoch + ".18446744073709551616", 400, "bad-cursor"),
        get(
            "cursor of another epoch",
            changes + f"{other}.0",
            410,
            "cursor-lost",
            says=(f'"epoch": "{epoch}"', f'"oldest": "{epoch}.0"', f'"head": "{epoch}.{version}"'),
        ),
        get("cursor above the head", changes + f"{epoch}.{version + 1}", 410, "cursor-lost", says=f'"head": "{epoch}.'),
        get("cursor far above the head", changes + f"{epoch}.18446744073709551615", 410, "cursor-lost"),
        get("at-least of another epoch", f"/v1/state?at-least={other}.0", 410, "cursor-lost"),
        get("at-least above the head", f"/v1/state?at-least={epoch}.{version + 1}", 409, "ahead-of-head"),
        get("bad at-least", "/v1/state?at-least=x", 400, "bad-cursor"),
        get("bad wait", "/v1/state?wait=soon", 400, says="wait"),
        get("negative wait", "/v1/state?wait=-1", 400, says="wait"),
        get("bad limit", "/v1/changes?since=now&limit=0", 400, says="limit"),
        get("unknown type to follow", "/v1/changes?since=now&types=counter/ad", 400, says="counter/add"),
        get("bad path to follow", "/v1/changes?since=now&path=counter", 400),
        get("bad version", "/v1/state?version=x", 400),
        get("future version", f"/v1/state?version={version + 1}", 409),
        get("bad flag", "/v1/state?pretty=perhaps", 400, says="pretty"),
        get("bad If-None-Match", "/v1/state", 400, fields={"If-None-Match": "abc"}),
        get("no such place", "/v1/state/counter/valu", 404, "no-such-path", says="/counter/valu"),
        get("no such place, below a number", "/v1/state/counter/value/x", 404, "no-such-path"),
        get("no such list element", "/v1/state/tasks/ids/0", 404, "no-such-path"),
        get("no such list element, leading zero", "/v1/state/tasks/ids/00", 404, "no-such-path"),
        get("bad pointer", "/v1/state/a~2", 400, "bad-pointer"),
        get("bad percent", "/v1/state/%zz", 400),
        get("not UTF-8", "/v1/state/%ff", 400),
        get("no such route", "/v2", 404),
        get("no such view", "/v1/views/nothing", 404),
        get("no such action", "/v1/actions/nothing", 404),
        get("DELETE", "/v1/state", 405, says="GET", method="DELETE"),
        get("PUT", "/v1/actions", 405, says="POST", method="PUT"),
        post("POST to the state", add(1), 405, target="/v1/state"),
    ]
    start = time.monotonic()
    text = judge(server, cases)
    seconds = time.monotonic() - start
    expect(seconds < 10, f"these answers took {seconds:.1f} s: one of them waited")
    with server.client() as client:
        for target, header in ((changes + f"{other}.0", "link"), ("/v1/changes", "state-cursor")):
            expect(header in client.get(target).fields, f"no {header} in the answer to {target}")
        expect("allow" in client.request("DELETE", "/v1/state").fields, "405 without Allow")
        reset = client.get(f"/v1/changes?since={other}.0&wait=30&on-lost=snapshot")
        expect_equal(
            (reset.status, reset.json["reset"], reset.json["state"]["counter"]),
            (200, True, {"value": 1}),
            "a lost cursor with on-lost=snapshot",
        )
    figures(text)


def test_a_cursor_whose_history_is_gone_gets_410_with_the_way_back(workspace):
    """The cursor is expired where the epoch is the same, and lost where it is not."""
    server = workspace.server(data="none", history_commits_max=100)
    with server.client() as client:
        start = client.get("/v1/state").cursor
        for _ in range(300):
            client.commit(add(1))
        expired = client.get(f"/v1/changes?since={start}&wait=20")
        judge_problem(expired, Case("", b"", 410, "cursor-expired"))
        oldest, head = expired.json["oldest"], expired.json["head"]
        expect("link" in expired.fields, "no Link:", expired)
        page = client.get(f"/v1/changes?since={oldest}&limit=1000").json
        expect_equal((page["next"], len(page["changes"]) >= 100), (head, True), "the changes after the oldest cursor")
        expect_equal(client.get("/v1/changes?since=oldest&limit=1000").json, page, "the changes since=oldest")
        reset = client.get(f"/v1/changes?since={start}&wait=20&on-lost=snapshot").json
        expect_equal(
            (reset["reason"], reset["next"], reset["state"]["counter"]),
            ("cursor-expired", head, {"value": 300}),
            "the way back in one step",
        )
    # Without a journal each start is a new history.
    server.stop()
    server.start()
    with server.client() as client:
        for target in (f"/v1/changes?wait=20&since={start}", f"/v1/state?wait=20&at-least={start}"):
            lost = client.get(target)
            judge_problem(lost, Case("", b"", 410, "cursor-lost"))
            expect(lost.json["epoch"] != start.rpartition(".")[0], "the same epoch without a journal")
