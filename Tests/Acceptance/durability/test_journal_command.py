"""`storekeeper journal`: export, import, replay and verify."""

import json
import os
import random
import re
import threading

from harness.actions import action, add
from harness.expectations import expect, expect_equal
from harness.journal import damage_segment, edit_journal, journal_output, journal_refusal, run_journal


def test_an_exported_history_makes_the_same_state_by_its_patches_and_by_its_actions(workspace):
    """The server runs during the export; the states are equal byte for byte."""
    generator = random.Random(workspace.seed)
    server = workspace.server()
    with server.client() as client:
        commit_mixture(client, generator, 300)
        lines = journal_output(workspace, "export", server.data)
        state = client.get("/v1/state")
        found = [json.loads(line) for line in lines.splitlines()]
        expect_equal(len(found), 301, "lines of the export")
        expect_equal((found[0]["version"], found[0]["head"]), (0, 300), "versions in the header")
        names = [number for number in range(300) if client.get(f"/v1/actions/id%20{number}").status == 200]
        batches = [number for number in range(300) if client.get(f"/v1/actions/in%20batch%20{number}").status == 200]
        expect(len(names) > 20 and len(batches) > 20, "hardly any IDs:", len(names), len(batches))
        verified = journal_output(workspace, "verify", server.data)
        expect_equal(verified, b"verified: versions 0 to 300, 300 commits\n", "what verify says")
        epochs = {client.get("/v1").json["epoch"]}
        part = journal_output(workspace, "export", server.data, "--since", "290")
        expect_equal(len(part.splitlines()), 11, "lines of an export of the last ten commits")
        for command, text in [("import", lines), ("replay", lines), ("import", part), ("replay", part)]:
            data = workspace.path(f"copy{workspace.count()}")
            journal_output(workspace, command, data, text=text)
            copy = workspace.server(data=data)
            with copy.client() as other:
                again = other.get("/v1/state")
                expect_equal(
                    (again.version, again.body == state.body), (300, True), f"version and state after {command}"
                )
                expect_equal(again.fields["etag"], state.fields["etag"], f"the ETag after {command}")
                epochs.add(other.get("/v1").json["epoch"])
                if text == lines:
                    for name in [f"id%20{number}" for number in names] + [
                        f"in%20batch%20{number}" for number in batches
                    ]:
                        ours, theirs = (one.get(f"/v1/actions/{name}").json for one in (client, other))
                        for key in ("version", "time", "action", "patch", "changed"):
                            expect_equal(theirs[key], ours[key], f"{key} of the action {name} after {command}")
                expect_equal(other.commit(add(1))["version"], 301, f"the next version after {command}")
            copy.stop()
            journal_output(workspace, "verify", data)
            journal_refusal(workspace, command, data, "has a journal already", text=text)
        expect_equal(len(epochs), 5, "different epochs of as many servers")


def test_an_export_and_a_verification_under_load_see_a_history_without_a_gap(workspace, figures):
    """Export, replay and verification run beside a writer; the server closes its journal in good order."""
    server = workspace.server()
    is_over = threading.Event()

    def write():
        with server.client() as client:
            # Slow enough that the states between are still kept when they are compared.
            while not is_over.wait(0.02):
                client.request(
                    "POST", "/v1/actions", b"\n".join([add(1), add(2)] * 100), {"Content-Type": "application/x-ndjson"}
                )

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    counts = []
    try:
        for _ in range(5):
            lines = journal_output(workspace, "export", server.data).splitlines()
            counts.append(len(lines) - 1)
            version = json.loads(lines[-1]).get("version", 0)
            data = workspace.path(f"copy{workspace.count()}")
            journal_output(workspace, "replay", data, text=b"\n".join(lines))
            value = journal_output(workspace, "export", data, "--since", str(version)).splitlines()[0]
            with server.client() as client:
                expect_equal(
                    json.loads(value)["state"], client.get(f"/v1/state?version={version}").json, "the state then"
                )
            journal_output(workspace, "verify", server.data)
    finally:
        is_over.set()
        writer.join(10)
    expect(counts[-1] > counts[0], "nothing was written meanwhile:", counts)
    server.stop()
    expect("not closed" not in server.log_text(), "the journal was not closed:", server.log_text())
    figures(f"{counts[-1]} commits")


