"""Three servers on one history in etcd: what any of them acknowledges is recorded once, whatever ends or stands still."""

import collections
import json
import os
import random
import shutil
import signal
import threading
import time

import pytest

from harness.actions import action, add
from harness.bad_network import BadNetwork
from harness.etcd import Etcds
from harness.expectations import expect, expect_equal, lasting, paced, wait_until
from harness.nodes import Nodes
from harness.register import TASK, RegisterClient, Times, begin_register, judge_register, recorded_sets
from harness.server import Server, log_when_ready, start_refusal

WRITERS = 10


class Writer(threading.Thread):
    """Posts actions with keys to any server, each until it is acknowledged."""

    def __init__(self, nodes, name, seed, finished):
        super().__init__(daemon=True)
        self.nodes, self.name_, self.chance = nodes, name, random.Random(f"{seed}/{name}")
        self.finished = finished
        self.acknowledged, self.times, self.sum, self.tasks, self.failure = {}, [], 0, [], None
        self.replayed = self.repeated = 0
        self.slowest = 0

    def run(self):
        try:
            number = 0
            while not self.finished.is_set():
                self.write(number)
                number += 1
        except BaseException as error:  # The test reports it.
            self.failure = error

    def write(self, number):
        identifier = f"{self.name_}-{number}"
        if self.chance.random() < 0.8:
            amount = self.chance.randint(1, 9)
            body = add(amount, id=identifier)
        else:
            amount = 0
            self.tasks.append(self.name_ * 1_000_000 + number)
            body = action("tasks/add", {"id": self.tasks[-1], "title": identifier}, id=identifier)
        begun = time.monotonic()

        def acknowledged():
            answer = self.nodes.asked(self.chance, lambda client: client.post(body, Idempotency_Key=f'"{identifier}"'))
            if answer and answer.status != 503:
                return answer
            self.repeated += 1

        answer = wait_until(acknowledged, f"{identifier} is acknowledged", 60, pause=0.03)
        expect(answer.status == 200, "a writer was answered", answer)
        self.slowest = max(self.slowest, time.monotonic() - begun)
        self.replayed += "idempotency-replayed" in answer.fields
        version = answer.json["version"]
        expect(version not in self.acknowledged, f"version {version} was acknowledged twice")
        self.acknowledged[version] = identifier
        self.times.append((begun, time.monotonic(), version))
        self.sum += amount


class Follower(threading.Thread):
    """Follows the commits, each page from any server, with the cursor that it has."""

    def __init__(self, nodes, cursor, seed, finished):
        super().__init__(daemon=True)
        self.nodes, self.cursor, self.finished = nodes, cursor, finished
        self.chance = random.Random(seed)
        self.versions, self.failure = [], None
        self.target = None

    def run(self):
        try:
            for _ in paced(iter(lambda: self.target is not None and len(self.versions) >= self.target, True), 0.02):
                self.read()
        except BaseException as error:  # The test reports it.
            self.failure = error

    def read(self):
        answer = self.nodes.asked(
            self.chance, lambda client: client.get(f"/v1/changes?since={self.cursor}&wait=1&limit=500"))
        if answer is None:
            return
        if answer.status == 503:
            # It does not have the cursor yet, or is stopping and could not read the page in time.
            expect(answer.json["code"] in ("behind", "draining"), answer.json)
            return
        expect_equal(answer.status, 200, "a follower was answered")
        for change in answer.json["changes"]:
            self.versions.append(change["version"])
            self.cursor = change["cursor"]


