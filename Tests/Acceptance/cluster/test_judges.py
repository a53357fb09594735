"""The judges of a cluster's history see what they are there for."""

import types

import pytest

from harness.expectations import Failure, passes
from harness.recorded import Note, judge
from harness.register import Read, Set, Times, judge_register

FOUND = [(1, "begun"), (4, "a"), (7, "b")]
A, B = Set("begun", "a", 4, None, 1, 2), Set("a", "b", 7, None, 3, 4)


def judged(*sets, reads=()):
    found = passes(judge_register, FOUND, [types.SimpleNamespace(sets=list(sets), reads=list(reads))])
    return found and not found[1]


def test_a_register_that_is_set_and_read_in_order_passes():
    assert judged(A, B, reads=[Read(1, 3, "begun"), Read(4, 6, "a"), Read(7, 9, "b")])
    # One without an answer, recorded or not, and one that was refused while another value was there.
    assert judged(A._replace(version=None), B, Set("a", "c", None, None, 3, 4), Set("begun", "d", None, "a", 2.5, 3.5))


@pytest.mark.parametrize(
    "fault",
    [
        [A, B._replace(expected="begun")],
        [A, B._replace(version=6)],
        [A, B, Set("b", "c", 9, None, 5, 6)],
        [A, B._replace(version=None, found="c")],
        [A, B._replace(version=None, found="b")],
        [A, B, Set("begun", "d", None, "begun", 2.5, 3.5)],
        # What was found had been replaced before it began, or came after it had ended.
        [A, B, Set("b", "d", None, "a", 5, 6)],
        [A, B, Set("begun", "d", None, "b", 1, 2)],
    ],
)
def test_a_register_that_is_set_on_another_value_or_out_of_time_does_not(fault):
    assert not judged(*fault)


@pytest.mark.parametrize("read", [Read(4, 3, "begun"), Read(1, 4, "begun"), Read(1, 6, "b")])
def test_a_read_that_is_older_than_it_may_be_or_has_another_value_does_not(read):
    assert not judged(A, B, reads=[read])


def test_versions_against_the_order_of_time_are_seen():
    Times([(1, 2, 4), (3, 4, 7), (3, 5, 6)]).judge()
    with pytest.raises(Failure):
        Times([(1, 2, 7), (3, 4, 4)]).judge()


def test_an_action_that_is_lost_refused_or_unheard_of_is_seen_in_a_history():
    notes = [Note("a", 0, "acknowledged", 1, 0, 0, False), Note("b", 0, "unknown", None, 0, 0, False)]
    assert judge(notes, {1: "a", 2: "b"}) == 1
    assert judge(notes, {1: "a"}) == 0
    for recorded in ({}, {1: "b", 2: "a"}, {1: "a", 2: "c"}):
        with pytest.raises(Failure):
            judge([*notes, Note("c", 0, "refused", None, 0, 0, False)], recorded)
