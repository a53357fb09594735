"""A register that clients compare and set through any server, and the sequential model that judges their notes."""

import bisect
import collections
import random
import threading
import time

from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until
from harness.followers import read_history
from harness.messages import version_of

TASK = 0
PLACE = f"/tasks/entities/{TASK}/title"

# What became of an attempt to set the register: a version where it was set, what was found where it was not, neither where
# that is not known.
Set = collections.namedtuple("Set", "expected value version found begun ended")
Read = collections.namedtuple("Read", "at_least version value")


def begin_register(client):
    """Makes the register, and returns the cursor from which it is there."""
    return client.commit(action("tasks/add", {"id": TASK, "title": "begun"}, id="begun"))["cursor"]


class RegisterClient(threading.Thread):
    """Reads and sets the register through any server; by turns with an idempotency key, and then until it is answered."""

    def __init__(self, nodes, name, cursor, seed, finished):
        super().__init__(daemon=True)
        self.nodes, self.name_, self.cursor = nodes, name, cursor
        self.chance = random.Random(f"{seed}/register/{name}")
        self.finished, self.failure = finished, None
        self.sets, self.reads = [], []

    def run(self):
        try:
            number = 0
            while not self.finished.is_set():
                value = self.read()
                # Now and then one that others may have replaced long ago.
                self.set(value if self.chance.random() < 0.9 or not self.reads else self.reads[0].value, number)
                number += 1
        except BaseException as error:  # The test reports it.
            self.failure = error

    def read(self):
        """The value at a server that has what this client has seen."""
        at_least = self.cursor

        def answered():
            answer = self.nodes.asked(self.chance, lambda client: client.get(f"/v1/state{PLACE}?at-least={at_least}&wait=5"))
            # Where the server is behind, another one is asked.
            expect(answer is None or answer.status in (200, 409, 503), "a reader was answered", answer)
            return answer if answer and answer.status == 200 else None

        answer = wait_until(answered, f"{self.name_} reads what it has seen", 140, pause=0.02)
        self.reads.append(Read(version_of(at_least), answer.version, answer.json))
        self.cursor = answer.cursor
        return answer.json

    def set(self, expected, number):
        value = f"register-{self.name_}-{number}"
        body = action("tasks/rename", {"id": TASK, "title": value}, id=value, expect=[{"path": PLACE, "value": expected}])
        fields = {"Idempotency_Key": f'"{value}"'} if number % 2 else {}
        begun, version, found = time.monotonic(), None, None

        def is_over():
            nonlocal version, found
            answer = self.nodes.asked(self.chance, lambda client: client.post(body, **fields))
            if answer and answer.status == 200:
                version, self.cursor = answer.json["version"], answer.json["cursor"]
            elif answer and answer.status == 412:
                found, self.cursor = answer.json["actual"], answer.cursor
            else:
                expect(answer is None or answer.status == 503, "a client was answered", answer)
            return version is not None or found is not None or not fields

        wait_until(is_over, f"{value} is answered", 60, pause=0.05)
        self.sets.append(Set(expected, value, version, found, begun, time.monotonic()))


def recorded_sets(client):
    """The versions at which the register was set, and its values."""
    found = []
    for page in read_history(client, "oldest"):
        for change in page["changes"]:
            payload = change["action"].get("payload", {})
            if payload.get("id") == TASK and "title" in payload:
                found.append((change["version"], payload["title"]))
    return found


def judge_register(found, clients):
    """Judges the notes of clients by what is recorded.

    Returns the versions by value, the refusals by a state that was not the newest, and how much was judged.
    """
    versions, values = [version for version, _ in found], [value for _, value in found]
    recorded = dict(zip(values, versions))
    expect_equal(len(recorded), len(values), "the different values of as many commits")

    def value_at(version):
        return values[bisect.bisect_right(versions, version) - 1]

    sets = [each for client in clients for each in client.sets]
    reads = [each for client in clients for each in client.reads]
    for each in sets:
        if each.version:
            expect_equal(recorded.get(each.value), each.version, f"the version of {each.value}")
        if each.found:
            expect(each.found != each.expected, f"{each.value} was refused although {each.found} was there")
        if each.value in recorded:
            expect_equal(value_at(recorded[each.value] - 1), each.expected, f"what {each.value} has replaced")
    for each in reads:
        expect(each.version >= each.at_least, f"a read has version {each.version}, not {each.at_least}")
        expect_equal(each.value, value_at(each.version), f"what a read has found at version {each.version}")
    # What was found in place of the expected value was there while the attempt lasted.
    known, late = Times((each.begun, each.ended, each.version) for each in sets if each.version), []
    for each in sets:
        if each.found:
            expect(each.found in recorded, f"{each.value} found {each.found}, which is not recorded")
            index = versions.index(recorded[each.found])
            replaced = versions[index + 1] if index + 1 < len(versions) else float("inf")
            expect(versions[index] < known.oldest_after(each.ended), f"{each.value} found {each.found} before it was there")
            if replaced <= known.newest_before(each.begun):
                late.append(f"{each.value} found {each.found}, which was replaced")
            if each.value in recorded:
                late.append(f"{each.value} was refused and is recorded")
    return recorded, late, f"{len(values)} sets, {sum(bool(each.found) for each in sets)} refused, {len(reads)} reads"


class Times:
    """Acknowledged actions by when they began and ended, and what they say about the versions at a moment."""

    def __init__(self, actions):
        self.actions = list(actions)
        self.ends, self.newest = [], []
        for _, ended, version in sorted(self.actions, key=lambda each: each[1]):
            self.ends.append(ended)
            self.newest.append(max(version, self.newest[-1] if self.newest else 0))
        self.begins, self.oldest = [], []
        for begun, _, version in sorted(self.actions, reverse=True):
            self.begins.append(-begun)
            self.oldest.append(min(version, self.oldest[-1] if self.oldest else version))

    def newest_before(self, moment):
        """The newest version of an action that has ended before."""
        index = bisect.bisect_left(self.ends, moment)
        return self.newest[index - 1] if index else 0

    def oldest_after(self, moment):
        """The oldest version of an action that began after it."""
        index = bisect.bisect_left(self.begins, -moment)
        return self.oldest[index - 1] if index else float("inf")

    def judge(self):
        """An action that ended before another one began has the smaller version."""
        for begun, _, version in self.actions:
            newest = self.newest_before(begun)
            expect(newest < version, f"version {version} was given to an action that began after version {newest} had ended")