def disturb(nodes, etcds, chance, seconds):
    """Ends, stops and restarts one thing after another."""
    told = []

    def rest(least, most):
        time.sleep(chance.uniform(least, most))

    for _ in lasting(seconds):
        rest(0.3, 1.0)
        index = chance.randrange(3)
        kind = chance.choice(
            ["kill a server", "end a server", "kill an etcd", "stop a server", "stop an etcd", "kill all etcds"])
        told.append(f"{kind} {index}")
        if kind == "kill a server":
            nodes.servers[index].kill()
            rest(0, 0.5)
            nodes.restart(index)
        elif kind == "end a server":
            nodes.servers[index].stop()
            nodes.restart(index)
        elif kind == "kill an etcd":
            etcds.kill(index)
            rest(0.2, 1.5)
            etcds.start(index)
            etcds.wait()
        elif kind == "stop an etcd":
            etcds.signal(index, signal.SIGSTOP)
            rest(0.5, 3)
            etcds.signal(index, signal.SIGCONT)
        elif kind == "kill all etcds":
            etcds.stop_all()
            for each in range(3):
                etcds.start(each)
            etcds.wait()
        else:
            nodes.servers[index].stand_still(chance.uniform(0.5, 3))
    return told


def test_a_commit_that_etcd_cannot_take_is_refused_with_413_and_the_server_goes_on(workspace):
    etcds = Etcds(workspace, 1)
    server = Server(workspace, etcds.address("large"), {}).start()
    with server.client() as client:
        large = [action("tasks/add", {"id": number, "title": "x" * 500}) for number in range(2_000)]
        answer = client.post(b"[" + b",".join(large) + b"]")
        expect_equal(answer.status, 413, "the status of a commit of two megabytes")
        expect_equal(answer.json["code"], "commit-too-large", "its code")
        expect_equal(client.get("/readyz").status, 200, "whether the server is ready")
        # What is split between transactions is one turn for its clients all the same.
        lines = b"\n".join(large)
        answer = client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
        expect_equal(answer.status, 200, "the status of as many commits of their own")
        expect_equal(len(client.get("/v1/state/tasks/ids").json), 2_000, "the tasks")
    server.stop()
    again = Server(workspace, etcds.address("large"), {}).start()
    with again.client() as client:
        expect_equal(len(client.get("/v1/state/tasks/ids").json), 2_000, "the tasks after a restart")
        expect_equal(len(client.get("/v1/changes?since=oldest&limit=1000").json["changes"]), 1_000, "a page of the past")


def test_what_a_snapshot_replaces_is_deleted_and_followers_of_the_kept_past_go_on(workspace):
    etcds = Etcds(workspace, 1)
    settings = {"journal_commits_max": 5_000, "journal_snapshots_max": 2, "history_commits_max": 100}
    servers = [Server(workspace, etcds.address("old"), settings).start() for _ in range(2)]
    lines = b"\n".join([add(1)] * 5_000)
    with servers[0].client() as client, servers[1].client() as other:
        epoch = client.get("/v1").json["cursor"].partition(".")[0]
        for count in range(1, 9):
            answer = client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
            expect_equal(answer.status, 200, "the status of 5,000 lines")
            other.get(f"/v1/state?at-least={epoch}.{count * 5_000}&wait=10")
        wait_until(lambda: len(etcds.keys("old/snapshots/")) == 2, "there are two snapshots")
        wait_until(lambda: min(etcds.keys("old/turns/")) > "old/turns/00000000000000010000", "old turns are deleted")

        def snapshots(folder):
            return {key.split("/")[2] for key in etcds.keys(f"old/{folder}/")}

        wait_until(lambda: snapshots("chunks") == snapshots("snapshots"), "the snapshots that are kept have parts, no others")

        def first_page(client):
            """The first commits that are kept, and the version before them; None where they were just deleted."""
            oldest = int(min(etcds.keys("old/turns/")).rpartition("/")[2]) - 1
            answer = client.get(f"/v1/changes?since={epoch}.{oldest}&limit=10")
            return (oldest, answer.json["changes"]) if answer.status == 200 else None

        for each in (client, other):
            expect_equal(each.get(f"/v1/changes?since={epoch}.1").status, 410, "the status of a deleted past")
            oldest, changes = wait_until(lambda: first_page(each), "a page of the kept past is read")
            expect_equal([change["version"] for change in changes], list(range(oldest + 1, oldest + 11)), "a page")
    for server in servers:
        server.stop()
    newest = max(key for key in etcds.keys("old/chunks/"))
    etcds.put(newest, b"damaged")
    again = Server(workspace, etcds.address("old"), settings).start()
    expect("snapshot skipped" in log_when_ready(again), "no word about the damaged snapshot")
    with again.client() as client:
        expect_equal(client.get("/v1/state/counter/value").json, 40_000, "the state after a restart")


