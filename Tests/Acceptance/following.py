"""Clients that follow: every change in order, or always the latest value. And the judges of what they have seen."""

import copy
import json
import time

from harness import Client, ConnectionLost, Failure, expect, expect_equal, version_of


def apply_patch(state, patch):
    """Applies an RFC 6902 patch to a document in place and returns it."""
    for operation in patch:
        kind, path = operation["op"], operation["path"]
        if kind in ("move", "copy"):
            value = copy.deepcopy(_at(state, operation["from"]))
            if kind == "move":
                state = _remove(state, operation["from"])
            state = _add(state, path, value)
        elif kind == "add":
            state = _add(state, path, copy.deepcopy(operation["value"]))
        elif kind == "remove":
            state = _remove(state, path)
        elif kind == "replace":
            _at(state, path)  # it has to be there
            if path == "":
                state = copy.deepcopy(operation["value"])
            else:
                parent, key = _parent(state, path)
                parent[key] = copy.deepcopy(operation["value"])
        elif kind == "test":
            expect_equal(_at(state, path), operation["value"], f"the patch's test of {path}")
        else:
            raise Failure(f"a patch with the operation {kind}")
    return state


def _tokens(path):
    expect(path == "" or path[0] == "/", f"{path} is not a JSON Pointer")
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]


def _step(value, token):
    return value[int(token)] if isinstance(value, list) else value[token]


def _at(state, path):
    for token in _tokens(path):
        state = _step(state, token)
    return state


def _parent(state, path):
    tokens = _tokens(path)
    for token in tokens[:-1]:
        state = _step(state, token)
    return state, int(tokens[-1]) if isinstance(state, list) and tokens[-1] != "-" else tokens[-1]


def _add(state, path, value):
    if path == "":
        return value
    parent, key = _parent(state, path)
    if isinstance(parent, list):
        position = len(parent) if key == "-" else key
        expect(0 <= position <= len(parent), f"a patch adds at {path}, beyond the end")
        parent.insert(position, value)
    else:
        parent[key] = value
    return state


def _remove(state, path):
    parent, key = _parent(state, path)
    del parent[key]
    return state


class Record:
    """What a follower has seen, judged as it comes: versions one after another, patches that lead to one state."""

    def __init__(self, state, cursor):
        self.state = state
        self.start = self.version = version_of(cursor)
        self.epoch = cursor.rpartition(".")[0]
        self.seen = []

    def take(self, page):
        """Takes an answer of /v1/changes."""
        for change in page["changes"]:
            expect_equal(change["version"], self.version + 1, "the next version that a follower sees")
            expect_equal(change["cursor"], f"{self.epoch}.{change['version']}", "the cursor of a change")
            self.state = apply_patch(self.state, change["patch"])
            self.version = change["version"]
            self.seen.append((change["id"], change["action"]))
        expect_equal(page["next"], f"{self.epoch}.{self.version}", "next, after an unfiltered page,")

    def by_version(self):
        return {self.start + 1 + index: item for index, item in enumerate(self.seen)}


def follow(port, state, cursor, target, limit, seconds):
    """Follows /v1/changes until `target`, a shared number, is known and reached; reconnects with its cursor.

    Returns the record, and how often the connection was lost.
    """
    record = Record(state, cursor)
    losses = 0
    client = None
    end = time.monotonic() + seconds
    while not 0 <= target.value <= record.version:
        expect(time.monotonic() < end, f"a follower stands at {record.version}, not at {target.value}")
        try:
            client = client or Client(port.value)
            answer = client.get(f"/v1/changes?since={record.epoch}.{record.version}&wait=2&limit={limit}")
        except ConnectionLost:
            losses += client is not None
            client = None
            time.sleep(0.01)
            continue
        expect(answer.status == 200, "a follower was answered", answer)
        page = answer.json
        expect(len(page["changes"]) <= limit, f"{len(page['changes'])} changes, asked for {limit}")
        record.take(page)
        if answer.closes:
            client = None
    return record, losses


class Poller:
    """Judges what a long-poller is answered: nothing that it has already, nothing before its time."""

    def __init__(self, path, wait):
        self.target = f"/v1/state{path}?wait={wait}"
        # The server shortens a wait by up to a sixteenth.
        self.earliest = wait * 15 / 16 - 0.05
        self.tag = None
        self.value = None
        self.version = -1
        self.changes = self.timeouts = 0

    def poll(self, client):
        start = time.monotonic()
        answer = client.get(self.target, **({"If_None_Match": self.tag} if self.tag else {}))
        self.take(answer, time.monotonic() - start)
        return answer

    def take(self, answer, seconds):
        if answer.status == 304:
            expect(seconds >= self.earliest, f"a poller was woken for nothing: 304 after {seconds:.3f} s")
            self.timeouts += 1
        else:
            expect(answer.status == 200, "a poller was answered", answer)
            tag = answer.fields["etag"]
            expect(tag != self.tag, f"a poller was woken for nothing: 200 with {tag}, which it has")
            value = answer.json
            expect(value != self.value, f"a poller was woken for nothing: another tag for the same {value}")
            self.tag, self.value = tag, value
            self.changes += 1
        expect(answer.version >= self.version, f"State-Cursor went back from {self.version} to {answer.version}")
        self.version = answer.version


def poll(port, path, finished, seconds):
    """Long-polls until `finished` is set and the value has settled; returns the poller and how often it was cut off."""
    poller = Poller(path, wait=1)
    losses = 0
    client = None
    end = time.monotonic() + seconds
    while True:
        expect(time.monotonic() < end, f"a poller was not done within {seconds} s")
        was_finished = finished.is_set()
        try:
            client = client or Client(port.value)
            answer = poller.poll(client)
        except ConnectionLost:
            losses += client is not None
            client = None
            time.sleep(0.01)
            continue
        if answer.closes:
            client = None
        if was_finished and answer.status == 304:
            return poller, losses


def read_history(client, since, limit=1000):
    """Every change after a cursor, by plain requests, as pages."""
    while True:
        answer = client.get(f"/v1/changes?since={since}&limit={limit}")
        expect(answer.status == 200, "the history was answered", answer)
        page = answer.json
        yield page
        if not page["more"]:
            return
        since = page["next"]


def judge_history(client, state, cursor):
    """Reads everything after a cursor, and compares where it leads with the server's state. Returns the record."""
    record = Record(copy.deepcopy(state), cursor)
    for page in read_history(client, cursor):
        record.take(page)
    now = client.get("/v1/state")
    expect_equal(now.version, record.version, "the version of the state after the whole history")
    expect_equal(record.state, now.json, "the state that the patches lead to")
    # As text too: the order of keys is part of the ETag.
    expect_equal(json.dumps(record.state["counter"]), json.dumps(now.json["counter"]), "the counter as text")
    return record
