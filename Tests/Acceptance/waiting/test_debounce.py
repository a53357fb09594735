"""Waits that debounce a burst."""

import time

import pytest

from harness.actions import add
from harness.expectations import expect, expect_equal, paced, wait_until
from harness.refusals import Case, get, judge, judge_problem
from harness.streams import open_stream
from harness.waits import begin, finish, parked


@pytest.mark.prompt
def test_debounce_makes_one_answer_of_a_burst_of_50_posts(workspace):
    """The answer is the last value, or all the commits."""
    server = workspace.server(data="none")
    value = "/v1/state/counter/value"
    with server.client() as client:
        tag, here = client.get(value).fields["etag"], client.get("/v1").json["cursor"]
        state = begin(server, f"{value}?wait=10&debounce=400", If_None_Match=tag)
        changes = begin(server, f"/v1/changes?since={here}&wait=10&debounce=400")
        few = begin(server, f"/v1/changes?since={here}&wait=10&debounce=400&limit=10")
        stream = open_stream(server, f"{value}?debounce=400")
        expect_equal(stream.next().json, 0, "the snapshot")
        parked(server, client, 4)
        posted = time.monotonic()
        for _ in paced(range(50), 0.002):
            client.commit(add(1))
        burst = time.monotonic() - posted
        expect(burst < 0.35, f"NOT CHECKED: 50 posts took {burst:.2f} s")
        answers = [one.receive() for one in (state, changes, few)]
        seconds = time.monotonic() - posted
        expect_equal((answers[0].status, answers[0].json, answers[0].version), (200, 50, 50), "the value after a burst")
        numbers = [[change["version"] for change in answer.json["changes"]] for answer in answers[1:]]
        expect_equal(numbers, [list(range(1, 51)), list(range(1, 11))], "the commits of a burst")
        expect_equal([answer.json["more"] for answer in answers[1:]], [False, True], "more")
        expect(0.38 < seconds < 0.8, f"the answers came {seconds:.2f} s after the first post, the debounce is 0.4 s")
        events = stream.until(lambda event: event.json == 50, 2)
        expect(len(events) <= 3, f"a stream that debounces has sent {len(events)} values of a burst")
        stream.close()
        # No answer is delayed whose value was there already, and none beyond the wait.
        for target in (f"/v1/changes?since={here}&wait=10&debounce=5000", f"{value}?wait=10&debounce=5000"):
            answer, seconds = finish(begin(server, target, If_None_Match=tag))
            expect(answer.status == 200 and seconds < 1, f"{target} was delayed by {seconds:.2f} s:", answer)
        tag, here = answer.fields["etag"], client.get("/v1").json["cursor"]
        short = [
            begin(server, f"{value}?wait=1&debounce=8000", If_None_Match=tag),
            begin(server, f"/v1/changes?since={here}&wait=1&debounce=8000"),
        ]
        parked(server, client, 2)
        client.commit(add(1))
        for one, wanted in zip(short, (51, [51])):
            answer, seconds = finish(one)
            found = (
                answer.json
                if answer.status == 200 and isinstance(wanted, int)
                else [change["version"] for change in answer.json["changes"]]
            )
            expect_equal((found, seconds < 2), (wanted, True), f"what came within the wait ({seconds:.2f} s)")
        # There and back: the value is not new.
        tag = client.get(value).fields["etag"]
        waiter = begin(server, f"{value}?wait=2&debounce=300", If_None_Match=tag)
        parked(server, client, 1)
        client.commit(add(1))
        client.commit(add(-1))
        answer, seconds = finish(waiter)
        expect_equal((answer.status, answer.fields["etag"]), (304, tag), "the answer where the value has come back")
        # The server forgets a client that goes away meanwhile, and a stop does not wait for a burst.
        here = client.get("/v1").json["cursor"]
        waiters = [begin(server, f"/v1/changes?since={here}&wait=20&debounce=9000") for _ in range(10)]
        parked(server, client, 10)
        before = server.metric(client, "connections")
        client.commit(add(1))
        for waiter in waiters[:5]:
            waiter.close()
        wait_until(lambda: server.metric(client, "connections") <= before - 5, "five connections to be given up", 3)
        stopped = time.monotonic()
        server.terminate()
        for waiter in waiters[5:]:
            answer = waiter.receive()
            expect_equal(
                (answer.status, answer.closes, len(answer.json["changes"])), (200, True, 1), "an answer at a stop"
            )
        expect_equal(server.wait(10), 0, "the exit code")
        expect(time.monotonic() - stopped < 4, "the server has waited for the end of a debounce")


def test_a_request_that_debounces_counts_against_the_cap_and_among_the_waiters(workspace):
    server = workspace.server(data="none", waiters_max=3)
    with server.client() as client:
        here = client.get("/v1").json["cursor"]
        target = f"/v1/changes?since={here}&wait=20&debounce=1000"
        waiters = [begin(server, target) for _ in range(3)]
        parked(server, client, 3)
        judge_problem(finish(begin(server, target))[0], Case("", b"", 503))
        here = client.commit(add(1))["cursor"]
        expect_equal(server.metric(client, "waiters"), 3, "waiters while a burst is debounced")
        judge_problem(finish(begin(server, f"/v1/changes?since={here}&wait=1"))[0], Case("", b"", 503))
        for waiter in waiters:
            expect_equal(len(waiter.receive().json["changes"]), 1, "changes in an answer")
        expect_equal(finish(begin(server, f"/v1/changes?since={here}&wait=0.1"))[0].status, 200, "a wait afterwards")


@pytest.mark.prompt
def test_settle_is_taken_as_the_former_name_of_debounce(workspace):
    server = workspace.server(data="none")
    value = "/v1/state/counter/value"
    with server.client() as client:
        tag, here = client.get(value).fields["etag"], client.get("/v1").json["cursor"]
        state = begin(server, f"{value}?wait=10&settle=400", If_None_Match=tag)
        changes = begin(server, f"/v1/changes?since={here}&wait=10&settle=400")
        parked(server, client, 2)
        posted = time.monotonic()
        for _ in range(2):
            client.commit(add(1))
        answers = [one.receive() for one in (state, changes)]
        seconds = time.monotonic() - posted
        expect_equal((answers[0].json, len(answers[1].json["changes"])), (2, 2), "the value and the changes of a burst")
        expect(0.38 < seconds < 0.8, f"the answers came {seconds:.2f} s after the first post, the debounce is 0.4 s")


def test_debounce_under_both_of_its_names_at_once_is_refused(workspace, figures):
    value, changes = "/v1/state/counter?wait=5", "/v1/changes?since=now&wait=5"
    both = ("&debounce=5&settle=5", "&settle=5&debounce=5")
    figures(
        judge(
            workspace.server(data="none"),
            [
                get(target + names, target + names, 400, "bad-parameter", says="occurs twice")
                for target in (value, changes)
                for names in both
            ],
        )
    )
