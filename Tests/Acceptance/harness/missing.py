"""The tests that describe what the server does not do yet, by `missing.txt`: each is expected to fail.

A line that begins with `== ` is a reason, and each line below it a test. `long:` before a test means that only its long
form fails, `short:` that only its short form does. A test that begins to hold fails until its line is taken out.

`not_in_etcd.txt` has the same form for what a run with the journals in etcd skips: a test with or without its case, a file
or a folder.
"""

import pathlib

import pytest


def read(path):
    """The reasons by test; the key of a test is its form and its name from the folder of the acceptance tests."""
    reasons, reason = {}, None
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith("== "):
            reason = line.removeprefix("== ")
        elif line.strip() and not line.startswith("#"):
            form, colon, name = line.strip().partition(": ")
            forms, name = ([form], name) if colon and form in ("long", "short") else (["short", "long"], line.strip())
            for each in forms:
                if (each, name) in reasons or reason is None:
                    raise pytest.UsageError(f"{path}: {name} is there twice, or has no reason")
                reasons[each, name] = reason
    return reasons


def mark(items, root, reasons, is_long):
    """Marks the tests that are expected to fail. A name of a collected file that no test has is an error."""
    # A test that only the long form has is not looked for in the short one.
    form = "long" if is_long else "short"
    files, left = set(), {name for each, name in reasons if each == form}
    for item in items:
        path = item.path.relative_to(root).as_posix()
        files.add(path)
        name = f"{path}::{item.name}"
        left.discard(name)
        if reason := reasons.get((form, name)):
            item.add_marker(pytest.mark.xfail(strict=True, reason=reason))
    return sorted(name for name in left if name.partition("::")[0] in files)


def skip(items, root, reasons, in_etcd):
    """Skips these tests in a run with etcd. What names no test of a collected file or folder is an error in any run."""
    names, places, used = {name: reason for (_, name), reason in reasons.items()}, set(), set()
    for item in items:
        path = item.path.relative_to(root).as_posix()
        test = f"{path}::{item.name}"
        found = [path.partition("/")[0], path, test.partition("[")[0], test]
        places |= set(found[:2])
        for name in names.keys() & set(found):
            used.add(name)
            if in_etcd:
                item.add_marker(pytest.mark.skip(reason=names[name]))
    return sorted(name for name in names.keys() - used if name.partition("::")[0] in places)
