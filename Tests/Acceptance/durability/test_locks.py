"""A lock with a lease as the guide has it: many contenders never come back, and the server is killed."""

import os
import random
import signal
import subprocess
import time

import pytest

from harness.expectations import expect, expect_equal
from harness.forms import of_a_night
from harness.locks import Stalls, contend, judge_holds, judge_lock, shell_loop
from harness.many_schedules import pages
from harness.programs import free_port
from harness.schedules import DOCUMENT
from harness.worker import processes


@pytest.mark.prompt
@pytest.mark.long_form
def test_a_lock_has_one_holder_at_a_time_and_the_next_one_within_a_second(workspace, figures, pytestconfig):
    """One of the contenders is a loop of the guide's curl commands, which is killed and begun anew."""
    is_long = pytestconfig.getoption("--long")
    seconds, between = (of_a_night(600), of_a_night(60)) if is_long else (15, 6)
    chance = random.Random(workspace.seed)
    server = workspace.server(**DOCUMENT)
    server.stop()
    server.fixed_port = free_port()
    server.start()
    finished, stalls = processes.Event(), Stalls()
    contenders = workspace.worker(contend, server.port, 19, finished, workspace.seed)
    stalls.start()
    script, shells, pauses = shell_loop(server.port), [], []

    def begin_shell():
        name = f"curl{len(shells)}"
        with open(workspace.path(name), "wb") as output:
            shells.append(subprocess.Popen(
                ["bash", "-c", script, name], stdout=output, stderr=output, start_new_session=True))
        workspace.started.append(shells[-1])

    def end_shell():
        os.killpg(shells[-1].pid, signal.SIGKILL)
        shells[-1].wait()

    begin_shell()
    end, kill = time.monotonic() + seconds, time.monotonic() + between
    while time.monotonic() < end:
        time.sleep(chance.uniform(1, 5))
        end_shell()
        begin_shell()
        if time.monotonic() > kill:
            kill += between
            begun = time.time()
            server.restart()
            pauses.append((begun, time.time()))
    finished.set()
    end_shell()
    holds, counts, faults = contenders.result(60)
    stalls.ended.set()
    expect_equal(faults, [], "the faults of contenders")
    judge_holds(holds)
    with server.client() as client:
        commits = list(pages(client))
    late, free = judge_lock(commits, pauses + stalls.intervals)
    by_curl = sum(str(commit["action"]["payload"].get("value")).startswith("curl") for commit in commits)
    expect(len(late) > 5, "NOT CHECKED: few leases have ended by themselves:", counts)
    expect(seconds < 600 or by_curl > 0 and counts["too late"] > 0, f"NOT CHECKED: set {by_curl} times by curl; {counts}")
    figures(
        f"{counts}; {by_curl} times set by curl; {len(pauses)} kills; removed {max(late):.3f} s late at most, median"
        f" {sorted(late)[len(late) // 2]:.3f} s; free for {max(free):.3f} s at most of {len(free)} times, median"
        f" {sorted(free)[len(free) // 2]:.3f} s; the machine stood still {len(stalls.intervals)} times")
    expect(max(free) < 1, f"the lock was free for {max(free):.3f} s")
