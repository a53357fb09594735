"""Clients that schedule, replace and take back very many actions while servers are killed, and their judge."""

import datetime
import heapq
import json
import random
import time

from harness.actions import action
from harness.client import Client, ConnectionLost
from harness.expectations import Failure, expect, expect_equal, sleep_until, wait_until
from harness.schedules import Pending, milliseconds
from harness.worker import processes

CLIENTS = 2


class Changer:
    """A client with names of its own: it schedules an action under each, and replaces or takes back half of them.

    What gets no answer counts as lost: it is there or not, and is sent again with another number.
    """

    # How many actions a request schedules.
    BULK = 500

    def __init__(self, ports, client, count, begin, end, ahead, seed):
        self.ports, self.name, self.begin, self.end, self.ahead = ports, client, begin, end, ahead
        self.chance = random.Random(f"{seed}/{client}")
        self.names = [f"{client}.{number}" for number in range(count)]
        self.connection, self.turn, self.number = None, 0, 0
        # When the latest action of a name is due, in seconds.
        self.due = {}
        # What the servers have acknowledged: by version, the name, the number that the action counts, and its time; by
        # version, the name that was taken back; and the names that were not there, with the version of that answer.
        self.scheduled, self.taken_back, self.absent = {}, {}, []
        self.lost = 0

    def ask(self, method, target, body=None, fields=None):
        """An answer; nothing, where it may or may not have been carried out."""
        try:
            self.connection = self.connection or Client(self.ports[self.turn % len(self.ports)], timeout=20)
        except ConnectionLost:
            self.turn += 1
            time.sleep(0.02)
            return None
        try:
            answer = self.connection.request(method, target, body, fields)
        except (ConnectionLost, Failure):
            answer = None
        if answer is None or answer.status >= 500:
            self.connection.close()
            self.connection = None
            self.turn += 1
            self.lost += 1
            return None
        if answer.closes:
            self.connection = None
        return answer

    def schedule(self, names):
        """Schedules an action under each name, all of which the server acknowledges in the end."""
        while names:
            now = time.time()
            sent = []
            for name in names:
                self.number += 1
                due = self.chance.uniform(max(self.begin, now + self.ahead), max(self.end, now + self.ahead + 0.1))
                at = datetime.datetime.fromtimestamp(due, datetime.UTC).isoformat(timespec="milliseconds")
                sent.append((name, f"{self.name}-{self.number}", at))
            body = b"\n".join(
                action("document/increment", {"path": f"/n/{uid}"}, schedule={"at": at, "name": name})
                for name, uid, at in sent)
            answer = self.ask("POST", "/v1/actions", body, {"Content-Type": "application/x-ndjson"})
            if answer is None:
                continue
            expect_equal(answer.status, 200, f"the status of many actions: {answer.body[:300]}")
            names = []
            for (name, uid, at), line in zip(sent, answer.body.splitlines(), strict=True):
                receipt = json.loads(line)
                if "version" not in receipt:
                    expect(receipt["status"] >= 500, "a line was refused:", receipt)
                    self.lost += 1
                    names.append(name)
                    continue
                expect_equal(receipt["name"], name, "the name of a receipt")
                due = milliseconds(receipt["due"])
                self.scheduled[receipt["version"]] = (name, uid, due)
                self.due[name] = due / 1000

    def take_back(self, name):
        while (answer := self.ask("DELETE", f"/v1/schedule/{name}")) is None:
            pass
        if answer.status == 404:
            self.absent.append((answer.version, name))
        elif answer.status == 422 and answer.json["code"] == "action-quarantined":
            # Two kills of the writer have come while it was under way, the second one amid the retry.
            self.lost += 1
        else:
            expect_equal(answer.status, 200, f"the status of a DELETE: {answer.body}")
            self.taken_back[answer.json["version"]] = name

    def change(self, names):
        replaced = names[: len(names) // 2]
        for start in range(0, len(replaced), 50):
            self.schedule(replaced[start : start + 50])
            for name in names[len(replaced) + start : len(replaced) + start + 50]:
                self.take_back(name)

    def load(self, progress):
        """Schedules under all names, and changes a quarter of them meanwhile."""
        order = self.chance.sample(self.names, len(self.names))
        self.left = self.chance.sample(self.names, len(self.names) // 2)
        done = set()
        for start in range(0, len(order), self.BULK):
            self.schedule(order[start : start + self.BULK])
            done.update(order[start : start + self.BULK])
            progress.value = len(done)
            count = len(done) // 4 - (len(self.names) // 2 - len(self.left))
            self.change(self.take_from_left(done, count))

    def take_from_left(self, done, count):
        found = [name for name in self.left if name in done][:count]
        gone = set(found)
        self.left = [name for name in self.left if name not in gone]
        return found

    def go_on(self, until):
        """Changes the second quarter, evenly until a time: mostly what is due next."""
        pieces = max(1, len(self.left) // 100)
        begun = max(time.time(), self.begin)
        for number in range(pieces):
            sleep_until(begun + (until - begun) * number / pieces, time.time)
            now = time.time()
            self.left.sort(key=lambda name: (self.due[name] < now, self.due[name]))
            names, self.left = self.left[:100], self.left[100:]
            self.change(self.chance.sample(names, len(names)))
        self.change(self.left)


def change_many(ports, client, count, begin, end, ahead, until, progress, seed):
    changer = Changer(ports, client, count, begin, end, ahead, seed)
    changer.load(progress)
    changer.go_on(until)
    return changer.scheduled, changer.taken_back, changer.absent, changer.lost


def listing(client):
    """The version at which GET /v1/schedule lists, how many are scheduled, and the first of them with their times."""
    answer = client.get("/v1/schedule?limit=1000")
    expect_equal(answer.status, 200, "the status of the schedule")
    first = [(each["name"], milliseconds(each["due"])) for each in answer.json["schedule"]]
    return answer.version, (answer.json["count"], first)


class Told:
    """What clients were told while servers were killed, and what the servers have listed."""

    def __init__(self):
        self.clients, self.listings, self.starts = [], {}, []
        # How many seconds before the first time everything was scheduled.
        self.spare = 0
        # The time from which on nothing else happens.
        self.quiet = 0

    def look(self, server):
        with server.client() as client:
            version, found = listing(client)
            self.listings[version] = found

    def __str__(self):
        starts = sorted(self.starts)
        scheduled, taken_back, absent = (sum(len(each[part]) for each in self.clients) for part in range(3))
        return (
            f"{scheduled} scheduled, {taken_back} taken back, {absent} not there any more,"
            f" {sum(each[3] for each in self.clients)} answers lost, {len(starts)} kills; loaded {self.spare:.1f} s before"
            f" the first was due; starts: median {starts[len(starts) // 2]:.2f}, at most {starts[-1]:.2f} s")


def change_through_kills(workspace, ports, kill, count, kills, lead, window, ahead):
    """Schedules so many actions for a window of so many seconds, and changes half of them, through kills.

    The window begins after `lead`. A quarter of the kills comes while the actions are scheduled; the last one leaves a
    third of the window in quiet. `kill` takes how long to be down, and returns a server that has started. `ahead` is for
    how long there is nobody who commits, at most: a time is so much later than the request.
    """
    told, chance = Told(), random.Random(workspace.seed)
    begin = time.time() + lead
    progress = [processes.Value("q", 0) for _ in range(CLIENTS)]
    clients = [
        workspace.worker(
            change_many, ports, f"c{number}", count // CLIENTS, begin, begin + window, ahead, begin + window * 0.6,
            progress[number], workspace.seed)
        for number in range(CLIENTS)
    ]

    def kill_and_look(down=0.0):
        begun = time.monotonic()
        server = kill(down)
        told.starts.append(time.monotonic() - begun - down)
        told.look(server)
        return server

    early = max(1, kills // 4)
    for number in range(1, early + 1):
        share = count * number // (early + 1)
        wait_until(lambda: sum(each.value for each in progress) >= share, "the clients go on", 120)
        server = kill_and_look()
    wait_until(lambda: sum(each.value for each in progress) >= count, "everything is scheduled", 200)
    told.look(server)
    told.spare = begin - time.time()
    for number in range(kills - early):
        at = begin + window * 0.65 * (number + chance.random()) / (kills - early)
        sleep_until(max(at, time.time() + 0.05), time.time)
        server = kill_and_look(chance.uniform(0, window / 60))
    told.clients = [client.result(200) for client in clients]
    told.quiet = time.time() + ahead

    def is_done():
        with server.client() as client:
            return client.get("/v1/schedule?limit=1").json["count"] == 0

    wait_until(is_done, "everything that was due has been dispatched", window + 100)
    return told


def pages(client):
    """Every commit, in order and without a gap."""
    cursor, version = "oldest", 0
    while True:
        answer = client.get(f"/v1/changes?since={cursor}&limit=1000")
        expect_equal(answer.status, 200, f"the status of the history: {answer.body[:300]}")
        page = answer.json
        for commit in page["changes"]:
            expect_equal(commit["version"], version + 1, "the version of the next commit")
            version += 1
            yield commit
        cursor = page["next"]
        if not page["more"]:
            return


def judge_many(client, told):
    """Follows the whole history, and compares it with what clients were told and with what the servers have listed.

    Returns what was fired: name, payload, the time that was wanted, and that of the commit.
    """
    pending, listings = Pending(), dict(told.listings)
    scheduled, taken_back, absent = {}, {}, {}
    for some_scheduled, some_taken_back, some_absent, _ in told.clients:
        scheduled |= some_scheduled
        taken_back |= some_taken_back
        for version, name in some_absent:
            absent.setdefault(version, []).append(name)
    for commit in pages(client):
        pending.take(commit)
        version, action = commit["version"], commit["action"]
        if version in scheduled:
            name, uid, due = scheduled.pop(version)
            expect_equal(action["payload"]["name"], name, f"what version {version} schedules")
            expect_equal(action["payload"]["action"]["payload"]["path"], f"/n/{uid}", f"what version {version} schedules")
            expect_equal(pending.orders[name][0], due, f"the time of {name}, against the receipt {version}")
        if version in taken_back:
            expect_equal(action["payload"], {"name": taken_back.pop(version)}, f"what version {version} takes back")
        for name in absent.pop(version, []):
            expect(name not in pending.orders, f"LOST: {name} was not there for a DELETE at version {version}")
        if version in listings:
            first = heapq.nsmallest(1000, pending.orders.items(), key=lambda item: item[1])
            wanted = len(pending.orders), [(name, order[0]) for name, order in first]
            expect_equal(listings.pop(version), wanted, f"what is listed at version {version}")
    left = [len(each) for each in (scheduled, taken_back, absent, listings)]
    expect_equal(left, [0] * 4, "LOST: what was acknowledged")
    expect_equal(pending.orders, {}, "what is still to come")
    counts = {f"/n/{uid}": count for uid, count in client.get("/v1/state/n").json.items()}
    expect_equal(set(counts.values()), {1}, "how often each action counts")
    expect_equal(len(pending.fired), len(counts), "how many were fired")
    expect_equal({payload["path"] for _, payload, _, _ in pending.fired}, set(counts), "what was fired")
    return pending.fired


def lateness(fired, since=0):
    """A sentence of how late those were that were wanted after a time."""
    late = sorted(time - due for _, _, due, time in fired if due >= since * 1000)
    if not late:
        return "none"
    at = lambda share: late[min(len(late) - 1, int(share * len(late)))]
    return f"{len(late)}: median {at(0.5)}, 99% {at(0.99)}, 99.9% {at(0.999)}, at most {late[-1]} ms"
