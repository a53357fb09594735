"""client.js while the server is killed and started again: each commit once, each action once, the last value."""

import pytest

from harness.actions import add
from harness.expectations import expect, expect_equal, wait_until
from harness.followers import judge_history
from harness.javascript import ended, printed, start
from harness.kills import kill_at_shares
from harness.programs import free_port

# How many commits there are for each kill, and the scripts that dispatch.
COMMITS, WRITERS = 250, 2

FOLLOW = """
for await (const { version, id, reset } of store.changes(given)) print("commit", version, id, reset)
"""
SUBSCRIBE = """
store.subscribe("/counter/value", (value) => print("value", value))
"""
DISPATCH = """
let lost = 0
const plainFetch = fetch
globalThis.fetch = (...request) => plainFetch(...request).catch((error) => { lost += 1; throw error })
for (let number = 0; number < given.count; number++) {
    const { version } = await store.dispatch("counter/add", { amount: 1 }, { id: `${given.name}-${number}` })
    print("receipt", `${given.name}-${number}`, version)
}
print("lost", lost)
"""
DISPATCH_AT_ONCE = """
const sent = [...Array(given.count).keys()].map((number) => {
    const [type, payload] = number % 7 === 3 ? ["tasks/rename", { id: 1, title: "of no task" }] : ["counter/add", { amount: 1 }]
    return store.dispatch(type, payload, { id: `n${number}` }).then(
        ({ version }) => print("receipt", number, version), ({ code }) => print("refusal", number, code))
})
print("called")
await Promise.all(sent)
"""


@pytest.mark.rounds(2, long=20)
def test_actions_commit_in_the_order_of_their_calls_through_kills(workspace, rounds):
    server = workspace.server(listen_also=f"127.0.0.1:{(port := free_port())}")
    count = 140 * rounds
    server.kill()
    script = start(workspace, port, DISPATCH_AT_ONCE, given={"count": count})
    wait_until(lambda: printed(script, "called"), "the actions are dispatched while the server is away")
    server.start()

    kill_at_shares(server, count * 6 // 7, rounds)

    ended(script, 120)
    numbers = [number for number in range(count) if number % 7 != 3]
    with server.client() as client:
        changes = [change for since in range(0, len(numbers), 1000)
                   for change in client.get(f"/v1/changes?since={client.get('/v1').json['epoch']}.{since}&limit=1000").json["changes"]]
    expect_equal([change["id"] for change in changes], [f"n{number}" for number in numbers], "the commits")
    expect_equal(
        printed(script, "receipt"), [[number, version] for version, number in enumerate(numbers, 1)], "the receipts")
    expect_equal(
        printed(script, "refusal"), [[number, "tasks.unknown"] for number in range(3, count, 7)], "the refusals")


@pytest.mark.rounds(4, long=20)
def test_each_commit_comes_once_and_each_action_commits_once_through_kills(workspace, rounds, figures):
    server = workspace.server(listen_also=f"127.0.0.1:{(port := free_port())}")
    count = (COMMITS if rounds == 4 else 2 * COMMITS) * rounds
    with server.client() as client:
        begin = client.get("/v1/state")
    follower, filtered = start(workspace, port, FOLLOW), start(workspace, port, FOLLOW, given={"path": "/counter"})
    subscriber = start(workspace, port, SUBSCRIBE)
    wait_until(lambda: printed(subscriber, "value"), "the subscriber has the first value")
    wait_until(lambda: printed(follower, "connection") and printed(filtered, "connection"), "the followers are there")
    writers = [
        start(workspace, port, DISPATCH, given={"name": f"w{number}", "count": count // WRITERS})
        for number in range(WRITERS)
    ]
    kill_at_shares(server, count, rounds)
    for writer in writers:
        ended(writer, 120)
    with server.client() as client:
        last = client.commit(add(1, id="last"))["version"]
        history = judge_history(client, begin.json, begin.cursor).by_version()
    commits = [[version, identifier] for version, (identifier, _) in sorted(history.items())]
    receipts = [tuple(line) for writer in writers for line in printed(writer, "receipt")]

    expect_equal(last, count + 1, "the last version, where each action has committed once")
    expect_equal(len(set(receipts)), count, "the receipts")
    expect(set(receipts) <= {(identifier, version) for version, identifier in commits}, "a receipt names another commit")
    for each in (follower, filtered):
        wait_until(lambda: printed(each, "commit")[-1][0] == last, "a follower has the last commit", 20)
        expect_equal([line[:2] for line in printed(each, "commit")], commits, "what a follower has seen")
    wait_until(lambda: printed(subscriber, "value")[-1] == [last], "the subscriber has the last value", 20)
    values = [value for value, in printed(subscriber, "value")]
    expect_equal(values, sorted(set(values)), "the values that the subscriber has seen")
    lost = sum(printed(writer, "lost")[0][0] for writer in writers)
    expect(lost >= rounds // 2, f"only {lost} answers were lost in {rounds} kills: these came in the middle of nothing")
    figures(f"{count} commits, {lost} answers lost in {rounds} kills, {len(values)} values seen")
