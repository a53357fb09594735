"""Clients of a cluster that note what became of each action, and the judge of a history by their notes."""

import collections
import threading
import time

from harness.actions import add
from harness.client import ConnectionLost
from harness.expectations import Failure, expect, expect_equal, wait_until
from harness.followers import read_history

# An action without its number of the version has been refused; where that is not known, `outcome` is "unknown".
Note = collections.namedtuple("Note", "identifier server outcome version begun ended is_replayed")


class Poster(threading.Thread):
    """Posts actions to one server until `finished`, those with a key again and again until they are acknowledged."""

    def __init__(self, nodes, server, name, is_keyed, finished):
        super().__init__(daemon=True)
        self.nodes, self.server, self.name_, self.is_keyed, self.finished = nodes, server, name, is_keyed, finished
        self.notes, self.codes, self.failure = [], collections.Counter(), None
        self.client = None

    def run(self):
        try:
            number = 0
            while not self.finished.is_set():
                identifier = f"{self.name_}-{number}"
                number += 1
                wait_until(
                    lambda: self.post(identifier) or not self.is_keyed, f"{identifier} is acknowledged", 60, pause=0.02)
        except BaseException as error:  # The test reports it.
            self.failure = error

    def post(self, identifier):
        """Whether it is acknowledged."""
        begun = time.monotonic()
        fields = {"Idempotency_Key": f'"{identifier}"'} if self.is_keyed else {}
        version, is_replayed = None, False
        try:
            self.client = self.client or self.nodes.client(self.server, timeout=15)
            answer = self.client.post(add(1, id=identifier), **fields)
        except (ConnectionLost, Failure):
            self.client, outcome = None, "unknown"
        else:
            expect(answer.status in (200, 503), "a client was answered", answer)
            if answer.status == 200:
                outcome, version = "acknowledged", answer.json["version"]
                is_replayed = "idempotency-replayed" in answer.fields
            else:
                self.codes[answer.json["code"]] += 1
                outcome = "unknown" if answer.json["code"] == "outcome-unknown" else "refused"
                self.finished.wait(0.02)
        self.notes.append(
            Note(identifier, self.server, outcome, version, begun, time.monotonic(), is_replayed)
        )
        return outcome == "acknowledged"


def history(client):
    """The IDs of all commits by version; each version is there once, and in order."""
    found = {}
    for page in read_history(client, "oldest"):
        for change in page["changes"]:
            expect_equal(change["version"], len(found) + 1, "the next version")
            found[change["version"]] = change["id"]
    expect_equal(len(set(found.values())), len(found), "the different actions of as many commits")
    return found


def judge(notes, recorded):
    """Each acknowledged action is recorded once with its version, no refused one is, and no other but unknown ones are."""
    outcomes = collections.defaultdict(set)
    for note in notes:
        outcomes[note.identifier].add(note.outcome)
        if note.version:
            expect_equal(recorded.get(note.version), note.identifier, f"the action of version {note.version}")
    acknowledged = {note.version for note in notes if note.version}
    for version in recorded.keys() - acknowledged:
        expect("unknown" in outcomes[recorded[version]], f"{recorded[version]} is recorded: {outcomes[recorded[version]]}")
    return len(recorded.keys() - acknowledged)