def test_a_server_waits_for_etcd_and_refuses_what_is_not_its_own(workspace):
    etcds = Etcds(workspace, 1)
    etcds.kill(0)
    waiting = Server(workspace, etcds.address("late"), {}).launch()
    wait_until(lambda: "waiting for etcd" in waiting.log_text(), "the server says that it waits")
    etcds.start(0)
    wait_until(waiting.ready, "the server is ready", seconds=30)
    with waiting.client() as client:
        expect_equal(client.commit(add(3))["version"], 1, "the first version")
        etcds.kill(0)
        wait_until(lambda: client.get("/readyz").status == 503, "a server that has lost etcd is not ready")
        expect_equal(client.get("/v1/state/counter/value").json, 3, "what it goes on reading")
        etcds.start(0)
        wait_until(lambda: client.get("/readyz").status == 200, "it is ready again", seconds=20)
        expect_equal(client.commit(add(4))["version"], 2, "the next version")
    start_refusal(workspace, "etcd://127.0.0.1/name", "etcd://host:port")
    etcds.put("foreign/meta", b"not ours")
    start_refusal(workspace, etcds.address("foreign"), "does not belong to a Storekeeper")


def test_a_history_that_is_deleted_behind_a_server_stops_its_writes_and_turns_it_red(workspace):
    etcds = Etcds(workspace, 1)
    server = Server(workspace, etcds.address("gone"), {}).start()
    with server.client() as client:
        client.commit(add(3))
        etcds.delete("gone/")
        wait_until(lambda: client.get("/readyz").status == 503, "the server is not ready", seconds=2)
        answer = client.post(add(4))
        expect_equal(answer.status, 503, "the status of an action")
        expect_equal(answer.json["code"], "not-durable", "its code")
        expect_equal(client.get("/v1/state/counter/value").json, 3, "the state")
        expect("is not the one that this server has" in client.get("/readyz?verbose").body.decode(), "no reason")


@pytest.mark.alone
def test_an_etcd_that_is_an_older_backup_of_itself_stops_a_server_that_has_more(workspace):
    etcds = Etcds(workspace, 1)
    server = Server(workspace, etcds.address("back"), {}).start()
    member, backup = os.path.join(etcds.directory, "e0"), os.path.join(etcds.directory, "backup")
    with server.client() as client:
        client.commit(add(1))
        etcds.kill(0)
        shutil.copytree(member, backup)
        etcds.start(0)
        wait_until(lambda: client.post(add(1)).status == 200, "it goes on", seconds=20)
        client.commit(add(1))
        etcds.kill(0)
        shutil.rmtree(member)
        shutil.copytree(backup, member)
        etcds.start(0)
        etcds.wait()
        reason = "its newest turn is gone, as after the restore of an older backup"
        wait_until(lambda: reason in client.get("/readyz?verbose").body.decode(), "it says so", seconds=3)
        expect_equal(client.post(add(1)).json["code"], "not-durable", "the code of an action")
        expect_equal(client.get("/v1/state/counter/value").json, 3, "the state that it goes on reading")
        lost = client.get("/v1").json["cursor"]
        wait_until(lambda: "has a new epoch" in server.log_text(), "the history has a new epoch", seconds=3)
    # One that starts now goes on with the older history, in which the cursors of what is lost mean nothing.
    later = Server(workspace, etcds.address("back"), {}).start()
    with later.client() as client:
        expect_equal(client.get("/v1/state/counter/value").json, 1, "the state of the backup")
        expect_equal(client.commit(add(5))["version"], 2, "the next version")
        for target in (f"/v1/changes?since={lost}", f"/v1/state?at-least={lost}&wait=5"):
            answer = client.get(target)
            expect_equal((answer.status, answer.json["code"]), (410, "cursor-lost"), f"the answer to {target}")
        again = client.get("/v1/changes?since=oldest").json["changes"]
        expect_equal([change["version"] for change in again], [1, 2], "the versions of the history")


