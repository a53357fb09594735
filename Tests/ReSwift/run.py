#!/usr/bin/env python3
"""Runs ReSwift's own tests against the store, through the adapter in this folder.

Usage: RESWIFT_TESTS=FOLDER python3 Tests/ReSwift/run.py [SCRATCH_PATH]

FOLDER is the folder `ReSwiftTests` of a checkout of ReSwift. Its files are copied to a temporary folder and nowhere else.
SCRATCH_PATH is the folder of a build for debugging of this package, by default the one beside its manifest.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# Files that are not compiled, with the reason.
NOT_OF_A_STORE = {
    "PerformanceTests.swift": "they measure time and state nothing that a store does",
    "SynchronizedTests.swift": "they test ReSwift's own lock",
    "TypeHelperTests.swift": "they test a function by which ReSwift's older reducers cast their state",
}
# Tests that have to fail, with the reason.
DIFFERENT = {
    "StoreDispatchTests.testThrowsExceptionWhenReducersDispatch": "its reducer waits for another thread that dispatches:"
    " the store lets that thread wait for its turn, where ReSwift ends the process",
}

TYPE = re.compile(r"(?:final )?(?:class|extension) (\w+)")
TEST = re.compile(r" +func (test\w+)\(\)")
RESULT = re.compile(r"^Test Case '(?:-\[\w+\.)?(\w+)[. ](\w+)\]?' (started|passed|failed)", re.MULTILINE)


def find_tests(path):
    """The tests of a file, as `Class.test`."""
    found, name = set(), None
    for line in path.read_text().splitlines():
        if match := TYPE.match(line):
            name = match[1]
        elif match := TEST.match(line):
            found.add(f"{name}.{match[1]}")
    return found


def swift(command, folder, scratch, options, timeout):
    """Runs a command of the package; the exit code, nil where it took too long, and what it printed."""
    environment = dict(os.environ, STOREKEEPER_CHECKOUT=str(ROOT), SWIFT_BACKTRACE="enable=no")
    arguments = ["swift", command, "--package-path", folder, "--scratch-path", scratch, *options]
    process = subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        start_new_session=True,
    )
    try:
        printed = process.communicate(timeout=timeout)[0]
        return process.returncode, printed
    except subprocess.TimeoutExpired:
        # The tests are a process of their own in the group of the command.
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]


def pattern(tests):
    """What SwiftPM takes for the names of some tests."""
    return "^ReSwiftTests\\.(" + "|".join(test.replace(".", "/") for test in sorted(tests)) + ")$"


def judge(source, folder, scratch):
    """Copies the tests behind the adapter, runs them, and says what differs from the lists above; true for nothing."""
    files = {path.name: path for path in source.glob("*.swift")}
    faults = [f"{name} is not there" for name in NOT_OF_A_STORE if name not in files]
    left_out = set().union(*(find_tests(files[name]) for name in NOT_OF_A_STORE if name in files))
    run = set().union(*(find_tests(path) for name, path in files.items() if name not in NOT_OF_A_STORE))
    faults += [f"{test} is not there" for test in DIFFERENT if test not in run]
    different = run & DIFFERENT.keys()
    applicable = run - different
    if not applicable:
        sys.exit(f"{source} has no tests of ReSwift's store")

    # Not what a build in this folder has left.
    for name in ["Package.swift", "Sources", "ReSwiftTests"]:
        copy = shutil.copytree if (HERE / name).is_dir() else shutil.copy
        copy(HERE / name, folder / name)
    for name, path in files.items():
        if name not in NOT_OF_A_STORE:
            shutil.copy(path, folder / "ReSwiftTests")

    status, printed = swift("build", folder, scratch, ["--build-tests"], 1800)
    if status != 0:
        sys.exit(f"{printed}\nReSwift's tests cannot be built with the adapter")
    status, printed = swift("test", folder, scratch, ["--skip-build", "--skip", pattern(DIFFERENT)], 300)
    passed = {f"{name}.{test}" for name, test, result in RESULT.findall(printed) if result == "passed"}
    failed = applicable - passed
    if status != 0:
        faults.append(printed)
    faults += [f"{test} fails" for test in sorted(failed)]
    # One at a time: they may end the process, or never end.
    for test in sorted(different):
        _, printed = swift("test", folder, scratch, ["--skip-build", "--filter", pattern([test])], 60)
        results = [result for name, case, result in RESULT.findall(printed) if f"{name}.{case}" == test]
        if "passed" in results:
            faults.append(f"{test} passes: it is no longer different")
        if not results:
            faults.append(f"{test} has not run: {printed}")

    for name, reason in {**NOT_OF_A_STORE, **DIFFERENT}.items():
        print(f"does not apply: {name}: {reason}")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"ReSwift's tests: {len(passed & applicable)} passed, {len(failed)} failed,", end=" ")
    print(f"{len(left_out) + len(different)} do not apply")
    return not faults


def main():
    source = os.environ.get("RESWIFT_TESTS")
    if not source:
        print("ReSwift's tests are not here, so none of them has run: RESWIFT_TESTS is to name their folder")
        return
    source = pathlib.Path(source).resolve()
    if not source.is_dir():
        sys.exit(f"RESWIFT_TESTS names {source}, which is no folder")
    scratch = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".build").resolve()
    with tempfile.TemporaryDirectory(prefix="reswift-") as folder:
        if not judge(source, pathlib.Path(folder).resolve(), scratch):
            sys.exit(1)


main()
