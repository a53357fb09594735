"""Contenders for a lock with a lease, in one process and in a shell, and the judge of who had it when."""

import http.client
import json
import random
import re
import threading
import time

from harness.expectations import expect, expect_equal
from harness.messages import HOST
from harness.pages import blocks
from harness.schedules import milliseconds

PATH = "/lock"
# As the guide has it, so that a contender in a shell can be what it prints.
LEASE = 1


class Contender(threading.Thread):
    """A client that takes the lock, renews its lease or does not, works under it, and gives it back or vanishes.

    Each tenure has a name of its own, and each renewal writes another value, on which the next step depends.
    """

    def __init__(self, port, name, finished, seed):
        super().__init__(daemon=True)
        self.port, self.name, self.finished, self.chance = port, name, finished, random.Random(f"{seed}/{name}")
        self.connection, self.tenures = None, 0
        # From when until when it has known, by its own clock, that the lock is its own.
        self.holds = []
        self.faults = []
        self.counts = dict.fromkeys(["taken", "renewed", "worked", "given back", "died", "too late", "unanswered"], 0)

    def ask(self, method, target, body=None, fields=None):
        """The status of an answer; nothing, where there is none."""
        try:
            self.connection = self.connection or http.client.HTTPConnection(HOST, self.port, timeout=20)
            self.connection.request(method, target, body, fields or {})
            answer = self.connection.getresponse()
            answer.read()
            return answer.status
        except (OSError, http.client.HTTPException):
            self.connection = None
            return None

    def act(self, kind, expected, id, path=PATH, **payload):
        body = {"type": kind, "payload": {"path": path, **payload}, "expect": [{"path": PATH, **expected}], "id": id}
        return self.ask("POST", "/v1/actions", json.dumps(body), {"Content-Type": "application/json"})

    def run(self):
        try:
            while not self.finished.is_set():
                self.contend()
        except Exception as error:  # The test reports it.
            self.faults.append(f"{self.name}: {error!r}")

    def contend(self):
        self.tenures += 1
        tenure = f"{self.name}.{self.tenures}"
        sent = time.monotonic()
        status = self.act("document/set", {"absent": True}, f"{tenure}/take", value=f"{tenure}/0", ttl=LEASE)
        if status == 200:
            self.counts["taken"] += 1
            self.hold(tenure, sent)
        elif status == 412:
            status = self.ask("GET", f"/v1/state{PATH}?wait=5", fields={"If-None-Match": "*"})
            expect(status in (404, 304, None), f"a wait was answered with {status}")
            # Processes of the shell are slower than threads, and get the lock, too.
            self.finished.wait(self.chance.uniform(0, 0.4))
        else:
            expect(status in (503, None), f"taking the lock was answered with {status}")
            self.finished.wait(0.05)

    def hold(self, tenure, sent):
        begun, end, step = time.monotonic(), sent + LEASE, 0
        while True:
            # Some sleep for longer than their lease.
            self.finished.wait(LEASE * self.chance.choice([0.02, 0.1, 0.3, 0.6, 1.15]))
            mine = {"value": f"{tenure}/{step}"}
            kind = self.chance.random()
            sent = time.monotonic()
            if kind < 0.3:
                self.counts["died"] += 1
                return self.holds.append((begun, end, tenure))
            if kind < 0.5:
                done, status = "worked", self.act("document/increment", mine, f"{tenure}/work", path="/work")
            elif kind < 0.75:
                done = "renewed"
                status = self.act(
                    "document/set", mine, f"{tenure}/renew", value=f"{tenure}/{step + 1}", ttl=LEASE)
            else:
                done, status = "given back", self.act("document/remove", mine, f"{tenure}/release")
            if status == 200:
                self.counts[done] += 1
                if done == "renewed":
                    step, end = step + 1, sent + LEASE
                elif done == "given back":
                    return self.holds.append((begun, min(end, sent), tenure))
                continue
            if status == 412:
                expect(time.monotonic() >= end, f"LOST: {tenure} was {done} in its lease, and refused")
                self.counts["too late"] += 1
            else:
                expect(status in (503, None), f"{tenure} was answered with {status}")
                self.counts["unanswered"] += 1
            # Who does not know what it has holds nothing from then on.
            return self.holds.append((begun, min(end, sent), tenure))


