"""A disk and clocks that fail while a server runs: never silently wrong, never lost, never doubled."""

import collections
import datetime
import random
import time

import pytest

from harness.actions import action, add, bulk
from harness.client import ConnectionLost
from harness.expectations import Failure, expect, expect_equal, sleep_until, wait_until
from harness.refusals import Case, judge_problem
from harness.schedules import DOCUMENT, changes, judge
from harness.shims import Clocks, Disk
from harness.tokens import bearer, make_token


class Ledger:
    """What a client was told of each of its actions, and the judge of a history against it."""

    def __init__(self):
        self.committed, self.refused, self.unknown = {}, set(), set()
        # The actions that were sent with their ID as their key.
        self.keyed = set()

    def note(self, identifier, answer):
        """Takes the last answer to an action; None where the connection was lost."""
        if answer is None:
            self.unknown.add(identifier)
        elif answer.status == 200:
            self.unknown.discard(identifier)
            self.committed[identifier] = answer.json["version"]
        else:
            code = answer.json["code"]
            judge_problem(answer, Case("", b"", 503, code))
            expect("retry-after" in answer.fields, "503 without Retry-After:", answer)
            if code == "not-durable":
                expect("nothing was committed" in answer.json["detail"], answer.json)
                # A retry of an action whose outcome is unknown can be refused, which says nothing of the first one.
                if identifier not in self.unknown:
                    self.refused.add(identifier)
            else:
                expect_equal(code, "outcome-unknown", "the code of a 503")
                expect_equal(answer.json.get("id"), identifier, "the ID that the problem names")
                self.unknown.add(identifier)

    def judge(self, history):
        """`history` is the IDs of all commits in the order of their versions, from 1 on."""
        versions = {}
        for version, identifier in enumerate(history, 1):
            before = versions.get(identifier)
            expect(before is None, f"DOUBLED: {identifier} is version {before} and {version}")
            versions[identifier] = version
        for identifier, version in self.committed.items():
            expect(identifier in versions, f"LOST: {identifier}, acknowledged as version {version}")
            expect_equal(versions[identifier], version, f"the version of {identifier}")
        for identifier in self.refused:
            expect(identifier not in versions, f"WRONG: {identifier} is in the history, although it was refused")
        strangers = set(versions) - set(self.committed) - self.unknown
        expect(not strangers, "commits that nobody has sent, or that were refused:", strangers)


def read_ids(client):
    """The IDs of all commits, with what a follower sees on its way."""
    epoch = client.get("/v1").json["epoch"]
    found, more = [], True
    while more:
        page = client.get(f"/v1/changes?since={epoch}.{len(found)}&limit=500").json
        found += [change["id"] for change in page["changes"]]
        more = page["more"]
    return found


@pytest.mark.rounds(45, long=3000)
@pytest.mark.seconds(long=1800)
def test_whatever_the_disk_does_an_answer_to_an_action_is_true_also_after_a_kill(workspace, rounds, figures):
    """Failing syncs, writes and reads, no room, short writes; with kills and without, with keys and without.

    The rounds go on until an outcome was unknown, which it is in one of seven.
    """
    counts, number = collections.Counter(), 0
    while number < rounds or not counts["unknown"] and number < 4 * rounds:
        chance = random.Random(f"{workspace.seed}/{number}")
        kind = chance.choice(list(Disk.KINDS))
        try:
            counts.update(fail_once(workspace, chance, kind))
        except Failure as failure:
            raise Failure(f"round {number}, {kind}: {failure}") from None
        number += 1
    expect(counts["unknown"] > 0, "no outcome was unknown:", counts)
    figures(", ".join(f"{count} {name}" for name, count in counts.most_common()))


def fail_once(workspace, chance, kind):
    server = workspace.server()
    server.stop()
    disk = Disk(workspace, server)
    server.start()
    ledger, counts = Ledger(), collections.Counter()
    is_killed = chance.random() < 0.7
    client = server.client()
    seen = []
    for part in range(3):
        if part == 1:
            disk.fail(kind, after=chance.randrange(12), times=chance.choice([0, 1, 1, 2, 3, 5]))
        for number in range(chance.randint(3, 12)):
            send(client, ledger, f"p{part}-{number}", chance, counts)
        if part == 1:
            counts["faults"] += disk.failures
            if chance.random() < 0.3:
                # A follower sees what has landed only.
                disk.heal()
                seen = read_ids(client)
            if is_killed and chance.random() < 0.6:
                break
            disk.heal()
            wait_until(lambda: client.get("/readyz").status == 200, "/readyz is 200 after the disk is well again", 5)
            settle(client, ledger)
    disk.heal()
    if is_killed:
        server.kill()
    else:
        server.stop()
    server.start()
    with server.client() as client:
        history = read_ids(client)
        expect_equal(history[: len(seen)], seen, "WRONG: what a follower has seen before")
        for identifier in sorted(ledger.unknown):
            retry(client, ledger, identifier, history)
        ledger.judge(read_ids(client))
        expect_equal(client.get("/v1/state/counter").json["value"], len(read_ids(client)), "the counter")
    server.kill()
    return counts


def send(client, ledger, identifier, chance, counts):
    """Posts one action; with a key it may be sent again at once."""
    has_key = chance.random() < 0.5
    if has_key:
        ledger.keyed.add(identifier)
    fields = {"Idempotency_Key": identifier} if has_key else {}
    for _ in range(chance.choice([1, 1, 2]) if has_key else 1):
        answer = client.post(add(1, id=identifier), **fields)
        ledger.note(identifier, answer)
        if answer.status == 200:
            counts["acknowledged"] += 1
            return
        counts["refused" if answer.json["code"] == "not-durable" else "unknown"] += 1
        # What was refused may be sent again; the ledger then follows the last answer.
        ledger.refused.discard(identifier)
    if answer.status == 503 and answer.json["code"] == "not-durable" and identifier not in ledger.unknown:
        ledger.refused.add(identifier)


