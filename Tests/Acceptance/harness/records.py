"""Judges of what followers and streams receive."""

from harness.expectations import Failure, expect, expect_equal
from harness.messages import version_of
from harness.patches import apply_patch


class Record:
    """What a follower has received, judged change by change: consecutive versions, patches that lead to one state."""

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


REASONS = {"cursor-lost", "cursor-expired", "slow-reader", "journal-damaged"}


class StreamRecord(Record):
    """What a stream of commits has sent, judged event by event."""

    def __init__(self, state, cursor, is_filtered=False):
        super().__init__(state, cursor)
        self.is_filtered = is_filtered
        self.resets = []
        self.is_reset = False

    @property
    def cursor(self):
        return f"{self.epoch}.{self.version}"

    def take_event(self, event):
        expect(not self.is_reset or event.name == "snapshot", f"{event.name} between a reset and its snapshot")
        if event.name == "change":
            self._take_change(event.id, event.json)
        elif event.name == "progress":
            expect(self.is_filtered, "progress on a stream that leaves nothing out:", event)
            expect_equal(event.data, "{}", "the data of progress")
            expect(event.version > self.version, f"progress from {self.version} to {event.id}")
            self.version = event.version
        elif event.name == "reset":
            expect(event.id is None and event.json["reason"] in REASONS, "a reset:", event)
            self.resets.append(event.json["reason"])
            self.is_reset = True
        elif event.name == "snapshot":
            expect(self.is_reset, "a snapshot without a reset")
            self._begin_again(event)
        else:
            raise Failure(f"an event of no known kind: {event}")
        return event

    def _take_change(self, identifier, change):
        expect_equal(identifier, change["cursor"], "the id of a change")
        if self.is_filtered:
            expect(change["version"] > self.version, f"version {change['version']} after {self.version}")
            self.version = change["version"]
            self.seen.append((change["id"], change["action"]))
        else:
            self.take({"changes": [change], "next": change["cursor"]})

    def _begin_again(self, snapshot):
        epoch, version = snapshot.id.rpartition(".")[0], snapshot.version
        if epoch == self.epoch:
            expect(version >= self.version, f"a snapshot of {version} after {self.version}")
        self.epoch, self.version, self.state, self.is_reset = epoch, version, snapshot.json, False
        self.seen.append(("snapshot", version))

    def take_all(self, events):
        for event in events:
            self.take_event(event)
        return self


class ValueRecord:
    """What a stream of a value has sent: a snapshot first, then only changes, each later than the one before.

    `truth` is a function from a version to the value at this version.
    """

    def __init__(self, truth):
        self.truth = truth
        self.version, self.value = -1, None
        self.count = 0

    def take_event(self, event):
        wanted = ("snapshot",) if self.count == 0 else ("change", "removed")
        expect(event.name in wanted, f"{event.name} as event {self.count} of a stream of a value")
        expect(event.version > self.version, f"version {event.version} after {self.version}")
        value = event.json
        expect(self.count == 0 or value != self.value, f"{value} came again at {event.id}")
        expect_equal(value, self.truth(event.version), f"the value at {event.id}")
        self.version, self.value = event.version, value
        self.count += 1
        return event

    def take_all(self, events):
        for event in events:
            self.take_event(event)
        return self


def counter_at(version):
    """The counter, where every commit has added one to it."""
    return {"value": version}
