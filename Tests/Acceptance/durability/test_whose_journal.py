"""A journal says whose it is: each command serves or verifies that domain, and another one is refused."""

import contextlib
import json
import sqlite3
import subprocess

import pytest

from harness.actions import action, add
from harness.expectations import expect, expect_equal
from harness.journal import journal_output, journal_refusal, run_journal
from harness.server import start_refusal

MODEL = """
import { createSlice } from '@reduxjs/toolkit';
%s
export const things = createSlice({ name: 'things', initialState: { %s }, reducers: { %s } });
"""


def forget(data):
    """Makes the journal as an earlier program has left it."""
    with contextlib.closing(sqlite3.connect(f"{data}/journal.sqlite")) as journal, journal:
        journal.execute("DELETE FROM meta WHERE name LIKE 'domain%'")


def recorded(data):
    with contextlib.closing(sqlite3.connect(f"{data}/journal.sqlite")) as journal:
        return dict(journal.execute("SELECT name, value FROM meta WHERE name LIKE 'domain%'"))


def document(workspace):
    """The data directory of a document with one member."""
    server = workspace.server(domain="document")
    with server.client() as client:
        client.commit(action("document/set", {"path": "/a", "value": 1}))
    server.stop()
    return server.data


def test_a_copy_and_its_copy_are_verified_and_served_without_a_name(workspace):
    data = document(workspace)
    backup, restored = workspace.path("backup"), workspace.path("restored")
    journal_output(workspace, "backup", data, "--to", backup)
    journal_output(workspace, "restore", restored, "--from", backup)
    replayed = workspace.path("replayed")
    journal_output(workspace, "replay", replayed, "--domain", "document", text=journal_output(workspace, "export", data))
    for place in (data, backup, restored, replayed):
        expect_equal(recorded(place)["domain"], "document", f"whose {place} is")
        said = journal_output(workspace, "verify", place, "--deep")
        expect_equal(said, b"verified: versions 0 to 1, 1 commits\n", f"what verify says of {place}")
    server = workspace.server(data=restored, domain=None)
    with server.client() as client:
        expect_equal(client.get("/v1/state").json, {"a": 1}, "the state without a setting")
        expect_equal(client.commit(action("document/set", {"path": "/b", "value": 2}))["version"], 2, "an action")


def test_another_domain_is_refused_by_each_command(workspace):
    data = document(workspace)
    says = "belongs to the domain document, and the domain counter is to be served"
    text = start_refusal(workspace, data, says, domain="counter")
    expect("--change-domain" in text, "it does not say what can be done:", text)
    for command in ("verify", "replay"):
        done = run_journal(workspace, command, data, "--domain", "counter", text=b"")
        expect_equal(done.returncode, 78, f"the exit code of {command}")
        expect(says in done.stderr.decode(), f"what {command} says", done.stderr.decode())
    expect_equal(recorded(data), {"domain": "document", "domain_since": 0}, "whose it is after the refusals")


def test_the_chain_is_verified_without_a_domain(workspace):
    data = document(workspace)
    for more in ([], ["--domain", "counter"], ["--model", "/nowhere/at/all.js"]):
        said = journal_output(workspace, "verify", data, "--chain", *more)
        expect_equal(
            said, b"verified: versions 0 to 1, 1 commits\nonly the chain and the patches: no reducer has run\n",
            f"what verify says with {more}",
        )
    with contextlib.closing(sqlite3.connect(f"{data}/journal.sqlite")) as journal, journal:
        journal.execute("UPDATE segments SET body = zeroblob(length(body))")
    journal_refusal(workspace, "verify", data, "the commit of version 1", "--chain")


def test_a_journal_of_an_earlier_program_is_taken_and_says_whose_it_is_from_then_on(workspace):
    data = document(workspace)
    forget(data)
    journal_refusal(workspace, "verify", data, "this journal does not name its domain", "--domain", "showcase")
    journal_output(workspace, "verify", data, "--domain", "document")
    expect_equal(recorded(data), {}, "whose it is after commands that only read")
    # A start that is refused claims nothing.
    start_refusal(workspace, data, "does not fit the domain", domain="counter")
    expect_equal(recorded(data), {}, "whose it is after a refused start")
    server = workspace.server(data=data, domain="document")
    server.stop()
    expect_equal(recorded(data), {"domain": "document", "domain_since": 0}, "whose it is after a start")
    journal_output(workspace, "verify", data)