def settle(client, ledger):
    """While the server is ready, it knows of every ID whether it is committed."""
    for identifier in sorted(ledger.unknown):
        answer = client.get(f"/v1/actions/{identifier}")
        expect(answer.status in (200, 404), "the outcome of an action, when the disk is well:", answer)
        ledger.unknown.discard(identifier)
        if answer.status == 200:
            ledger.committed[identifier] = answer.json["version"]
        else:
            ledger.refused.add(identifier)


def retry(client, ledger, identifier, history):
    """After a restart an ID is known or not, and an action that is there is not committed again with its key."""
    answer = client.get(f"/v1/actions/{identifier}")
    expect_equal(answer.status, 200 if identifier in history else 404, f"the outcome of {identifier} after a restart")
    if identifier not in history or identifier in ledger.keyed:
        receipt = client.commit(add(1, id=identifier), Idempotency_Key=identifier)
        if identifier in history:
            expect_equal(receipt["version"], history.index(identifier) + 1, f"DOUBLED: the retry of {identifier}")
        ledger.committed[identifier] = receipt["version"]


def test_while_an_outcome_is_unknown_a_hidden_action_answers_as_one_that_is_nowhere(workspace):
    server = workspace.server()
    server.stop()
    root = bearer(make_token(workspace, server.data, "root", "--all"))
    limited = bearer(make_token(workspace, server.data, "limited", "--read", "/counter", "--others"))
    disk = Disk(workspace, server)
    server.start()
    with server.client() as client:
        client.commit(add(1, id="hidden"), **root)
        for number in range(20):
            disk.fail("sync", after=number)
            answer = client.post(add(1, id=f"open-{number}"), **root)
            if answer.status == 503 and answer.json["code"] == "outcome-unknown":
                break
            disk.heal()
            wait_until(lambda: client.get("/readyz").status == 200, "/readyz is 200 after the disk is well again", 5)
        hidden, nowhere = (client.get(f"/v1/actions/{name}", **limited) for name in ("hidden", "nowhere"))
        expect_equal((nowhere.status, nowhere.json["code"]), (503, "outcome-unknown"), "the answer for what is nowhere")
        expect_equal((hidden.status, hidden.json["code"]), (503, "outcome-unknown"), "the answer for what is hidden")
        disk.heal()


def test_the_judge_of_answers_sees_what_is_lost_doubled_or_wrong():
    cases = [("a", "LOST"), ("a b a", "DOUBLED"), ("a b no", "WRONG"), ("b a", "the version"), ("a b x", "nobody")]
    for history, words in cases:
        ledger = Ledger()
        ledger.committed, ledger.refused, ledger.unknown = {"a": 1, "b": 2}, {"no"}, {"maybe"}
        try:
            ledger.judge(history.split())
        except Failure as failure:
            expect(words in str(failure), f"the judge fails, but not for {words}:", failure)
        else:
            raise Failure(f"the judge takes {history!r}")
    ledger.judge(["a", "b", "maybe"])
    ledger.judge(["a", "b"])


@pytest.mark.rounds(4, long=60)
def test_clocks_that_jump_change_neither_the_history_nor_what_a_key_protects(workspace, rounds, figures):
    """Jumps of hours, forward and back, within the time that a key is kept; kills in between."""
    for number in range(rounds):
        chance = random.Random(f"{workspace.seed}/{number}")
        server = workspace.server()
        server.stop()
        clocks = Clocks(workspace, server)
        server.start()
        ledger = Ledger()
        for part in range(3):
            with server.client() as client:
                for index in range(10):
                    identifier = f"c{part}-{index}"
                    ledger.note(identifier, client.post(add(1, id=identifier), Idempotency_Key=identifier))
            clocks.move(chance.randint(-40_000, 40_000), chance.choice([0, chance.randint(0, 40_000)]))
            # A jump of the monotonic clock ends idle connections.
            with server.client() as client:
                for identifier, version in ledger.committed.items():
                    again = client.post(add(1, id=identifier), Idempotency_Key=identifier)
                    expect_equal(again.json["version"], version, f"DOUBLED: the retry of {identifier}")
            if chance.random() < 0.7:
                server.kill()
            else:
                server.stop()
            server.start()
        with server.client() as client:
            ledger.judge(read_ids(client))
        server.kill()
    figures(f"{rounds} servers")


@pytest.mark.parametrize("kind", ["full", "sync"])
def test_scheduled_actions_keep_their_order_where_the_journal_fails_once_amid_them(workspace, kind):
    count, rounds = 3000, 4
    server = workspace.server(**DOCUMENT)
    server.stop()
    disk = Disk(workspace, server)
    server.start()
    with server.client() as client:
        for number in range(rounds):
            due = time.time() + 2
            at = datetime.datetime.fromtimestamp(due, datetime.UTC).isoformat(timespec="milliseconds")
            bulk(client, [
                action("document/increment", {"path": f"/n/u{number}-{each}"}, schedule={"at": at}) for each in range(count)
            ])
            sleep_until(due - 0.2, time.time)
            disk.fail(kind, after=number, times=1)
            wait_until(lambda: client.get("/v1/schedule?limit=1").json["count"] == 0, "everything is dispatched", 20)
            expect_equal(disk.failures, 1, "the failures")
        late, left = judge(changes(client))
    expect_equal((len(late), left), (rounds * count, {}), "what was committed, and what is to come")
