"""Damage to the files of a data directory, at random, and the judge of what a server makes of it.

A server that starts on a damaged directory has three ways. Everything is as it was; or it says with a sentence what is
wrong, at the start or in the answer to the client that asks; or, where the operator has said so, it has a new epoch.
"""

import copy
import hashlib
import json
import os
import shutil

from harness.actions import action, add
from harness.expectations import expect, expect_equal, wait_until
from harness.patches import apply_patch
from harness.server import Server

JOURNAL = "journal.sqlite"


class Truth:
    """What a server had committed before the damage: each state and each action, by version."""

    def __init__(self, client, initial):
        first = client.get("/v1").json
        self.epoch, self.states, self.changes = first["epoch"], {0: initial}, {}
        # What was posted with each key, and the version that it made.
        self.keys = {}
        since = 0
        while since < first["version"]:
            for change in client.get(f"/v1/changes?since={self.epoch}.{since}&limit=1000").json["changes"]:
                since = change["version"]
                self.changes[since] = (change["id"], change["action"], change["patch"])
                self.states[since] = apply_patch(copy.deepcopy(self.states[since - 1]), change["patch"])
        self.version = since


def write_history(client, chance, count, keys):
    """Commits actions of several kinds, each with an ID, and some with a key, which it notes."""
    for number in range(count):
        kind = chance.random()
        identifier = f"h{len(keys)}-{number}-{chance.randrange(1 << 30)}"
        if kind < 0.5:
            body = add(chance.randint(1, 9), id=identifier)
        elif kind < 0.8:
            task = {"id": chance.randrange(1 << 30), "title": "t" * chance.randint(1, 300)}
            body = action("tasks/add", task, id=identifier)
        else:
            body = action("counter/add", {"amount": 1}, meta={"note": "n" * chance.randint(1, 2000)}, id=identifier)
        if kind < 0.3:
            receipt = client.commit(body, Idempotency_Key=identifier)
            keys[identifier] = (body, receipt["version"])
        else:
            client.commit(body)


