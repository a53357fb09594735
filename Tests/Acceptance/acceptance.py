#!/usr/bin/env python3
"""Black-box acceptance of a storekeeper binary: each check starts its own servers and proves one sentence.

Usage: python3 Tests/Acceptance/acceptance.py PATH_TO_BINARY [check ...]

Prints one line a check, with its evidence where it fails. STOREKEEPER_SEED repeats a run's random choices.
"""

import os
import random
import signal
import sys
import time
import traceback

import bad_input
import canvas
import connections
import films
import history
import load
import loops
import mixture
import parking
import races
import recording
import resuming
import stalls
import stopping
import streams
import survival
import vanishing
import waits
from harness.expectations import Failure
from harness.workspace import Workspace

# Nothing may hang: a check that takes longer than this has failed.
SECONDS_MAX = 150

CHECKS = [
    history.first_commands,
    history.strict_judges,
    history.ten_writers,
    history.behind_memory,
    history.needless_wakes,
    history.killed_twenty_times,
    history.one_key,
    load.busy_connections,
    load.cost_of_renaming,
    load.cost_of_renaming_durably,
    load.cost_of_reading,
    stopping.stopped_under_load,
    bad_input.bad_bodies,
    bad_input.bad_targets,
    bad_input.lost_cursors,
    bad_input.broken_requests,
    bad_input.too_many_waiters,
    bad_input.full_mailbox,
    bad_input.too_many_connections,
    connections.silent_connections,
    connections.vanished_waiters,
    canvas.watched_canvas,
    canvas.own_world,
    streams.strict_stream_judges,
    streams.ten_thousand_followers,
    streams.thousand_watchers,
    streams.silence,
    streams.streams_of_parts,
    streams.negotiated,
    streams.refused_streams,
    mixture.mixed_streams,
    stalls.stalled_readers,
    stalls.slow_beginners,
    stalls.bursts_after_silence,
    stalls.cost_of_catching_up,
    resuming.streams_through_kills,
    resuming.streams_into_new_history,
    resuming.ends_of_streams,
    resuming.streams_at_sigterm,
    waits.waits_until,
    waits.deadlines,
    waits.deadlines_of_large_values,
    waits.settles,
    waits.settling_counts,
    races.strict_races,
    races.lost_wake_ups,
    races.lost_wake_ups_of_large_values,
    parking.next_requests,
    parking.pipelined,
    parking.odd_clients,
    parking.read_slowly,
    parking.interleavings,
    vanishing.vanished_crowd,
    vanishing.vanished_between,
    loops.two_loops,
    survival.full_disk_by_limit,
    survival.full_disk_by_mount,
    survival.full_disk_at_start,
    survival.damaged_snapshot,
    survival.damaged_file,
    survival.gap_in_history,
    survival.unknown_action_in_record,
    survival.second_process,
    survival.bad_settings,
    recording.told_again,
    recording.exported_under_load,
    recording.tampered_history,
    films.fetched_films,
    films.fetched_once,
    films.given_up,
]


def run(check, binary, seed):
    """Runs one check; returns whether it passed."""
    sentence = check.__doc__.split("\n")[0].removesuffix(".")
    start = time.monotonic()
    workspace = Workspace(binary, seed)

    def too_long(*_):
        raise Failure(f"not done within {SECONDS_MAX} s, at\n" + "".join(traceback.format_stack(limit=4)[:-1]))

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS_MAX)
    evidence = figures = None
    try:
        figures = check(workspace)
    except Failure as failure:
        where = traceback.extract_tb(failure.__traceback__)
        places = " > ".join(f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in where[1:])
        evidence = f"{failure}\n  at {places}"
    except Exception:  # a fault of the driver, or an answer of a shape that it did not expect
        evidence = traceback.format_exc(limit=-5)
    finally:
        signal.alarm(0)
        workspace.close()
    seconds = time.monotonic() - start
    if evidence is None:
        print(f"ok     {seconds:6.1f} s  {sentence}" + (f"  [{figures}]" if figures else ""), flush=True)
        return True
    print(f"FAILED {seconds:6.1f} s  {sentence} ({check.__name__})", flush=True)
    for line in evidence.strip().splitlines():
        print(f"       {line}", flush=True)
    return False


def main():
    names = {check.__name__: check for check in CHECKS}
    if len(sys.argv) < 2 or any(name not in names for name in sys.argv[2:]):
        print(f"{__doc__.strip()}\n\nChecks: {', '.join(names)}", file=sys.stderr)
        return 2
    binary = os.path.abspath(sys.argv[1])
    if not os.access(binary, os.X_OK):
        print(f"{binary} is not a program that can be run", file=sys.stderr)
        return 2
    seed = int(os.environ.get("STOREKEEPER_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"seed {seed}", flush=True)
    results = [run(names[name], binary, seed) for name in sys.argv[2:] or names]
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
