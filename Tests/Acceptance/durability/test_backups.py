"""`storekeeper journal`: info, backup, restore, compact and verify --deep."""

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from harness.actions import action, add
from harness.expectations import expect, expect_equal
from harness.journal import journal_output, journal_refusal
from harness.messages import version_of
from harness.worker import processes
from harness.writers import write_through_kills


def say_versions(words):
    """The two versions in `backed up: versions 0 to 300, 300 commits, epoch ...`."""
    text = words.decode().split()
    return int(text[text.index("versions") + 1]), int(text[text.index("to") + 1].rstrip(","))


def state_at(workspace, data, version):
    """The state of a version in a data directory.

    Patches add members at the end of an object and snapshots have the order of the domain, so that the bytes of the export
    depend on which snapshots there are. The bytes over HTTP do not.
    """
    return json.loads(journal_output(workspace, "export", data, "--since", str(version)).splitlines()[0])["state"]


class Writers:
    """Writers that post keyed and named actions to a server until they are stopped."""

    def __init__(self, workspace, server, count=4):
        port, self.finished = processes.Value("i", server.port), processes.Event()
        self.workers = [
            workspace.worker(
                write_through_kills,
                port,
                f"w{name}",
                name % 2 == 0,
                self.finished,
                processes.Value("q", 0),
                workspace.seed,
            )
            for name in range(count)
        ]

    def stop(self):
        self.finished.set()
        return [worker.result(60) for worker in self.workers]


def test_a_backup_under_load_has_the_state_of_its_version_byte_by_byte(workspace, figures):
    """Writers run; each of four backups is restored, with and without its epoch, and compared with the server.

    A fifth one is of the version that the writers have left, so that both servers encode the same state.
    """
    server = workspace.server()
    writers = Writers(workspace, server)
    sizes = []
    backups = []
    for number in range(4):
        time.sleep(0.4)
        with server.client() as client:
            before = version_of(client.get("/v1").json["cursor"])
        backup = workspace.path(f"backup{number}")
        first, last = say_versions(journal_output(workspace, "backup", server.data, "--to", backup))
        expect(last >= before, f"the backup ends at {last}, although {before} was acknowledged before it")
        backups.append((backup, last))
        sizes.append(last)
    writers.stop()
    quiet = workspace.path("quiet")
    backups.append((quiet, say_versions(journal_output(workspace, "backup", server.data, "--to", quiet))[1]))
    with server.client() as client:
        latest = client.get("/v1/state")
    expect(sizes[-1] > sizes[0], "nothing was written meanwhile:", sizes)
    expect_equal(backups[-1][1], version_of(latest.cursor), "the version of the last backup")
    for backup, last in backups:
        journal_output(workspace, "verify", backup, "--deep")
        then = state_at(workspace, server.data, last)
        expect_equal(state_at(workspace, backup, last), then, f"the state of version {last} in the backup")
        info = json.loads(journal_output(workspace, "info", backup, "--json"))
        expect_equal((info["fence"]["stage"], info["fence"]["version"]), ("closed", last), "the fence of the backup")
        for flags in [(), ("--same-epoch",)]:
            data = workspace.path(f"restored{workspace.count()}")
            journal_output(workspace, "restore", data, "--from", backup, *flags)
            journal_output(workspace, "verify", data, "--deep")
            expect_equal(state_at(workspace, data, last), then, f"the state of version {last} {flags}")
            copy = workspace.server(data=data)
            with server.client() as ours, copy.client() as theirs:
                expect_equal(version_of(theirs.get("/v1").json["cursor"]), last, "the version of the restored server")
                restored = theirs.get("/v1/state")
                expect_equal(restored.json, ours.get(f"/v1/state?version={last}").json, "the state over HTTP")
                if backup == quiet:
                    expect_equal(
                        (restored.body, restored.fields["etag"]),
                        (latest.body, latest.fields["etag"]),
                        "the bytes of the state, and its ETag",
                    )
                is_same = theirs.get("/v1").json["epoch"] == ours.get("/v1").json["epoch"]
                expect_equal(is_same, bool(flags), "whether the epoch is the same")
                expect_equal(theirs.commit(add(1))["version"], last + 1, "the next version")
            copy.stop()
            journal_refusal(workspace, "restore", data, "has a journal already", "--from", backup, *flags)
        journal_refusal(workspace, "backup", server.data, "has a journal already", "--to", backup)
    server.stop()
    figures(f"backups at versions {sizes}")