class Damage:
    """One way to damage a directory; each says what it has done."""

    @staticmethod
    def flip(path, chance):
        """Flips a few bits."""
        count = chance.choice([1, 1, 1, 3, 20])
        with open(path, "r+b") as file:
            size = os.path.getsize(path)
            for _ in range(count if size else 0):
                place = chance.randrange(size)
                file.seek(place)
                [byte] = file.read(1)
                file.seek(place)
                file.write(bytes([byte ^ 1 << chance.randrange(8)]))
        return f"{count} bits flipped"

    @staticmethod
    def zero(path, chance):
        """Makes a page zero."""
        size = os.path.getsize(path)
        place = chance.randrange(size // 4096 + 1) * 4096
        with open(path, "r+b") as file:
            file.seek(place)
            file.write(bytes(min(4096, size - place)))
        return f"a page at {place} zero"

    @staticmethod
    def truncate(path, chance):
        size = chance.choice([0, chance.randrange(os.path.getsize(path) + 1)])
        os.truncate(path, size)
        return f"cut to {size} bytes"

    @staticmethod
    def delete(path, _):
        os.remove(path)
        return "deleted"


def damage(directory, chance, older=None):
    """Damages one file of a directory; `older` is a directory with earlier contents of the same files."""
    names = sorted(name for name in os.listdir(directory) if os.path.getsize(os.path.join(directory, name)) > 0)
    # Most of the damage goes where most of the truth is.
    weights = [1 if name.endswith("-shm") else 6 for name in names]
    name = chance.choices(names + ["lock"], [*weights, 1])[0]
    path = os.path.join(directory, name)
    kinds = [Damage.flip] * 4 + [Damage.zero, Damage.truncate, Damage.delete] if name != "lock" else [Damage.delete]
    if older and name in ("fence", JOURNAL) and os.path.exists(os.path.join(older, name)) and chance.random() < 0.2:
        shutil.copy(os.path.join(older, name), path)
        if name == JOURNAL and os.path.exists(path + "-wal"):
            os.remove(path + "-wal")
        return f"{name}: replaced by an older one"
    return f"{name}: {chance.choice(kinds)(path, chance)}"


def digests(directory):
    """The contents of the files that hold the truth, by name; a reader of SQLite may leave an empty WAL."""
    found = {}
    for name in os.listdir(directory):
        if name.endswith("-wal") and os.path.getsize(os.path.join(directory, name)) == 0:
            continue
        if not name.endswith("-shm") and name not in ("lock", "draft.sqlite"):
            with open(os.path.join(directory, name), "rb") as file:
                found[name] = hashlib.sha256(file.read()).hexdigest()
    return found


SENTENCES = ("journal", "fence")


def judge_start(workspace, directory, truth, settings):
    """Starts a server on a directory that may be damaged; returns how it went on, or fails.

    It leaves the directory with a journal that has one more commit.
    """
    before = digests(directory)
    server = Server(workspace, directory, settings).launch()
    if is_running(server):
        with server.client() as client:
            outcome = judge_whole(client, truth)
        server.kill()
        return outcome
    judge_refusal(server, before)
    server.arguments = ["--accept-loss"]
    server.start()
    with server.client() as client:
        version = judge_new_epoch(client, truth, server)
    kept = set(digests(directory).values())
    for name, digest in before.items():
        # The server writes both of them anew: `reducing` names the action that it is reducing.
        expect(name in ("fence", "reducing") or digest in kept, f"{name}, which was refused, is not kept")
    server.kill()
    # The operator's word counts once.
    server.arguments = []
    server.start()
    with server.client() as client:
        expect_equal(client.get("/v1").json["version"], version, "the version after another start")
    server.kill()
    return "refused"


def is_running(server):
    """Waits until the server is ready, or has ended."""
    wait_until(lambda: server.ready() or server.process.poll() is not None, "the server is ready or has refused", 30)
    return server.process.poll() is None


def judge_refusal(server, before):
    text = server.log_text()
    expect(server.process.returncode == 65, f"the server ended with {server.process.returncode}:", text)
    expect("Fatal error" not in text, "it crashed:", text)
    last = text.strip().splitlines()[-1]
    expect(any(word in last for word in SENTENCES), "no sentence about the journal:", text)
    expect(server.data in last and "--accept-loss" in last, "the sentence names no file or no way to go on:", last)
    expect_equal(digests(server.data), before, f"the files after a refusal ({last})")


def judge_whole(client, truth):
    """The same epoch: everything that was acknowledged is there, or the answer says that it cannot be read."""
    here = client.get("/v1").json
    expect_equal(here["epoch"], truth.epoch, "the epoch, without the operator's word")
    version = here["version"]
    expect(version >= truth.version, f"LOST: version {truth.version} was acknowledged, {version} is there")
    expect_equal(version, truth.version, "the version")
    state = client.get("/v1/state")
    expect_equal(state.json, truth.states[truth.version], "the state")
    problems = judge_history(client, truth, 0, truth.version, truth.epoch)
    for version in sorted(truth.states)[:: max(1, len(truth.states) // 5)]:
        answer = client.get(f"/v1/state?version={version}")
        if not is_problem(answer, problems):
            expect_equal(answer.json, truth.states[version], f"the state at version {version}")
    for key, (body, version) in list(truth.keys.items())[:: max(1, len(truth.keys) // 8)]:
        again = client.commit(body, Idempotency_Key=key)
        expect_equal(again["version"], version, f"DOUBLED: the version of the retry with key {key}")
    expect_equal(client.commit(add(1))["version"], truth.version + 1, "the next version")
    return "whole" if not problems else "read refused"


def judge_history(client, truth, start, end, epoch):
    """Every commit from one version to another is what it was, or is refused with a problem. Returns the problems."""
    problems = []
    since = start
    while since < end:
        answer = client.get(f"/v1/changes?since={epoch}.{since}&limit=64")
        if is_problem(answer, problems):
            since += 1
            continue
        page = answer.json
        expect(page["changes"] or not page["more"], "an empty page before the end:", page)
        for change in page["changes"]:
            since += 1
            expect_equal(change["version"], since, "the next version in the history")
            identifier, what, patch = truth.changes[since]
            expect_equal((change["action"], change["patch"]), (what, patch), f"the commit of version {since}")
            if identifier != f"{truth.epoch}.{since}":
                expect_equal(change["id"], identifier, f"the ID of version {since}")
        expect(since == int(page["next"].rpartition(".")[2]), "next after", since, page["next"])
    return problems


def is_problem(answer, problems):
    """Notes a problem that says that the journal is damaged; fails for any other answer that is not 200."""
    if answer.status == 200:
        return False
    expect_equal(answer.fields.get("content-type"), "application/problem+json", "the media type")
    expect_equal((answer.status, answer.json["code"]), (500, "journal-damaged"), "status and code")
    problems.append(answer.json)
    return True


def judge_new_epoch(client, truth, server):
    """A new epoch, which goes on from a state that was, and has no commit that was not. Returns the newest version."""
    here = client.get("/v1").json
    expect(here["epoch"] != truth.epoch, "the epoch is the old one, although something is lost")
    version = here["version"]
    expect(version in truth.states, f"it goes on from version {version}, which never was")
    expect_equal(client.get("/v1/state").json, truth.states[version], "the state that it goes on from")
    lost = client.get(f"/v1/changes?since={truth.epoch}.0")
    expect_equal((lost.status, lost.json["code"]), (410, "cursor-lost"), "what a cursor of the old epoch gets")
    oldest = client.get("/v1/changes?since=oldest&limit=1").json
    if oldest["changes"]:
        start = oldest["changes"][0]["version"] - 1
        expect_equal(judge_history(client, truth, start, version, here["epoch"]), [], "problems in the new history")
    # A thread of its own writes the log.
    wait_until(lambda: losses(server), "the log says what is lost", 10)
    said = losses(server)
    expect(len(said) == 1 and "reason" in said[0], "the log does not say what is lost:", server.log_text())
    expect_equal(client.commit(add(1))["version"], version + 1, "the next version")
    return version + 1


def losses(server):
    """The lines in the log about a loss that the operator has accepted; a line whose end is not there yet is none."""
    with open(server.log) as log:
        return [json.loads(line) for line in log if '"loss accepted"' in line and line.endswith("\n")]
