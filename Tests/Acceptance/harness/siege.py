"""A siege: a hostile client against a server, and a quiet client beside it that has to notice nothing."""

import multiprocessing
import os
import time

from harness import quiet
from harness.expectations import expect, wait_until
from harness.quiet import percentile, usual_lines

MEBIBYTE = 1 << 20
# What 99 of 100 requests of a quiet client may take, in seconds. The short form runs on machines that have other work, on
# two processors that the hostile client shares: what it has to find takes seconds.
SECONDS_BOUND = 0.1
SECONDS_BOUND_SHORT = 0.5
QUIET_FACTOR = 5
RECOVERY_SECONDS = 1.0


class Outcome:
    """What a siege has shown: times before, during and after it, memory, and what the hostile client was answered."""

    def __init__(
        self, samples, begun, ended, memory_before, memory_peak, memory_bytes_max, attack, wanted,
        seconds_bound=SECONDS_BOUND,
    ):
        self.seconds_bound = seconds_bound
        self.samples, self.begun, self.ended = samples, begun, ended
        self.memory_before, self.memory_peak, self.memory_bytes_max = memory_before, memory_peak, memory_bytes_max
        self.attack, self.wanted = attack, wanted

    def of(self, kind, since, until):
        return [sample for sample in self.samples if sample.kind == kind and since <= sample.due < until]

    @property
    def kinds(self):
        return list(dict.fromkeys(sample.kind for sample in self.samples))

    def bound(self, kind):
        """What 99 of 100 of the quiet client's requests of this kind may take."""
        before = [sample.seconds for sample in self.of(kind, 0, self.begun)]
        return max(self.seconds_bound, QUIET_FACTOR * percentile(before))

    def during(self, kind):
        return percentile([sample.seconds for sample in self.of(kind, self.begun, self.ended)])

    def recovery(self):
        """How long after the end of the siege the last request was under way that took longer than it may."""
        bounds = {kind: self.bound(kind) for kind in self.kinds}
        slow = [
            sample.due + sample.seconds
            for sample in self.samples
            if sample.due >= self.begun and sample.seconds > bounds[sample.kind]
        ]
        return max(0.0, max(slow, default=0) - self.ended)

    def refusals(self):
        return [sample for sample in self.samples if sample.status not in self.wanted[sample.kind]]

    def times(self):
        """What each kind and the recovery took, in parts of what they may."""
        return [self.during(kind) / self.bound(kind) for kind in self.kinds] + [self.recovery() / RECOVERY_SECONDS]

    def is_too_slow_only(self):
        """Whether only times are at fault, that of the recovery too."""
        return max(self.times()) > 1 and not self.refusals() and not self.has_grown()

    def is_near_miss(self):
        """Whether only times are at fault, and each is below four times what it may be."""
        return self.is_too_slow_only() and max(self.times()) < 4

    def has_grown(self):
        return self.memory_peak - self.memory_before > self.memory_bytes_max * 4 // 3

    def faults(self):
        """What the quiet client has noticed, one sentence each."""
        found = []
        for kind in self.kinds:
            taken, bound = self.during(kind), self.bound(kind)
            if taken > bound:
                found.append(f"{kind}: 99 of 100 within {taken:.3f} s, not {bound:.3f} s")
        refused = self.refusals()
        if refused:
            first = refused[0]
            found.append(f"{len(refused)} requests were not served; the first, {first.kind}: {first.status}")
        grown, allowed = self.memory_peak - self.memory_before, self.memory_bytes_max * 4 // 3
        if self.has_grown():
            found.append(f"the server grew by {grown / MEBIBYTE:.0f} MiB, not {allowed / MEBIBYTE:.0f} MiB at most")
        if self.recovery() > RECOVERY_SECONDS:
            found.append(f"the last slow answer came {self.recovery():.2f} s after the end")
        return found

    def figures(self):
        times = ", ".join(f"{kind} {1000 * self.during(kind):.0f} ms" for kind in self.kinds)
        return (
            f"99 of 100: {times}; memory {self.memory_before / MEBIBYTE:.0f} to {self.memory_peak / MEBIBYTE:.0f} MiB; "
            f"recovered after {self.recovery():.2f} s; {self.attack}"
        )


def siege(
    workspace,
    server,
    attack,
    seconds,
    lines=None,
    seconds_before=0.35,
    memory_bytes_max=64 * MEBIBYTE,
    seconds_bound=SECONDS_BOUND,
):
    """Runs `attack(port, ends)` for so many seconds in a process of lower priority, beside a quiet client.

    `attack` returns a short text; `ends()` tells it when to stop. Whatever it holds open ends with its process.
    """
    lines = usual_lines() if lines is None else lines
    wanted = {line.kind: set(line.wanted) for line in lines}
    fork = multiprocessing.get_context("fork")
    stop, last_slow = fork.Event(), fork.Value("d", 0.0)

    def note(sample):
        if sample.seconds > seconds_bound:
            last_slow.value = time.monotonic()

    watcher = workspace.worker(quiet.watch, server.port, lines, stop.is_set, note)
    time.sleep(seconds_before)
    reset_peak(server)
    memory_before = server.memory_bytes()
    begun = time.monotonic()
    attacker = workspace.worker(run_attack, attack, server.port, begun + seconds)
    text = attacker.result(seconds + 45)
    ended = time.monotonic()
    # The attacker's process has gone by now, and its connections with it.
    wait_until(
        lambda: time.monotonic() > 0.3 + min(max(ended, last_slow.value), ended + RECOVERY_SECONDS),
        "nothing is slow", RECOVERY_SECONDS + 5, pause=0.02,
    )
    stop.set()
    samples = watcher.result(60)
    expect(server.process.poll() is None, f"the server ended with {server.process.poll()}:", server.log_text())
    memory_peak = server.memory_peak_bytes()
    return Outcome(
        samples, begun, ended, memory_before, memory_peak, memory_bytes_max, text, wanted, seconds_bound
    )


def run_attack(attack, port, end):
    os.nice(5)
    return attack(port, lambda: time.monotonic() >= end)


def reset_peak(server):
    """Makes the most memory that the process has had that which it has now (proc(5), clear_refs)."""
    with open(f"/proc/{server.pid}/clear_refs", "w") as file:
        file.write("5")


def judge_siege(outcome):
    faults = outcome.faults()
    expect(not faults, "; ".join(faults) + f" ({outcome.figures()})")
    return outcome.figures()
