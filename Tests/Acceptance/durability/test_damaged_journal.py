"""Journals that are damaged or old."""

import os
import shutil

from harness.actions import action, add
from harness.expectations import Failure, expect, expect_equal, wait_until
from harness.followers import judge_history
from harness.journal import damage_segment, edit_journal, journal_output, journal_refusal, restore_data, segment_of
from harness.records import Record
from harness.streams import StreamClient
from harness.server import shorten_line, start_refusal


def test_an_older_snapshot_replaces_a_damaged_one_and_with_none_left_the_start_is_refused(workspace, figures):
    """State, epoch and history are as before the damage."""
    server = workspace.server()
    with server.client() as client:
        load_until_snapshot(server, client)
        before = client.get("/v1/state")
    damages = [
        ("its bytes", "UPDATE snapshots SET state = replace(CAST(state AS TEXT), '\"value\":', '\"value\":1')"),
        ("cut off", "UPDATE snapshots SET state = substr(state, 1, length(state) / 2)"),
        ("its hash", "UPDATE snapshots SET hash = 'aaaa'"),
        ("its place in the chain", "UPDATE snapshots SET chain = zeroblob(16)"),
        ("empty", "UPDATE snapshots SET state = x''"),
        ("gone", "DELETE FROM snapshots"),
    ]
    server.stop()
    whole = workspace.path("whole")
    shutil.copytree(server.data, whole)
    for name, damage in damages:
        restore_data(server, whole)
        _, count = edit_journal(server, damage + " WHERE version = (SELECT max(version) FROM snapshots)")
        expect_equal(count, 1, f"rows that were damaged ({name})")
        server.start()
        with server.client() as client:
            after = client.get("/v1/state")
            expect_equal((after.cursor, after.body == before.body), (before.cursor, True), f"cursor and state ({name})")
            expect_equal(after.fields["etag"], before.fields["etag"], f"the ETag ({name})")
            wait_until(lambda: name == "gone" or "damaged" in server.log_text(), f"a word in the log ({name})")
            judge_history(client, workspace.empty_state(), before.cursor.rpartition(".")[0] + ".0")
            expect_equal(client.commit(add(1))["version"], before.version + 1, "the next version")
        server.stop()
    edit_journal(server, "UPDATE snapshots SET hash = 'aaaa'")
    figures(shorten_line(start_refusal(workspace, server.data, "snapshot")))


