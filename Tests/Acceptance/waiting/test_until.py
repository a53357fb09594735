"""Waits for a value that the client names."""

import json

import pytest

from harness.actions import action, add
from harness.expectations import expect, expect_equal, remains
from harness.refusals import get, judge
from harness.waits import begin, finish, parked


@pytest.mark.prompt
def test_until_answers_at_the_named_value_and_304_when_it_never_comes(workspace, figures):
    """The client may write the value in any form of JSON."""
    server = workspace.server(data="none")
    counter, value = "/v1/state/counter", "/v1/state/counter/value"
    with server.client() as client:
        for target in (f"{value}?until=0&wait=5", f"{counter}?until=%7B%22value%22:0%7D&wait=5"):
            answer, seconds = finish(begin(server, target))
            expect_equal((answer.status, answer.version), (200, 0), f"the answer to {target}")
            expect("etag" in answer.fields and seconds < 1, f"no ETag, or late ({seconds:.2f} s):", answer)
        # The value of now does not count where it is the one that is known: the named one does.
        tag = client.get(value).fields["etag"]
        answer, seconds = finish(begin(server, f"{value}?until=0&wait=5", If_None_Match=tag))
        expect(seconds < 1 and answer.status in (200, 304), f"{answer} after {seconds:.2f} s, though the value is met")
        waiters = [
            begin(server, target)
            for target in (
                f"{value}?until=3&wait=20",
                f"{value}?until=%203%20&wait=20",
                f"{counter}?wait=20&until=%7B%20%22value%22%20:3%7D",
                f"{counter}?wait=20&until=%7B%22v%5Cu0061lue%22:3%7D",
                f"{value}?until=3.0&wait=20",
                f"{value}?until=30e-1&wait=20",
                "/v1/views/count?wait=20&until=%7B%22count%22:3%7D",
            )
        ]
        never = begin(server, f"{value}?until=%223%22&wait=1.5")
        parked(server, client, 8)
        for _ in range(2):
            client.commit(add(1))
        expect_equal(server.metric(client, "waiters"), 8, "waiters after values that were not named")
        client.commit(add(1))
        for waiter in waiters:
            expect_equal(
                (waiter.receive().version, client.get(value).json), (3, 3), "the version of the answer, the value"
            )
        client.commit(add(1))
        answer, seconds = finish(never)
        expect_equal((answer.status, answer.version), (304, 4), "the answer where the value was never met")
        expect(1.35 < seconds < 2, f"304 after {seconds:.2f} s of 1.5")
        judge_missing(server, client)
        judge_passing(server, client, value)
    figures(
        judge(
            server,
            [
                get(f"until={text}", f"{value}?wait=5&until={text}", 400, "bad-parameter")
                for text in ("three", "", "%5B1", "%7B%22a%22:1,%22a%22:2%7D", "1%202", "'3'")
            ]
            + [
                get("until without wait", f"{value}?until=3", 400, "bad-parameter"),
                get("until twice", f"{value}?until=3&until=4&wait=5", 400),
                get("until of changes", "/v1/changes?since=now&until=3&wait=5", 400),
                get("until and version", f"{value}?until=3&version=1", 400),
                get("debounce without wait", f"{value}?debounce=5", 400, "bad-parameter"),
                get("debounce below 0", f"{value}?debounce=-1&wait=5", 400, "bad-parameter"),
                get("debounce in words", f"{value}?debounce=soon&wait=5", 400, "bad-parameter"),
                get("debounce too long", f"{value}?debounce=10001&wait=5", 400, "bad-parameter"),
                get("a long debounce of changes", "/v1/changes?since=now&debounce=10001&wait=5", 400, "bad-parameter"),
            ],
        )
    )


def judge_missing(server, client):
    """What is not there yet can be waited for, too."""
    milk = json.dumps({"done": False, "title": "milk"})
    target = "/v1/state/tasks/entities/7"
    there = begin(server, f"{target}?wait=10&until={milk}".replace(" ", "%20").replace('"', "%22"))
    gone = begin(server, f"{target}?wait=10&until=null")
    short = begin(server, "/v1/state/tasks/entities/8?wait=0.5&until=1")
    answer, seconds = finish(short)
    expect(
        answer.status in (304, 404) and 0.4 < seconds < 1, f"{answer} after {seconds:.2f} s, where there was nothing"
    )
    client.commit(action("tasks/add", {"id": 7, "title": "bread"}))
    parked(server, client, 2)
    client.commit(action("tasks/rename", {"id": 7, "title": "milk"}))
    expect_equal(finish(there)[0].json, client.get(target).json, "what was not there at first")
    client.commit(action("tasks/remove", {"id": 7}))
    remains(lambda: server.metric(client, "waiters") == 1, "it waits for null where there is nothing", 0.05)
    gone.close()
    parked(server, client, 0)


def judge_passing(server, client, value):
    """A value that is there for one commit only, which was acknowledged before the next, is seen."""
    now = client.get(value).json
    for _ in range(50):
        waiter = begin(server, f"{value}?wait=10&until={now + 1}")
        parked(server, client, 1)
        client.commit(add(1))
        client.commit(add(-1))
        answer, seconds = finish(waiter)
        expect_equal(
            (answer.status, answer.json), (200, now + 1), "a value that was there for one commit"
        )
