"""Checks of what was promised to those who write and those who follow: every change, in order, once, for good."""

import copy
import json
import random
import subprocess
import threading
import time

from harness.actions import action, add
from harness.expectations import expect, expect_equal, passes, wait_until
from harness.followers import follow, judge_history, read_history
from harness.messages import version_of
from harness.pollers import Poller, poll
from harness.records import Record
from harness.worker import processes
from harness.writers import write_actions, write_through_kills


def first_commands(workspace):
    """curl --json posts counter/add, and curl reads the value with an ETag and a State-Cursor."""
    server = workspace.server()
    address = f"http://127.0.0.1:{server.port}"

    def curl(*arguments):
        run = subprocess.run(["curl", "-sS", "-i", "-m", "10", *arguments], capture_output=True, timeout=20)
        expect(run.returncode == 0, "curl:", run.stderr.decode())
        head, _, body = run.stdout.decode().partition("\r\n\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
        return int(head.split()[1]), fields, json.loads(body)

    body = '{"type":"counter/add","payload":{"amount":2}}'
    status, fields, receipt = curl("--json", body, f"{address}/v1/actions")
    expect_equal((status, receipt["version"], receipt["changed"]), (200, 1, True), "the receipt")
    expect_equal(fields["state-cursor"], receipt["cursor"], "State-Cursor of the receipt")
    status, fields, value = curl(f"{address}/v1/state/counter")
    expect_equal((status, value), (200, {"value": 2}), "the counter")
    expect(fields.get("etag", "").startswith('"'), "no ETag:", fields)
    expect_equal(fields.get("state-cursor"), receipt["cursor"], "State-Cursor of the state")


def strict_judges(workspace):
    """These checks notice a change that is dropped, repeated, swapped or altered, and a waiter woken for nothing."""
    server = workspace.server(data="none")
    with server.client() as client:
        start = client.get("/v1/state")
        for number in range(1, 21):
            client.commit(add(number))
        page = client.get(f"/v1/changes?since={start.cursor}").json
        final = client.get("/v1/state").json
        tag = client.get("/v1/state/counter").fields["etag"]

        def judged(alter):
            altered = copy.deepcopy(page)
            alter(altered["changes"])
            record = Record(copy.deepcopy(start.json), start.cursor)
            record.take(altered)
            return record.state == final

        def swap(changes):
            changes[4], changes[5] = changes[5], changes[4]

        def falsify(changes):
            changes[-1]["patch"][0]["value"] += 1

        expect(judged(lambda changes: None), "an undamaged history does not lead to the final state")
        for name, alter in [
            ("dropped", lambda changes: changes.pop(7)), ("the last dropped", lambda changes: changes.pop()),
            ("repeated", lambda changes: changes.insert(7, changes[7])), ("swapped", swap), ("falsified", falsify)]:
            expect(not passes(judged, alter), f"a change that was {name} went unnoticed")

        unchanged = client.get("/v1/state/counter")
        waiter = Poller("/counter", wait=5)
        waiter.tag = tag
        expect(not passes(lambda: waiter.take(unchanged, 5) or True), "a needless 200 went unnoticed")
        timeout = client.get("/v1/state/counter", If_None_Match=tag)
        expect(timeout.status == 304 and not passes(lambda: waiter.take(timeout, 1) or True), "an early 304 went unnoticed")


def ten_writers(workspace):
    """Ten processes post 1,000 actions each: five followers see each once, in order; five pollers end on the last value."""
    server = workspace.server()
    client = server.client()
    start = client.get("/v1/state")
    port, target = processes.Value("i", server.port), processes.Value("q", -1)
    finished = processes.Event()
    began = time.monotonic()
    followers = [
        workspace.worker(follow, port, start.json, start.cursor, target, limit, 120) for limit in (1, 7, 100, 100, 1000)]
    pollers = [workspace.worker(poll, port, "/counter", finished, 120) for _ in range(5)]
    pollers.append(workspace.worker(poll, port, "/tasks/favourites", finished, 120))
    writers = [workspace.worker(write_actions, port, name, 1000, workspace.seed) for name in range(1, 11)]

    acknowledged = {}
    for writer in writers:
        for version, sent in writer.result(120).items():
            expect(version not in acknowledged, f"version {version} was acknowledged to two writers")
            acknowledged[version] = sent
    seconds = time.monotonic() - began
    final = client.get("/v1/state")
    expect_equal(sorted(acknowledged), list(range(1, 10_001)), "the acknowledged versions")
    expect_equal(final.version, 10_000, "the final version")
    target.value = final.version
    finished.set()
    for follower in followers:
        record, _ = follower.result(60)
        expect_equal(record.state, final.json, "the state that a follower's patches lead to")
        for version, (identifier, kind, payload) in acknowledged.items():
            seen_id, seen = record.seen[version - 1]
            expect_equal((seen_id, seen["type"], seen["payload"]), (identifier, kind, payload), f"version {version}")
    results = [poller.result(60)[0] for poller in pollers]
    for poller in results[:5]:
        expect_equal(poller.value, final.json["counter"], "the value that a long-poller ends on")
        expect(poller.changes > 1, "a long-poller saw no change at all")
    expect_equal(results[5].value, final.json["tasks"]["favourites"], "the favourites that a long-poller ends on")
    woken = sum(poller.changes for poller in results)
    return f"10,000 actions in {seconds:.1f} s; pollers were woken {woken} times, never for nothing"


def behind_memory(workspace):
    """Followers that are further behind than memory reaches read on from the journal; past versions read as they were."""
    server = workspace.server(history_commits_max=50)
    client = server.client()
    start = client.get("/v1/state")
    port, target = processes.Value("i", server.port), processes.Value("q", 3000)
    writers = [workspace.worker(write_actions, port, name, 1000, workspace.seed) for name in range(1, 4)]
    followers = [workspace.worker(follow, port, start.json, start.cursor, target, limit, 60) for limit in (5, 49, 1000)]
    for writer in writers:
        writer.result(60)
    records = [follower.result(60)[0] for follower in followers]
    history = judge_history(client, start.json, start.cursor)
    for record in records:
        expect_equal((record.seen, record.state), (history.seen, history.state), "what a follower saw")
    wanted = set(random.Random(workspace.seed).sample(range(1, 3001), 30)) | {1, 2999, 3000}
    replay = Record(start.json, start.cursor)
    for page in read_history(client, start.cursor, limit=1):
        replay.take(page)
        if replay.version in wanted:
            past = client.get(f"/v1/state?version={replay.version}")
            expect_equal((past.status, past.version), (200, replay.version), "status and cursor of a past version")
            expect_equal(past.json, replay.state, f"the state of version {replay.version}")


def needless_wakes(workspace):
    """Nobody is woken by a commit that did not change its selection: 50 pollers sleep through 400 commits elsewhere."""
    server = workspace.server()
    with server.client() as writer:
        writer.commit(add(5))
        writer.commit(action("tasks/add", {"id": 1, "title": "one"}))
        places = ["/counter", "/counter/value", "/tasks/entities/1", "/tasks/favourites"]
        pollers, answers = [], []
        for index in range(50):
            path = places[index % 4]
            poller, client = Poller(path, wait=6), server.client()
            poller.poll(client)
            pollers.append((poller, client))

        def wait(poller, client):
            try:
                answers.append(poller.poll(client).status)
            except Exception as error:
                answers.append(error)

        threads = [threading.Thread(target=wait, args=pair, daemon=True) for pair in pollers]
        for thread in threads:
            thread.start()
        wait_until(lambda: server.metric(writer, "waiters") == 50, "50 waiters")
        for number in range(100):
            writer.commit(add(0))
            writer.commit(action("tasks/add", {"id": 1000 + number, "title": "another"}))
            writer.commit(action("tasks/rename", {"id": 1000, "title": f"another {number}"}))
            # There and back within one commit.
            writer.commit(json.dumps([json.loads(add(3)), json.loads(add(-3))]).encode())
        before = server.metric(writer, "waiters")
        for thread in threads:
            thread.join(20)
        expect_equal([answer for answer in answers if answer != 304], [], "answers other than 304")
        expect_equal(before, 50, "waiters that still slept after the commits")
        expect_equal(len(answers), 50, "answers")


def killed_twenty_times(workspace):
    """kill -9 twenty times in the middle: what was acknowledged is there, nothing twice; epoch, cursors, followers go on."""
    kills = 20
    chance = random.Random(workspace.seed)
    server = workspace.server()
    start = server.client().get("/v1/state")
    epoch = start.cursor.rpartition(".")[0]
    port, target = processes.Value("i", server.port), processes.Value("q", -1)
    finished = processes.Event()
    acknowledged = [processes.Value("q", 0) for _ in range(6)]
    writers = [
        workspace.worker(write_through_kills, port, f"w{name}", name % 2 == 1, finished, acknowledged[name], workspace.seed)
        for name in range(6)]
    followers = [workspace.worker(follow, port, start.json, start.cursor, target, limit, 150) for limit in (10, 1000)]
    poller = workspace.worker(poll, port, "/counter", finished, 150)
    recoveries = []
    old_cursors = [start.cursor]
    for _ in range(kills):
        before = max(value.value for value in acknowledged)
        wait_until(lambda: max(value.value for value in acknowledged) > before + 20, "the writers went on", 20)
        time.sleep(chance.uniform(0.02, 0.5))
        server.kill()
        promised = max(value.value for value in acknowledged)
        began = time.monotonic()
        server.start()
        recoveries.append(time.monotonic() - began)
        port.value = server.port
        with server.client() as client:
            here = client.get("/v1").json
            expect_equal(here["epoch"], epoch, "the epoch after a kill")
            expect(here["version"] >= promised, f"version {promised} was acknowledged, {here['version']} is there")
            cursor = chance.choice(old_cursors)
            page = client.get(f"/v1/changes?since={cursor}&limit=1").json
            expect_equal(page["changes"][0]["version"], version_of(cursor) + 1, f"the change after {cursor}")
            old_cursors.append(here["cursor"])
    time.sleep(0.3)
    finished.set()
    receipts, sent, lost, replayed = {}, {}, 0, 0
    for writer in writers:
        some_receipts, some_sent, some_lost, some_replayed = writer.result(60)
        receipts |= some_receipts
        sent |= some_sent
        lost += some_lost
        replayed += some_replayed
    expect(lost >= kills, f"only {lost} answers were lost in {kills} kills: these were not in the middle of anything")
    client = server.client()
    history = judge_history(client, start.json, start.cursor)
    final = client.get("/v1/state")
    target.value = final.version

    versions = {}
    for version, (identifier, what) in history.by_version().items():
        expect(identifier not in versions, f"{identifier} is there twice: versions {versions.get(identifier)} and {version}")
        versions[identifier] = version
        expect_equal(what["payload"]["amount"], sent[identifier], f"the amount of {identifier}")
    for identifier, version in receipts.items():
        expect_equal(versions.get(identifier), version, f"the version of {identifier}, which was acknowledged,")
    for identifier in sent:
        if int(identifier[1]) % 2 == 1:
            expect(identifier in versions, f"{identifier}, sent again until it was answered, is not there")
    total = sum(sent[identifier] for identifier in versions)
    expect_equal(final.json["counter"]["value"], total, "the counter, against the sum of what is in the history")
    for follower in followers:
        record, losses = follower.result(60)
        expect(losses >= kills // 2, f"a follower was cut off only {losses} times")
        expect_equal(record.seen, history.seen, "what a follower saw through all kills")
        expect_equal(record.state, final.json, "the state of a follower")
    result, _ = poller.result(60)
    expect_equal(result.value, final.json["counter"], "the value that the long-poller ends on")
    return (
        f"{len(receipts)} acknowledged, {len(versions)} in the history, {lost} answers cut off, {replayed} replayed by key;"
        f" restart {1000 * sorted(recoveries)[kills // 2]:.0f} ms (median)")


def one_key(workspace):
    """The same Idempotency-Key from 20 clients at once, and again after a restart, is one commit."""
    server = workspace.server()
    receipts = []
    for round_ in range(20):
        key = f'"key-{round_}"'
        answers = at_once(server, 20, add(1), key)
        expect_equal({answer.status for answer in answers}, {200}, "the statuses")
        expect_equal(len({answer.json["version"] for answer in answers}), 1, "the number of versions of one key")
        expect_equal(len({answer.body for answer in answers}), 1, "the number of different answers to one key")
        fresh = [answer for answer in answers if answer.fields.get("idempotency-replayed") != "true"]
        expect_equal(len(fresh), 1, "answers that are not marked as replayed")
        receipts.append((key, answers[0].json))
    expect_equal([receipt["version"] for _, receipt in receipts], list(range(1, 21)), "the versions of 20 keys")
    for end in (server.kill, server.stop):
        end()
        server.start()
        for key, receipt in receipts:
            for answer in at_once(server, 20 if key == receipts[0][0] else 2, add(1), key):
                expect_equal(answer.json, receipt, f"the answer to {key} after a restart")
                expect_equal(answer.fields.get("idempotency-replayed"), "true", "Idempotency-Replayed")
        with server.client() as client:
            other = client.post(add(2), Idempotency_Key=receipts[0][0])
            expect_equal((other.status, other.json["code"]), (422, "idempotency-key-reused"), "the same key, another body")
            state = client.get("/v1/state/counter")
            expect_equal((state.version, state.json), (20, {"value": 20}), "the counter after all repetitions")
            bare = client.post(add(1), Idempotency_Key="key-0")
            expect_equal(bare.json, receipts[0][1], "the key without its quotes")


def at_once(server, count, body, key):
    """Posts the same from many connections at the same moment."""
    clients = [server.client() for _ in range(count)]
    answers = []
    barrier = threading.Barrier(count)

    def post(client):
        barrier.wait(10)
        answers.append(client.post(body, Idempotency_Key=key))

    threads = [threading.Thread(target=post, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    for client in clients:
        client.close()
    expect_equal(len(answers), count, "the number of answers")
    return answers
