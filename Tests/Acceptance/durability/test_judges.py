"""The judges of scheduled actions and of locks find what is wrong."""

import pytest

from harness.expectations import Failure, passes
from harness.locks import judge_holds, judge_lock
from harness.schedules import judge


def at(seconds):
    return f"2030-01-01T00:00:{seconds:06.3f}Z"


def history(*actions):
    """Commits of a time, an action, and for a scheduled one its cause."""
    return [
        {"version": version, "cursor": f"e.{version}", "time": at(time), "action": action, "patch": [{"op": "add"}], **more}
        for version, (time, action, more) in enumerate(actions, 1)
    ]


def later(time, name, after):
    payload = {"action": {"payload": {"path": name}}, "after": after, "name": name}
    return time, {"type": "storekeeper/schedule", "payload": payload}, {}


def fired(time, name):
    return time, {"type": "document/increment", "payload": {"path": name}}, {"cause": "e.1"}


def taken_back(time, name):
    return time, {"type": "storekeeper/unschedule", "payload": {"name": name}}, {}


@pytest.mark.parametrize("commits, is_good", [
    ([later(0, "a", 2), later(0, "b", 1), fired(1, "b"), fired(2.5, "a")], True),
    ([later(0, "a", 2), later(0, "b", 1), fired(3, "a"), fired(3, "b")], False),
    ([later(0, "a", 1), later(0, "b", 1), fired(3, "b"), fired(3, "a")], False),
    ([later(0, "a", 1), later(0, "b", 1), fired(3, "a"), fired(3, "b")], True),
    ([later(0, "a", 1), fired(1, "a"), fired(1, "a")], False),
    ([later(0, "a", 1), fired(0.9, "a")], False),
    ([later(0, "a", 1), taken_back(0.5, "a"), fired(1, "a")], False),
    ([later(0, "a", 1), fired(1, "a"), taken_back(1, "a")], False),
    ([later(0, "a", 1), later(0, "a", 3), fired(1, "a")], False),
    ([later(0, "a", 1), later(0, "a", 3), fired(3, "a")], True),
])
def test_the_judge_of_scheduled_actions(commits, is_good):
    assert bool(passes(judge, history(*commits))) == is_good


def took(time, holder):
    return time, {"type": "document/set", "payload": {"path": "/lock", "value": f"{holder}/0"}}, {}


def gave(time, holder):
    return time, {"type": "document/remove", "payload": {"path": "/lock"}, "id": f"{holder}/release"}, {}


def worked(time, holder):
    return time, {"type": "document/increment", "payload": {"path": "/work"}, "id": f"{holder}/work"}, {}


def expired(time):
    return time, {"type": "document/remove", "payload": {"path": "/lock"}}, {"cause": "e.1"}


@pytest.mark.parametrize("commits, is_good", [
    ([took(0, "a"), worked(0, "a"), took(0.9, "a"), expired(1.9), took(2, "b"), gave(2.1, "b")], True),
    ([took(0, "a"), took(0.5, "b")], False),
    ([took(0, "a"), gave(0.5, "b")], False),
    ([took(0, "a"), expired(0.9)], False),
    ([took(0, "a"), took(0.5, "a"), expired(1)], False),
    ([took(0, "a"), expired(1), worked(1, "a")], False),
    ([took(0, "a"), expired(1), expired(2)], False),
])
def test_the_judge_of_a_lock(commits, is_good):
    assert bool(passes(judge_lock, history(*commits), [])) == is_good


def test_the_judge_of_a_lock_counts_from_the_end_of_the_lease_without_pauses():
    begin = 1_893_456_000
    commits = history(took(0, "a"), expired(3), took(4, "b"))
    assert judge_lock(commits, [])[1] == [3]
    assert judge_lock(commits, [(begin + 1.5, begin + 3.5)])[1] == [1]


def test_holds_do_not_overlap():
    judge_holds([(2, 3, "b"), (0, 2, "a")])
    with pytest.raises(Failure):
        judge_holds([(1.9, 3, "b"), (0, 2, "a")])
