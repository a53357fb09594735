"""Damage to the files of a data directory: never silently wrong, never lost, never doubled."""

import collections
import os
import random
import shutil

import pytest

from harness.actions import action
from harness.damages import Truth, damage, judge_start, write_history
from harness.expectations import Failure, expect

# Snapshots come often, so that damage before and behind them is met: the least that the setting allows.
SETTINGS = {"journal_bytes_max": 1 << 20}


@pytest.fixture
def originals(workspace):
    """Directories of servers that ended in several ways, each with an earlier copy of it and what it had committed."""
    chance = random.Random(workspace.seed)
    initial = workspace.empty_state()
    return [
        make_original(workspace, chance, initial, *kind)
        for kind in [("kill", 30, 0), ("kill", 200, 30), ("stop", 60, 0), ("restarts", 120, 20)]
    ]


def make_original(workspace, chance, initial, end, count, large):
    server = workspace.server(**SETTINGS)
    keys = {}
    with server.client() as client:
        write_history(client, chance, count // 2, keys)
    if end == "restarts":
        server.restart()
    if end != "kill":
        server.stop()
        server.start()
    older = server.data + ".older"
    shutil.copytree(server.data, older)
    with server.client() as client:
        for number in range(large):
            # Bytes make a snapshot due.
            client.commit(large_note(number))
        write_history(client, chance, count - count // 2, keys)
        truth = Truth(client, initial)
    truth.keys = keys
    if end == "stop":
        server.stop()
    else:
        server.kill()
    return server.data, older, truth


def large_note(number):
    return action("counter/add", {"amount": 1}, meta={"note": f"{number} " + "n" * 20_000})


@pytest.mark.rounds(60, long=4000)
@pytest.mark.seconds(long=1800)
def test_a_damaged_file_is_met_with_a_whole_state_a_sentence_or_a_new_epoch(workspace, originals, rounds, figures):
    """Flipped bits, zero pages, cuts, deletions and older files, anywhere in the data directory."""
    outcomes = collections.Counter()
    for number in range(rounds):
        chance = random.Random(f"{workspace.seed}/{number}")
        source, older, truth = chance.choice(originals)
        directory = workspace.path(f"round{number}")
        shutil.copytree(source, directory)
        what = damage(directory, chance, older)
        try:
            outcomes[judge_start(workspace, directory, truth, SETTINGS)] += 1
        except Failure as failure:
            raise Failure(f"round {number}, {os.path.basename(source)}, {what}: {failure}") from None
        shutil.rmtree(directory)
    expect(outcomes["refused"] > rounds // 10, "hardly any damage was met:", outcomes)
    expect(outcomes["whole"] > 0, "nothing was whole:", outcomes)
    figures(", ".join(f"{count} {name}" for name, count in outcomes.most_common()))


def test_the_judge_of_damage_sees_a_lost_end_a_doubled_key_and_a_wrong_state(workspace, originals):
    """A directory that was set back as a whole, which no server can see, stands for one that loses commits."""
    source, older, truth = originals[0]
    expect_failure(workspace, older, truth, "LOST")

    forgotten = max(truth.keys.items(), key=lambda item: item[1][1])
    truth.keys[forgotten[0]] = (forgotten[1][0], forgotten[1][1] - 1)
    expect_failure(workspace, source, truth, "DOUBLED")
    truth.keys[forgotten[0]] = forgotten[1]

    truth.states[truth.version] = truth.states[0]
    expect_failure(workspace, source, truth, "the state")


def expect_failure(workspace, source, truth, words):
    directory = workspace.path(f"judged{workspace.count()}")
    shutil.copytree(source, directory)
    truth.keys = dict(sorted(truth.keys.items(), key=lambda item: -item[1][1])[:8])
    try:
        outcome = judge_start(workspace, directory, truth, SETTINGS)
    except Failure as failure:
        expect(words in str(failure), f"the judge fails, but not for {words!r}:", failure)
        return
    raise Failure(f"the judge takes it for {outcome}: {words}")