def test_a_file_that_is_no_whole_journal_is_refused_and_not_overwritten(workspace, figures):
    """A journal that is no database, that lacks a commit, or that has a later format."""
    server = workspace.server()
    with server.client() as client:
        for _ in range(50):
            client.commit(add(1))
    server.stop()
    path = os.path.join(server.data, "journal.sqlite")
    with open(path, "rb") as file:
        whole = file.read()
    _, count = edit_journal(server, "DELETE FROM snapshots WHERE version > 0")
    expect(count > 0, "there was no snapshot to delete")
    with open(path, "rb") as file:
        without_snapshots = file.read()
    damage_segment(server, 20)
    said = start_refusal(workspace, server.data, "version 20 ")
    expect(path in said, "the file is not named:", said)
    with open(path, "wb") as file:
        file.write(without_snapshots)
    _, count = edit_journal(server, f"DELETE FROM segments WHERE {segment_of(20)}")
    expect_equal(count, 1, "segments that were deleted")
    said = start_refusal(workspace, server.data, "lacks the commit of version 20:")
    expect(path in said, "the file is not named:", said)
    with open(path, "wb") as file:
        file.write(b"this is not a database, whatever its name says. " * 200)
    for suffix in ("-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.remove(path + suffix)
    text = start_refusal(workspace, server.data, "journal")
    with open(path, "rb") as file:
        expect(file.read().startswith(b"this is not"), "the file was overwritten")
    with open(path, "wb") as file:
        file.write(whole)
    edit_journal(server, "PRAGMA user_version = 1000")
    start_refusal(workspace, server.data, "format")
    figures(shorten_line(text))


def test_a_commit_that_is_missing_before_the_newest_snapshot_is_never_skipped_in_silence(workspace, figures):
    """Either the server refuses to start, or a follower gets a problem where the commit is missing."""
    said = follow_to_damage(
        workspace, lambda server: edit_journal(server, f"DELETE FROM segments WHERE {segment_of(20)}")
    )
    figures(said)


def test_a_flipped_bit_before_the_newest_snapshot_is_never_followed_in_silence(workspace, figures):
    """Either the server refuses to start, or a follower gets a problem where the bit is."""
    figures(follow_to_damage(workspace, lambda server: damage_segment(server, 20)))


def follow_to_damage(workspace, damage):
    """Damages the history about version 20; returns how the server says so."""
    server = workspace.server()
    with server.client() as client:
        load_until_snapshot(server, client)
        epoch = client.get("/v1").json["epoch"]
    server.stop()
    damage(server)
    server.launch()
    wait_until(lambda: server.ready() or server.process.poll() is not None, "the server is ready or has refused", 20)
    if server.process.poll() is not None:
        expect(server.process.returncode > 0, "it ended with", server.process.returncode)
        expect("journal" in server.log_text(), "not a word about the journal:", server.log_text())
        return "the server refuses to start"
    with server.client() as client:
        record = Record(workspace.empty_state(), f"{epoch}.0")
        while record.version < 100:
            answer = client.get(f"/v1/changes?since={epoch}.{record.version}&limit=7")
            if answer.status != 200:
                return f"a follower gets {answer.status} {answer.json['code']} at version {record.version}"
            record.take(answer.json)
        raise Failure("a follower went past the damage")


def test_a_bit_that_flips_under_a_running_server_fails_the_reads_of_that_commit_and_no_others(workspace, figures):
    server = workspace.server()
    with server.client() as client:
        for number in range(1, 31):
            client.commit(add(number, id=f"a{number}"))
        epoch = client.get("/v1").json["epoch"]
    server.stop()
    server.start()
    damage_segment(server, 20)
    with server.client() as client:
        page = client.get(f"/v1/changes?since={epoch}.0").json
        expect_equal((len(page["changes"]), page["next"]), (19, f"{epoch}.19"), "the changes before the damage")
        for path in ("changes?since={}.19", "actions/a20", "state?version=25"):
            answer = client.get("/v1/" + path.format(epoch))
            expect_equal((answer.status, answer.json["code"]), (500, "journal-damaged"), f"status and code of {path}")
        for path in ("changes?since={}.0&limit=19", "changes?since={}.20", "actions/a21", "state?version=30"):
            expect_equal(client.get("/v1/" + path.format(epoch)).status, 200, f"status of {path}")
        expect_equal(client.commit(add(1))["version"], 31, "the next version")
    wait_until(
        lambda: "the commit of version 20 is not what was recorded" in server.log_text(), "the log names the version"
    )
    said = server.log_text()
    figures(f"{said.count('is not what was recorded')} sentences in the log")


def test_a_stream_resets_a_client_that_needs_a_lost_commit_and_an_export_refuses_to_pass_over_it(workspace, figures):
    """The client goes on from the latest state, and knows that it has missed commits."""
    server = workspace.server()
    with server.client() as client:
        load_until_snapshot(server, client)
        before = client.get("/v1/state")
    server.stop()
    server.start()  # the memory of the history begins here
    _, count = edit_journal(server, f"DELETE FROM segments WHERE {segment_of(2000)}")
    expect_equal(count, 1, "segments that were deleted")
    said = journal_refusal(workspace, "verify", server.data, "lacks the commit of version")
    journal_refusal(workspace, "export", server.data, "lacks commits before version")
    epoch = before.cursor.rpartition(".")[0]
    with StreamClient(server.port, f"/v1/changes?since={epoch}.2000") as stream:
        stream.begin()
        events = [stream.next() for _ in range(2)]
    expect_equal([event.name for event in events], ["reset", "snapshot"], "the events")
    expect_equal(events[0].json, {"reason": "journal-damaged"}, "the reason of the reset")
    expect_equal((events[1].id, events[1].json), (before.cursor, before.json), "the state that the client goes on from")
    figures(shorten_line(said))


def test_a_journal_keeps_so_many_bytes_of_commits(workspace, figures):
    """Large metadata that changes nothing; the file takes the pages again that retention has freed."""
    server = workspace.server(journal_bytes_max=1 << 20)
    with server.client() as client:
        for number in range(120):
            client.commit(action("counter/add", {"amount": 0}, meta={"note": f"{number} " + "n" * 100_000}))
        expect_equal(client.get("/v1").json["version"], 120, "the version")
        oldest = client.get("/v1/changes?since=oldest&limit=1").json["changes"][0]["version"]
    server.stop()
    size = os.path.getsize(os.path.join(server.data, "journal.sqlite"))
    expect(size < 4 << 20, f"{size} bytes after 12 MB of commits, with a limit of 1 MB")
    expect(oldest > 80, f"commits from version {oldest} on are kept")
    figures(f"{size >> 10} KiB after 12 MB of commits")


def test_a_recorded_action_of_an_unknown_type_leaves_state_and_history_as_they_were(workspace):
    """The program no longer knows the type: a later version of a domain may have removed it."""
    server = workspace.server()
    with server.client() as client:
        for number in range(1, 11):
            client.commit(add(number, id=f"a{number}"))
        before = client.get("/v1/state")
    server.stop()
    # The bytes of the file cannot be changed unseen, so the old actions come from a recording.
    lines = journal_output(workspace, "export", server.data).splitlines()
    for version in (3, 7):
        expect(b"counter/add" in lines[version], "no action to change:", lines[version])
        lines[version] = lines[version].replace(b"counter/add", b"gone/vanish")
    data = workspace.path("old")
    journal_output(workspace, "import", data, text=b"\n".join(lines))
    server = workspace.server(data=data)
    with server.client() as client:
        epoch = client.get("/v1").json["epoch"]
        after = client.get("/v1/state")
        expect_equal((after.version, after.body), (before.version, before.body), "version and state")
        history = judge_history(client, workspace.empty_state(), f"{epoch}.0")
        expect_equal([what["type"] for _, what in history.seen].count("gone/vanish"), 2, "old records in the history")
        expect_equal(
            client.get("/v1/actions/a3").json["action"]["type"], "gone/vanish", "the outcome of the old action"
        )
        filtered = client.get(f"/v1/changes?since={epoch}.0&types=counter/add").json
        expect_equal(len(filtered["changes"]), 8, "changes of a type that is known")
        expect_equal(client.commit(add(1))["version"], 11, "the next version")


def load_until_snapshot(server, client):
    """Commits until the journal has a second snapshot, and a little more."""
    lines = b"\n".join(
        add(1) if number % 2 else action("tasks/add", {"id": number, "title": "t"}) for number in range(10_500)
    )
    answer = client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
    expect_equal((answer.status, answer.body.count(b'"changed":true')), (200, 10_500), "the bulk load")

    wait_until(
        lambda: edit_journal(server, "SELECT count(*) FROM snapshots")[0] == [(2,)], "a second snapshot in the journal"
    )
    for _ in range(100):
        client.commit(add(2))
    client.commit(add(2), Idempotency_Key="kept")
