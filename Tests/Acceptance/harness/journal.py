"""The subcommands of `storekeeper journal`, and SQL on the file of a journal."""

import contextlib
import os
import shutil
import sqlite3
import subprocess

from harness.expectations import expect, expect_equal


def run_journal(workspace, command, data, *arguments, text=None):
    """Runs a subcommand of `journal` to its end; a replay is of the example domains, where nothing else is named."""
    if command == "replay" and not {"--domain", "--model"} & set(arguments):
        arguments += ("--domain", "showcase")
    return subprocess.run(
        [workspace.binary, "journal", command, "--data", data, *arguments], input=text, capture_output=True, timeout=100
    )


def journal_output(workspace, command, data, *arguments, text=None):
    """Runs a subcommand that has to succeed, and returns what it writes."""
    done = run_journal(workspace, command, data, *arguments, text=text)
    expect_equal((done.returncode, done.stderr), (0, b""), f"exit code and standard error of journal {command}")
    return done.stdout


def journal_refusal(workspace, command, data, says, *arguments, text=None):
    """Runs a subcommand that has to end with a sentence."""
    done = run_journal(workspace, command, data, *arguments, text=text)
    expect_equal((done.returncode, done.stdout), (1, b""), f"exit code and standard output of journal {command}")
    expect(says in done.stderr.decode(), f"journal {command} does not say {says!r}:", done.stderr.decode())
    return done.stderr.decode().strip()


def restore_data(server, copy):
    """Makes a data directory what a copy of it is; a journal alone would not fit to its fence."""
    shutil.rmtree(server.data)
    shutil.copytree(copy, server.data)


def edit_journal(server, sql):
    """Runs a statement in the journal's file; returns its rows and how many it has changed."""
    with contextlib.closing(sqlite3.connect(os.path.join(server.data, "journal.sqlite"))) as database, database:
        cursor = database.execute(sql)
        return cursor.fetchall(), cursor.rowcount


def segment_of(version):
    """The SQL condition for the segment that has the commit of a version."""
    return f"{version} BETWEEN first AND last"


def damage_segment(server, version):
    """Flips the last bit of the segment that has the commit of a version, as a disk may."""
    [(body,)], _ = edit_journal(server, f"SELECT body FROM segments WHERE {segment_of(version)}")
    flipped = (body[:-1] + bytes([body[-1] ^ 1])).hex()
    _, count = edit_journal(server, f"UPDATE segments SET body = x'{flipped}' WHERE {segment_of(version)}")
    expect_equal(count, 1, "segments that were damaged")