def test_a_retry_with_a_key_of_the_backup_commits_nothing_again(workspace):
    server = workspace.server()
    key = {"Idempotency_Key": '"once"'}
    with server.client() as client:
        client.post(add(5, id="mine"), **key)
        backup = workspace.path("backup")
        journal_output(workspace, "backup", server.data, "--to", backup)
        client.post(add(5, id="mine"), **key)
        expect_equal(client.get("/v1/state/counter/value").json, 5, "the value")
    for flags in [(), ("--same-epoch",)]:
        data = workspace.path(f"restored{flags}")
        journal_output(workspace, "restore", data, "--from", backup, *flags)
        copy = workspace.server(data=data)
        with copy.client() as client:
            answer = client.post(add(5, id="mine"), **key)
            expect_equal((answer.status, answer.json["version"]), (200, 1), "the retry")
            expect_equal(client.get("/v1/state/counter/value").json, 5, "the value after the retry")
            expect_equal(client.get("/v1/actions/mine").status, 200, "the look for the ID")
        copy.stop()


@pytest.mark.rounds(12, long=80)
def test_a_kill_during_a_backup_or_a_restore_leaves_nothing_half(workspace, rounds, figures):
    """The killed command has left no journal or a whole one, and the next one to the same place works."""
    generator = random.Random(workspace.seed)
    server = workspace.server()
    with server.client() as client:
        for _ in range(12):
            lines = b"\n".join(
                action("tasks/add", {"id": generator.randrange(1 << 40), "title": "x" * 400}) for _ in range(500)
            )
            client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
        last = version_of(client.get("/v1").json["cursor"])
    whole = workspace.path("whole")
    begun = time.monotonic()
    journal_output(workspace, "backup", server.data, "--to", whole)
    times = {"backup": time.monotonic() - begun}
    begun = time.monotonic()
    journal_output(workspace, "restore", workspace.path("first"), "--from", whole)
    times["restore"] = time.monotonic() - begun
    state = state_at(workspace, whole, last)
    counts = {"none": 0, "whole": 0}
    for number in range(rounds):
        command = ("backup", "restore")[number % 2]
        place = workspace.path(f"{command}{number}")
        arguments = {
            "backup": ["--data", server.data, "--to", place],
            "restore": ["--data", place, "--from", whole, *(["--same-epoch"] if number % 4 == 1 else [])],
        }[command]
        process = subprocess.Popen(
            [workspace.binary, "journal", command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        begun = time.monotonic()
        try:
            process.wait(generator.uniform(0, times[command] * 1.1))
            # The machine may have been busier when the time was taken: the next kills come earlier.
            times[command] = min(times[command], time.monotonic() - begun)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait(20)
        if os.path.exists(os.path.join(place, "journal.sqlite")):
            counts["whole"] += 1
        else:
            counts["none"] += 1
            words = {"backup": (server.data, "--to", place), "restore": (place, "--from", whole)}[command]
            journal_output(workspace, command, *words)
        journal_output(workspace, "verify", place, "--deep")
        expect_equal(state_at(workspace, place, last), state, f"the state after a killed {command}")
    expect(counts["none"] > rounds // 4, "hardly any command was killed in its middle:", counts)
    expect_equal(
        sorted(name for name in os.listdir(server.data) if "draft" in name), [], "drafts in the server's directory"
    )
    server.stop()
    figures(f"{counts['none']} left nothing, {counts['whole']} a whole journal")


def test_info_says_what_there_is_beside_a_server_and_after_it(workspace):
    server = workspace.server()
    with server.client() as client:
        for _ in range(7):
            client.commit(add(1))
        client.post(add(1), Idempotency_Key='"k"')
        epoch = client.get("/v1").json["epoch"]
    running = json.loads(journal_output(workspace, "info", server.data, "--json"))
    expect_equal(running["epoch"], epoch, "the epoch")
    expect_equal(running["versions"], {"oldestState": 0, "oldestCommit": 1, "latest": 8}, "the versions")
    expect_equal((running["commits"], running["keys"], running["format"]), (8, 1, 2), "commits, keys, format")
    expect_equal((running["fence"]["stage"], running["fence"]["version"]), ("open", 8), "the fence")
    expect_equal(running["isInUse"], True, "whether a server runs")
    for name in ("journal.sqlite", "journal.sqlite-wal", "fence"):
        size = os.path.getsize(os.path.join(server.data, name))
        expect_equal(running["files"][name], size, f"the bytes of {name}")
    server.stop()
    stopped = json.loads(journal_output(workspace, "info", server.data, "--json"))
    expect_equal((stopped["fence"]["stage"], stopped["isInUse"]), ("closed", False), "the fence, and whether a server runs")
    table = journal_output(workspace, "info", server.data).decode()
    expect(f"epoch                {epoch}\n" in table and "in use               no" in table, "the table:", table)
    journal_refusal(workspace, "info", workspace.path("nothing"), "there is no journal")


def test_a_compaction_gives_back_what_the_settings_allow(workspace, figures):
    server = workspace.server()
    with server.client() as client:
        for _ in range(30):
            lines = b"\n".join([add(1)] * 1000)
            client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
        last = version_of(client.get("/v1").json["cursor"])
    journal_refusal(workspace, "compact", server.data, "another process is using")
    server.stop()
    state = state_at(workspace, server.data, last)
    environment = dict(os.environ, STOREKEEPER_JOURNAL_COMMITS_MAX="100", STOREKEEPER_JOURNAL_SNAPSHOTS_MAX="2")
    done = subprocess.run(
        [workspace.binary, "journal", "compact", "--data", server.data],
        capture_output=True,
        timeout=60,
        env=environment,
    )
    expect_equal((done.returncode, done.stderr), (0, b""), "exit code and standard error")
    words = done.stdout.decode().split()
    before, after, dropped = (int(word) for word in (words[1], words[4], words[6]))
    expect(after < before and dropped > 5000, "the sentence:", done.stdout)
    expect_equal(after, os.path.getsize(os.path.join(server.data, "journal.sqlite")), "the bytes of the file")
    journal_output(workspace, "verify", server.data, "--deep")
    expect_equal(state_at(workspace, server.data, last), state, "the state after the compaction")
    server.start()
    with server.client() as client:
        expect_equal(client.commit(add(1))["version"], last + 1, "the next version")
    server.stop()
    figures(done.stdout.decode().strip())


def test_a_damaged_backup_is_not_restored(workspace):
    server = workspace.server()
    with server.client() as client:
        for _ in range(5):
            client.commit(add(1))
    backup = workspace.path("backup")
    journal_output(workspace, "backup", server.data, "--to", backup)
    server.stop()
    for number, (sql, says) in enumerate(
        [
            (None, "the fence"),
            ("UPDATE segments SET body = zeroblob(length(body)) WHERE first = 1", "versions 1 to 5"),
        ]
    ):
        broken = workspace.path(f"broken{number}")
        shutil.copytree(backup, broken)
        if sql:
            with contextlib.closing(sqlite3.connect(os.path.join(broken, "journal.sqlite"))) as database, database:
                database.execute(sql)
        else:
            os.remove(os.path.join(broken, "fence"))
        for flags in [(), ("--same-epoch",)]:
            data = workspace.path(f"never{number}{len(flags)}")
            journal_refusal(workspace, "restore", data, says, "--from", broken, *flags)
            expect(not os.path.exists(data), f"a failed restore {flags} has left the directory that it made")
            os.makedirs(data)
            journal_refusal(workspace, "restore", data, says, "--from", broken, *flags)
            # A directory that was there stays.
            expect_equal([name for name in os.listdir(data) if "sqlite" in name], [], "files of a journal")