def test_a_history_that_lacks_its_newest_turn_has_a_new_epoch_also_where_the_watch_says_it_first(workspace):
    etcds = Etcds(workspace, 1)
    server = Server(workspace, etcds.address("cut"), {}).start()
    with server.client() as client:
        for _ in range(3):
            client.commit(add(1))
        lost = client.get("/v1").json["cursor"]
    etcds.delete(max(etcds.keys("cut/turns/")))
    wait_until(lambda: "has a new epoch" in server.log_text(), "the history has a new epoch")
    later = Server(workspace, etcds.address("cut"), {}).start()
    with later.client() as client:
        expect_equal(client.get("/v1/state/counter/value").json, 2, "the state without the last turn")
        expect_equal(client.commit(add(5))["version"], 3, "the next version")
        answer = client.get(f"/v1/changes?since={lost}")
        expect_equal((answer.status, answer.json["code"]), (410, "cursor-lost"), "the answer to the cursor of what is lost")


@pytest.mark.alone
def test_an_older_backup_that_is_restored_while_no_server_runs_has_a_new_epoch_at_the_next_start(workspace):
    etcds = Etcds(workspace, 1)
    settings = {"cluster_directory": workspace.path("own")}
    server = Server(workspace, etcds.address("back"), settings).start()
    member, backup = os.path.join(etcds.directory, "e0"), os.path.join(etcds.directory, "backup")
    cursors = []
    for _ in range(2):
        with server.client() as client:
            for _ in range(3):
                client.commit(add(1))
            cursors.append(client.get("/v1").json["cursor"])
        server.stop()
        etcds.kill(0)
        if not os.path.exists(backup):
            shutil.copytree(member, backup)
        etcds.start(0)
        etcds.wait()
        server.start()
    with server.client() as client:
        cursor = client.get("/v1").json["cursor"]
        expect_equal(cursor, cursors[1], "the cursor where nothing was restored")
    server.stop()
    etcds.kill(0)
    shutil.rmtree(member)
    shutil.copytree(backup, member)
    etcds.start(0)
    etcds.wait()
    server.start()
    expect("is older than this server has seen it" in log_when_ready(server), "no word in the log", server.log_text())
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter/value").json, 3, "the state of the backup")
        for lost in (cursors[1], cursors[0]):
            answer = client.get(f"/v1/changes?since={lost}")
            expect_equal((answer.status, answer.json["code"]), (410, "cursor-lost"), f"the answer to {lost}")
        cursor = client.get("/v1").json["cursor"]
        client.commit(add(1))
    # Once only: the next start goes on with the new epoch.
    server.stop()
    server.start()
    with server.client() as client:
        expect_equal(len(client.get(f"/v1/changes?since={cursor}").json["changes"]), 1, "the commits behind the new epoch")


@pytest.mark.alone
@pytest.mark.rounds(2, long=50)
@pytest.mark.seconds(long=3600)
def test_what_any_server_acknowledges_is_recorded_once_through_kills_of_servers_and_etcds(
    workspace, rounds, figures
):
    check_rounds(workspace, Etcds(workspace), rounds, figures)


@pytest.mark.alone
@pytest.mark.rounds(2, long=50)
@pytest.mark.seconds(long=3600)
def test_what_any_server_acknowledges_is_recorded_once_through_a_bad_network_to_the_etcds(workspace, rounds, figures):
    etcds = Etcds(workspace)
    network = BadNetwork(workspace, etcds.ports)
    etcds.reached = network.ports
    check_rounds(workspace, etcds, rounds, figures)
    figures(f"the network: {network.stop()}")