def test_verify_names_the_tampered_version_and_a_damaged_export_is_refused_by_its_line(workspace, figures):
    """A refused import or replay leaves no journal."""
    server = workspace.server()
    with server.client() as client:
        commit_mixture(client, random.Random(workspace.seed), 50)
        client.commit(add(7))  # 51
        client.commit(add(7))
        lines = journal_output(workspace, "export", server.data).splitlines()
    server.stop()
    said = []
    for name, old, new in [
        # The value may be negative.
        ("patch", b'"value":-?', b'"value":1'),
        ("action", b'amount":7', b'amount":8'),
        ("type", b"counter/add", b"gone/vanish"),
    ]:
        line, count = re.subn(old, new, lines[51])
        expect(count, f"nothing to change ({name}):", lines[51])
        changed = lines[:51] + [line] + lines[52:]
        tampered = workspace.path(f"tampered {name}")
        journal_output(workspace, "import", tampered, text=b"\n".join(changed))
        says = "gone/vanish" if name == "type" else "/counter/value"
        said.append(journal_refusal(workspace, "verify", tampered, says, "--domain", "showcase"))
        expect("version 51 (" in said[-1], f"the version is not named ({name}):", said[-1])
    journal_output(workspace, "verify", server.data)
    damage_segment(server, 51)
    for command in ("verify", "export"):
        run = run_journal(workspace, command, server.data)
        text = run.stderr.decode()
        expect(run.returncode == 1 and "version 51 is not what was recorded" in text, f"{command} says:", text)

    data = workspace.path("never")
    for name, damaged, says in [
        ("gap", lines[:20] + lines[21:], "line 21: it has version 21 where 20 comes next"),
        ("cut off", lines[:-1], "line 53: there is no further line"),
        ("half a line", lines[:-1] + [lines[-1][:-4]], "line 53: "),
        ("no header", lines[1:], "line 1: "),
        ("empty", [], "line 1: "),
        ("unfit", lines[:51] + [lines[51].replace(b"/counter/value", b"/counter/none")] + lines[52:], "line 52: "),
    ]:
        journal_refusal(workspace, "import", data, says, text=b"\n".join(damaged))
        expect(not os.path.exists(data), f"a failed import leaves its directory ({name})")
    journal_refusal(
        workspace,
        "replay",
        data,
        "line 52: version 51 (gone/vanish)",
        text=b"\n".join(lines[:51] + [lines[51].replace(b"counter/add", b"gone/vanish")] + lines[52:]),
    )
    journal_refusal(workspace, "replay", data, "does not fit the domain", "--domain", "counter", text=b"\n".join(lines))
    journal_refusal(workspace, "export", data, "there is no journal")
    journal_output(workspace, "import", data, text=b"\n".join(lines))
    figures(said[0])


def test_a_damaged_snapshot_is_named_and_dropped_and_no_commit_is_lost(workspace):
    server = workspace.server()
    with server.client() as client:
        for _ in range(3):
            client.commit(add(1))
    server.stop()
    server.start()
    with server.client() as client:
        client.commit(add(1))
        state = client.get("/v1/state").body
    server.stop()
    _, count = edit_journal(server, "UPDATE snapshots SET hash = zeroblob(16) WHERE version = 3")
    expect_equal(count, 1, "snapshots that were damaged")
    for options in ([], ["--deep"], ["--chain"]):
        done = run_journal(workspace, "verify", server.data, *options)
        expect(done.returncode == 1 and b"snapshot of version 3 is damaged; no commit is lost" in done.stderr, options, done)
    copy = workspace.path("copy")
    journal_output(workspace, "backup", server.data, "--to", copy)
    journal_output(workspace, "verify", copy, "--deep")
    expect(b"snapshot of version 3 dropped" in journal_output(workspace, "compact", server.data), "what compact says")
    journal_output(workspace, "verify", server.data, "--deep")
    server.start()
    with server.client() as client:
        expect_equal(client.get("/v1/state").body, state, "the state")


def commit_mixture(client, generator, count):
    """Commits that many times: single actions and batches, some with IDs, some that change nothing."""
    for number in range(count):
        tasks = [
            action(
                "tasks/add",
                {"id": generator.randrange(10**12), "title": generator.choice(["a", 'é "/~\u2028', "x" * 300])},
            ),
            add(generator.randrange(-5, 9), meta={"who": "me", "size": 0.1}),
            action("counter/reset"),
        ]
        chosen = generator.choice(tasks)
        kind = generator.randrange(4)
        if kind == 0:
            chosen = b"[" + b",".join(generator.choices(tasks[1:], k=generator.randrange(1, 4))) + b"]"
        elif kind == 1:
            chosen = add(number, id=f"id {number}")
        elif kind == 2:
            chosen = b"[" + add(1, id=f"in batch {number}") + b"," + tasks[0] + b"]"
        client.commit(chosen)
