"""Journals of format 1, which the server upgrades at its start."""

import contextlib
import json
import os
import random
import shutil
import sqlite3
import time

from harness.actions import add
from harness.expectations import expect, expect_equal, wait_until
from harness.followers import judge_history
from harness.journal import edit_journal, journal_output, journal_refusal
from harness.server import Server

# A journal that a program of format 1 has written, and its export by the same program.
KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../StateJournalTests/Format1")


def old_journal(workspace):
    """A directory with a copy of the kept journal."""
    data = workspace.path(f"old{workspace.count()}")
    os.mkdir(data)
    shutil.copy(os.path.join(KEPT, "journal.sqlite"), data)
    return data


def test_a_journal_of_format_1_is_upgraded_and_has_the_whole_history(workspace):
    data = old_journal(workspace)
    with open(os.path.join(KEPT, "export.jsonl"), "rb") as file:
        lines = file.read()
    header = json.loads(lines.splitlines()[0])
    journal_refusal(workspace, "export", data, "is of format 1")
    journal_refusal(workspace, "verify", data, "start the server once, which upgrades it")
    server = workspace.server(data=data)
    with server.client() as client:
        expect_equal(client.get("/v1").json["cursor"], f"{header['epoch']}.{header['head']}", "the cursor")
        judge_history(client, header["state"], f"{header['epoch']}.0")
        expect_equal(client.get("/v1/actions/last%202").status, 200, "the status of an old action by its ID")
        expect_equal(client.commit(add(1))["version"], header["head"] + 1, "the next version")
    server.stop()
    expected = lines.replace(b'"head":%d' % header["head"], b'"head":%d' % (header["head"] + 1))
    exported = journal_output(workspace, "export", data)
    expect_equal(exported[: len(expected)] == expected, True, "that the export begins as that of the old program")
    journal_output(workspace, "verify", data)


def test_an_upgrade_that_kill_9_interrupts_begins_again_and_loses_nothing(workspace, figures):
    """The upgrade of 400,000 commits is killed at random times, and says in the log how far it is."""
    generator = random.Random(workspace.seed)
    data = old_journal(workspace)
    path = os.path.join(data, "journal.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        (newest, value) = database.execute(
            "SELECT version, json_extract(CAST(patch AS TEXT), '$[0].value') FROM commits ORDER BY version DESC LIMIT 1"
        ).fetchone()
        database.execute(
            "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number LIMIT 400000)"
            " INSERT INTO commits SELECT ? + n, time, NULL, NULL, NULL, types, action, CAST("
            """'[{"op":"replace","path":"/counter/value","value":' || (? + n) || '}]' AS BLOB), changedPointers"""
            " FROM number JOIN commits ON commits.version = ?",
            (newest, value, newest),
        )
    server = Server(workspace, data, {})
    interrupted = 0
    for _ in range(6):
        server.launch()
        time.sleep(generator.uniform(0.05, 0.8))
        server.kill()
        with contextlib.closing(sqlite3.connect(path)) as database:
            interrupted += database.execute("PRAGMA user_version").fetchone() == (1,)
    server.launch()
    wait_until(server.ready, "the server is ready", 60)
    with server.client() as client:
        expect_equal(client.get("/v1/state").version, newest + 400_000, "the version")
        expect_equal(client.get("/v1/state/counter").json, {"value": value + 400_000}, "the counter")
        expect_equal(client.commit(add(1))["version"], newest + 400_001, "the next version")
    text = server.log_text()
    server.stop()
    [(count, first, last)], _ = edit_journal(server, "SELECT count(*), min(first), max(last) FROM segments")
    expect_equal((first, last), (1, newest + 400_001), "the versions of the segments")
    expect(count < 2000, "segments:", count)
    expect(interrupted > 0, "no upgrade was interrupted")
    figures(f"{interrupted} of 6 upgrades interrupted, {text.count('upgrading the journal')} lines of progress")