@pytest.mark.alone
@pytest.mark.rounds(2, long=50)
@pytest.mark.seconds(long=3600)
def test_what_any_server_acknowledges_is_recorded_once_through_a_bad_network_to_the_servers(workspace, rounds, figures):
    check_rounds(workspace, Etcds(workspace), rounds, figures, are_far=True)


def check_rounds(workspace, etcds, rounds, figures, are_far=False):
    happened = collections.Counter()
    written = repeated = replayed = 0
    slowest, late = 0, []
    for number in range(rounds):
        chance = random.Random(f"{workspace.seed}/{number}")
        # In every second round, and in each one with a bad network between the servers, one writes, and the others send their
        # actions on to it.
        nodes = Nodes(workspace, etcds, f"round{number}", are_led=are_far or number % 2 == 1, is_far=are_far)
        with nodes.client(0) as client:
            cursor = client.get("/v1").json["cursor"]
            begun = begin_register(client)
        finished = threading.Event()
        writers = [Writer(nodes, name, f"{workspace.seed}/{number}", finished) for name in range(1, WRITERS + 1)]
        followers = [Follower(nodes, cursor, f"{workspace.seed}/{number}/{name}", finished) for name in range(3)]
        registers = [RegisterClient(nodes, name, begun, f"{workspace.seed}/{number}", finished) for name in range(4)]
        for thread in writers + followers + registers:
            thread.start()
        told = disturb(nodes, etcds, chance, 12)
        finished.set()
        for writer in writers + registers:
            writer.join(70)
            expect(not writer.is_alive() and writer.failure is None, f"{writer.failure} after {told}")

        acknowledged = {1: "begun"}
        for writer in writers:
            for version, identifier in writer.acknowledged.items():
                expect(version not in acknowledged, f"version {version} was acknowledged to two writers")
                acknowledged[version] = identifier
        wait_until(lambda: len(set(nodes.states())) == 1, f"the servers have one state after {told}", seconds=20)
        cursor, body = nodes.states()[0]
        state = json.loads(body)
        expect_equal(state["counter"]["value"], sum(writer.sum for writer in writers), f"the sum after {told}")
        expect_equal(
            sorted(int(task) for task in state["tasks"]["entities"]),
            sorted([TASK, *(task for writer in writers for task in writer.tasks)]),
            f"the tasks after {told}",
        )
        latest = int(cursor.rpartition(".")[2])
        for index in range(3):
            with nodes.client(index) as client:
                recorded, found_late, judged = judge_register(recorded_sets(client), registers)
        late += found_late
        acknowledged |= {version: value for value, version in recorded.items()}
        sets = [(each.begun, each.ended, each.version) for client in registers for each in client.sets if each.version]
        Times([*sets, *(each for writer in writers for each in writer.times)]).judge()
        expect_equal(sorted(acknowledged), list(range(1, latest + 1)), f"the acknowledged versions after {told}")
        for follower in followers:
            follower.target = latest
            follower.join(30)
            expect(follower.failure is None, f"{follower.failure}")
            expect_equal(follower.versions, list(range(1, latest + 1)), f"what a follower has seen after {told}")
        for server in nodes.servers:
            server.stop()
        if are_far:
            happened.update(nodes.network.stop())
        written += latest
        repeated += sum(writer.repeated for writer in writers)
        replayed += sum(writer.replayed for writer in writers)
        slowest = max(slowest, *(writer.slowest for writer in writers))
    figures(
        f"{rounds} rounds: {written} commits, {repeated} attempts again, {replayed} answers of an earlier attempt; "
        f"the slowest took {slowest:.1f} s; the last round's register: {judged}"
        + (f"; the network: {dict(happened)}" if are_far else "")
    )
    expect(not late, "refused by a state that was not the newest:", late[:3])