def test_a_change_of_the_domain_is_said_once(workspace):
    """The commits before it are of other reducers, and are verified by their chain and patches."""
    server = workspace.server(domain="counter")
    with server.client() as client:
        for _ in range(3):
            client.commit(add(1))
    server.stop()
    server.arguments, server.settings["domain"] = ["--change-domain"], "document"
    server.start()
    with server.client() as client:
        expect_equal(client.commit(action("document/set", {"path": "/a", "value": 1}))["version"], 4, "an action")
    server.stop()
    expect_equal(recorded(server.data), {"domain": "document", "domain_since": 3}, "whose it is")
    server.arguments = []
    del server.settings["domain"]
    server.start()
    server.stop()
    said = journal_output(workspace, "verify", server.data).decode().splitlines()
    expect_equal(said[0], "verified: versions 0 to 4, 4 commits", "what verify says")
    expect("versions 0 to 3 are from before a migration" in said[1], "what it says of the versions before", said)
    start_refusal(workspace, server.data, "belongs to the domain document", domain="counter")


def test_a_model_is_verified_after_a_migration(workspace):
    """The actions of the first file have no reducer in the second one."""
    path = workspace.path("things.js")

    def write(*parts):
        with open(path, "w") as file:
            file.write(MODEL % parts)

    write("", "count: 0", "added(state) { state.count += 1; }")
    server = workspace.server(model=path)
    with server.client() as client:
        for _ in range(3):
            client.commit(action("things/added", {}))
    server.stop()
    expect_equal(recorded(server.data)["domain"], "model things.js", "whose it is")
    done = run_journal(workspace, "verify", server.data)
    expect_equal(done.returncode, 78, "the exit code without the file")
    expect("is of the model things.js: name its file with --model" in done.stderr.decode(), done.stderr.decode())
    write(
        "export const version = 2; export function migrate(state) { return { things: { total: state.things.count } }; }",
        "total: 0", "counted(state) { state.total += 1; }",
    )
    server.start()
    with server.client() as client:
        expect_equal(client.get("/v1/state/things").json, {"total": 3}, "the migrated state")
        version = client.commit(action("things/counted", {}))["version"]
    server.stop()
    said = journal_output(workspace, "verify", server.data, "--model", path, "--deep").decode().splitlines()
    expect_equal(said[0], f"verified: versions 0 to {version}, {version} commits", "what verify says")
    expect(f"versions 0 to {version - 1} are from before a migration" in said[1], "what it says of them", said)
    other = workspace.path("others.js")
    with open(path) as file, open(other, "w") as copy:
        copy.write(file.read())
    start_refusal(workspace, server.data, "belongs to the domain model things.js, and the domain model others.js", model=other)
    # A patch before the migration that does not fit is found all the same.
    recording = [json.loads(line) for line in journal_output(workspace, "export", server.data).splitlines()]
    recording[2]["patch"][0]["path"] = "/things/gone/deeper"
    text = b"".join(json.dumps(line).encode() + b"\n" for line in recording)
    done = run_journal(workspace, "import", workspace.path("broken"), text=text)
    expect_equal(done.returncode, 1, "the import of a patch that does not fit")


@pytest.mark.parametrize("way", ["file", "environment"])
def test_a_setting_of_any_source_names_a_domain(workspace, way):
    data = document(workspace)
    config = workspace.path("config.json")
    with open(config, "w") as file:
        json.dump({"domain": "counter"} if way == "file" else {}, file)
    done = subprocess.run(
        [workspace.binary, "check", "--config", config, "--data", data], capture_output=True, text=True, timeout=60,
        env={"STOREKEEPER_DOMAIN": "counter"} if way == "environment" else {},
    )
    expect_equal(done.returncode, 78, "the exit code of check")
    expect("belongs to the domain document" in done.stderr, "what it says", done.stderr)