def contend(port, count, finished, seed):
    """Many contenders in one process: what they have held, and how often each thing has happened."""
    done = threading.Event()
    contenders = [Contender(port, f"h{number}", done, seed) for number in range(count)]
    for contender in contenders:
        contender.start()
    finished.wait()
    done.set()
    for contender in contenders:
        contender.join(30)
    counts = {kind: sum(contender.counts[kind] for contender in contenders) for kind in contenders[0].counts}
    holds, faults = ([one for each in contenders for one in getattr(each, part)] for part in ("holds", "faults"))
    return holds, counts, faults


def shell_loop(port):
    """A contender in Bash, of the commands that the guide prints to take the lock, to renew it and to wait.

    Its name is `$0`.
    """
    block = next(text for _, text in blocks("Guides/Time.md", "sh") if '"path":"/lock"' in text)
    act, take, _, renew, wait, _ = block.replace("localhost:8080", f"localhost:{port}").splitlines()
    expect("absent" in take and '"value":"ann"}' in renew and "wait=" in wait and f'"ttl":{LEASE}' in take, block)
    give = re.sub(r'document/set(.*),"value":"ann","ttl":1\}', r'document/remove\1}', renew)
    expect('"type":"document/remove","payload":{"path":"/lock"},"expect":[{"path":"/lock","value":"ann"}]' in give, give)
    mine = lambda command: command.replace('"ann"', "\"'$me'\"")
    return f"""
{act}
while :; do
    number=$((number + 1)); me=$0.$number
    case $({mine(take)}) in
        200)
            sleep 0.$((RANDOM % 9))
            {mine(renew)}
            sleep 0.$((RANDOM % 9))
            [ $((RANDOM % 2)) = 0 ] || {mine(give)}
            ;;
        412) {wait} ;;
        *) sleep 0.1 ;;
    esac
done
"""


class Stalls(threading.Thread):
    """Times at which this process, and so the machine, has stood still, as a list of begin and end."""

    def __init__(self):
        super().__init__(daemon=True)
        self.intervals, self.ended = [], threading.Event()

    def run(self):
        while not self.ended.is_set():
            begun = time.time()
            self.ended.wait(0.02)
            if time.time() - begun > 0.05:
                self.intervals.append((begun, time.time()))


def shared(intervals, begin, end):
    """How many seconds of the intervals lie between two times."""
    return sum(max(0, min(end, last) - max(begin, first)) for first, last in intervals)


def judge_holds(holds):
    """No two contenders have known at one time that the lock is their own."""
    holds = sorted(holds)
    for (_, end, one), (begin, _, other) in zip(holds, holds[1:]):
        expect(begin >= end, f"DOUBLED: {other} had the lock {end - begin:.3f} s before the lease of {one} was over")


def judge_lock(commits, pauses):
    """Between two holders there is a removal, and it is not early; nobody acts under a lock that another one has.

    `pauses` are times in which there was no server, or the machine stood still. Returns how many seconds each removal
    came behind the end of a lease, and how many the lock was free, without the pauses.
    """
    holder, over, freed, late, free = None, 0, None, [], []
    for commit in commits:
        action, version, now = commit["action"], commit["version"], milliseconds(commit["time"]) / 1000
        kind, place = action["type"], action["payload"]["path"]
        name = action.get("id", "").partition("/")[0]
        if place != PATH:
            expect_equal(name, holder, f"DOUBLED: the holder at version {version}, where one acts under the lock,")
        elif kind == "document/set":
            tenure = action["payload"]["value"].partition("/")[0]
            if holder is None:
                expect_equal([step["op"] for step in commit["patch"]], ["add"], f"the patch of version {version}")
                if freed is not None:
                    free.append(now - freed - shared(pauses, freed, now))
            else:
                expect_equal(tenure, holder, f"DOUBLED: the holder at version {version}")
            holder, over = tenure, now + LEASE
        else:
            expect_equal((kind, holder is not None), ("document/remove", True), f"a removal at version {version}")
            if "cause" in commit:
                expect(now >= over - 0.001, f"EARLY: version {version} removes it {over - now:.3f} s before its end")
                late.append(now - over)
                freed = over
            else:
                expect(name in ("", holder), f"DOUBLED: {name} gives back at version {version} what {holder} has")
                freed = now
            holder = None
    return late, free
