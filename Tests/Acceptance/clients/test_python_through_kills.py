"""client.py while the server is killed and started again: each commit once, each action once, the last value."""

import pytest

from harness.actions import add
from harness.expectations import expect_equal, wait_until
from harness.followers import judge_history
from harness.javascript import ended, printed
from harness.kills import kill_at_shares
from harness.programs import free_port
from harness.python import start

FOLLOW = """
for item in store.changes(**given):
    show("commit", item.get("version"), item.get("id"), "reset" in item)
"""
SUBSCRIBE = """
for value in store.subscribe("/counter/value"):
    show("value", value)
"""
DISPATCH = """
for number in range(given["count"]):
    kind, payload = ("tasks/rename", {"id": 1, "title": "of no task"}) if number % 7 == 3 else ("counter/add", {"amount": 1})
    try:
        show("receipt", number, store.dispatch(kind, payload, id=f"n{number}")["version"])
    except Problem as problem:
        show("refusal", number, problem.code)
"""


@pytest.mark.rounds(2, long=20)
def test_each_commit_comes_once_and_each_action_commits_once_in_order_through_kills(workspace, rounds):
    server = workspace.server(listen_also=f"127.0.0.1:{(port := free_port())}")
    # The long form dispatches 1,190 actions, of which 1,020 commit.
    count = 140 if rounds == 2 else 1190
    with server.client() as client:
        begin = client.get("/v1/state")
    follower, filtered = (
        start(workspace, port, FOLLOW, given={"since": begin.cursor, **more}) for more in ({}, {"path": "/counter"}))
    subscriber = start(workspace, port, SUBSCRIBE)
    wait_until(lambda: printed(subscriber, "value"), "the subscriber has the first value")
    writer = start(workspace, port, DISPATCH, given={"count": count})

    kill_at_shares(server, count * 6 // 7, rounds)

    ended(writer, 120)
    with server.client() as client:
        last = client.commit(add(1, id="last"))["version"]
        history = judge_history(client, begin.json, begin.cursor).by_version()
    commits = [[version, identifier, False] for version, (identifier, _) in sorted(history.items())]
    numbers = [number for number in range(count) if number % 7 != 3]
    expect_equal([each for _, each, _ in commits], [*(f"n{number}" for number in numbers), "last"], "the commits")
    expect_equal(printed(writer, "receipt"), [[number, version] for version, number in enumerate(numbers, 1)], "receipts")
    expect_equal(printed(writer, "refusal"), [[number, "tasks.unknown"] for number in range(3, count, 7)], "the refusals")
    for each in (follower, filtered):
        wait_until(lambda: printed(each, "commit")[-1][0] == last, "a follower has the last commit", 20)
        expect_equal(printed(each, "commit"), commits, "the commits of a follower")
    wait_until(lambda: printed(subscriber, "value")[-1] == [last], "the subscriber has the last value", 20)
    values = [value for value, in printed(subscriber, "value")]
    expect_equal(values, sorted(set(values)), "the values of the subscriber")


def test_threads_dispatch_in_the_order_of_their_calls_while_the_server_is_away(workspace):
    server = workspace.server(listen_also=f"127.0.0.1:{(port := free_port())}")
    server.kill()
    script = start(workspace, port, """
def add(amount, **options):
    caught(str(amount), lambda: store.dispatch("counter/add", {"amount": amount}, **options)["version"])
threads = []
for amount, options in [(1, {"seconds": 0}), (10, {"seconds": 1}), (100, {}), (1000, {"seconds": 0.5}), (10000, {"seconds": math.inf})]:
    threads.append(aside(lambda: add(amount, **options)))
    time.sleep(0.05)
for thread in threads: thread.join()
""")
    wait_until(lambda: all(printed(script, name) for name in ("1", "10", "1000")), "three are given up", 10)
    server.start()
    found = {name: outcome.get("value", outcome.get("code")) for name, outcome in ended(script, 60)}
    expected = {"1": "no-answer", "10": "no-answer", "100": 1, "1000": "no-answer", "10000": 2}
    expect_equal(found, expected, "the outcomes: those given up do not keep back those behind them")


def test_a_loop_goes_on_in_another_process_where_the_first_one_was(workspace):
    server = workspace.server(listen_also=f"127.0.0.1:{(port := free_port())}")
    script = """
for number, item in enumerate(store.changes(since=given), 1):
    show("commit", item["version"], item["cursor"])
    if number == 5: break
"""
    with server.client() as client:
        for _ in range(5):
            client.commit(add(1))
        first = ended(start(workspace, port, script, given="oldest"))
        for _ in range(5):
            client.commit(add(1))
    server.restart()
    second = ended(start(workspace, port, script, given=first[-1][2]))
    expect_equal([version for _, version, _ in first + second], list(range(1, 11)), "the versions of both")
