"""`storekeeper journal` on histories in etcd, and the move of a history from a directory into etcd and back."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time

import pytest

from durability.test_backups_over_http import fetch, unpack
from harness.actions import action, add
from harness.etcd import Etcds
from harness.expectations import expect, expect_equal, paced, wait_until
from harness.journal import journal_output, journal_refusal, run_journal
from harness.messages import version_of
from harness.server import Server, start_refusal
from harness.tokens import bearer, make_token


def fill(client, seed, count=300):
    """Commits of each kind: with IDs, keys and trace contexts, batches, and some that change nothing."""
    chance = random.Random(seed)
    for number in range(count):
        kind = chance.randrange(5)
        if kind == 0:
            client.commit(add(chance.randint(-9, 9)))
        elif kind == 1:
            client.commit(add(number, id=f"id {number}"))
        elif kind == 2:
            client.commit(action("tasks/add", {"id": number, "title": chance.choice(["a", 'é "/~\u2028', "x" * 300])}))
        elif kind == 3:
            client.commit(b"[" + add(1, id=f"in batch {number}") + b"," + action("counter/reset") + b"]")
        else:
            trace = f"00-{number + 1:032x}-{number + 1:016x}-01"
            client.post(add(number), Idempotency_Key=f'"key {number}"', Traceparent=trace)
    client.post(add(5, id="mine"), Idempotency_Key='"once"')


def large(client, count, size=200):
    """That many commits of that many bytes, of which every thousand is a few turns."""
    for start in range(0, count, 1000):
        lines = b"\n".join(
            action("tasks/add", {"id": start + number, "title": "x" * size}) for number in range(min(1000, count - start))
        )
        answer = client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
        expect_equal(answer.status, 200, "the status of a thousand lines")


def epoch_of(workspace, place):
    return json.loads(journal_output(workspace, "info", place, "--json"))["epoch"]


def test_a_history_moves_into_etcd_and_back_and_is_the_same_for_its_clients(workspace):
    etcds = Etcds(workspace, 1)
    server = workspace.server()
    with server.client() as client:
        fill(client, workspace.seed)
        cursor = client.get("/v1").json["cursor"]
        latest, state = version_of(cursor), client.get("/v1/state")
    middle = f"{cursor.partition('.')[0]}.{latest - 40}"
    address = etcds.address("shops/moved")
    journal_refusal(workspace, "copy", server.data, "another process is using", "--to", address)
    expect_equal(etcds.keys("shops/"), {}, "what a refused copy leaves")
    server.stop()
    exported = journal_output(workspace, "export", server.data)
    said = journal_output(workspace, "copy", server.data, "--to", address).decode()
    expect(f"versions 0 to {latest}, {latest} commits, epoch {cursor.partition('.')[0]}" in said, "what copy says:", said)
    expect("shops/moved/draft" not in etcds.keys("shops/"), "the mark of a draft is left")
    journal_output(workspace, "verify", address)
    expect_equal(journal_output(workspace, "export", address), exported, "the export of etcd")
    since = str(latest - 7)
    expect_equal(
        journal_output(workspace, "export", address, "--since", since).splitlines()[1:],
        exported.splitlines()[-7:],
        "an export of the last commits",
    )
    back = workspace.path("back")
    journal_output(workspace, "copy", address, "--to", back)
    journal_output(workspace, "verify", back, "--deep")
    expect_equal(journal_output(workspace, "export", back), exported, "the export of what came back")
    for place in (address, back):
        moved = Server(workspace, place, {}).start()
        with moved.client() as client:
            page = client.get(f"/v1/changes?since={middle}&limit=1000").json["changes"]
            expect_equal([change["version"] for change in page], list(range(latest - 39, latest + 1)), "a follower's page")
            found = client.get("/v1/state")
            expect_equal((found.body, found.cursor), (state.body, cursor), "the state and its cursor")
            again = client.post(add(5, id="mine"), Idempotency_Key='"once"')
            expect_equal(
                (again.status, again.json["version"], "idempotency-replayed" in again.fields),
                (200, latest, True),
                "the retry of a keyed action",
            )
            # A server on etcd looks for IDs in the commits behind the snapshot that it has begun with.
            if place == back:
                expect_equal(client.get("/v1/actions/mine").json["version"], latest, "the look for an ID")
            expect_equal(client.commit(add(1))["version"], latest + 1, "the next version")
            following = client.get(f"/v1/changes?since={cursor}&limit=10").json["changes"]
            expect_equal([change["version"] for change in following], [latest + 1], "what a cursor sees behind the move")
        moved.stop()
        journal_output(workspace, "verify", place)


def test_the_tools_read_a_history_in_etcd_while_its_servers_write(workspace):
    etcds = Etcds(workspace, 1)
    address = etcds.address("busy")
    server = Server(workspace, address, {}).start()
    with server.client() as client:
        fill(client, workspace.seed)
        before = version_of(client.get("/v1").json["cursor"])
        epoch = client.get("/v1").json["epoch"]
        writer = subprocess.Popen(
            ["python3", "-c", WRITER, str(server.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        workspace.started.append(writer)
        backup = workspace.path("backup")
        said = journal_output(workspace, "backup", address, "--to", backup).decode()
        journal_output(workspace, "verify", address)
        writer.kill()
        writer.wait()
        expect(f"epoch {epoch}" in said, "what backup says:", said)
        facts = json.loads(journal_output(workspace, "info", backup, "--json"))
        last = facts["versions"]["latest"]
        expect(last >= before and facts["epoch"] == epoch, "the backup:", facts)
        journal_output(workspace, "verify", backup, "--deep")
        then = json.loads(journal_output(workspace, "export", backup, "--since", str(last)).splitlines()[0])["state"]
        expect_equal(then, client.get(f"/v1/state?version={last}").json, "the state of the backup's version")
        for name, flags in [("renewed", ()), ("same", ("--same-epoch",))]:
            restored = etcds.address(name)
            journal_output(workspace, "restore", restored, "--from", backup, *flags)
            journal_output(workspace, "verify", restored)
            expect_equal(epoch_of(workspace, restored) == epoch, bool(flags), f"whether {name} has the epoch")
            copy = Server(workspace, restored, {}).start()
            with copy.client() as other:
                again = other.post(add(5, id="mine"), Idempotency_Key='"once"')
                expect_equal((again.status, "idempotency-replayed" in again.fields), (200, True), "a retry after restore")
                expect_equal(other.get("/v1/state").json, then, "the state of the restored server")
            copy.stop()
        again = workspace.path("again")
        journal_output(workspace, "restore", again, "--from", etcds.address("same"), "--same-epoch")
        expect_equal(
            journal_output(workspace, "export", again), journal_output(workspace, "export", backup), "a restored directory"
        )
    server.stop()


def test_a_server_on_etcd_sends_a_backup_that_is_a_directory(workspace):
    etcds = Etcds(workspace, 1)
    address = etcds.address("sent")
    own = workspace.path("own")
    server = Server(workspace, address, {"cluster_directory": own}).start()
    with server.client() as client:
        fill(client, workspace.seed, 80)
        answer, body = fetch(server)
        cursor = client.get("/v1").json["cursor"]
        expect_equal((answer.status, answer.getheader("State-Cursor")), (200, cursor), "the answer")
        backup = unpack(body, workspace.path("unpacked"))
        journal_output(workspace, "verify", backup, "--deep")
        expect_equal(
            journal_output(workspace, "export", backup), journal_output(workspace, "export", address), "the backup"
        )
        expect(".outgoing" not in os.listdir(own), "the copy is still there")
    server.stop()
    without = Server(workspace, address, {}).start()
    with without.client() as client:
        answer = client.get("/v1/journal/backup")
        expect_equal((answer.status, answer.json["code"]), (404, "no-journal"), "the answer without a directory")


WRITER = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
while True:
    connection.request("POST", "/v1/actions", b'{"type":"counter/add","payload":{"amount":1}}')
    connection.getresponse().read()
"""


def test_info_and_check_say_what_is_in_etcd(workspace):
    etcds = Etcds(workspace, 3)
    address = etcds.address("facts")
    journal_refusal(workspace, "info", address, "there is no history facts in etcd")
    server = Server(workspace, address, {}).start()
    with server.client() as client:
        for _ in range(4):
            client.commit(add(1))
        client.post(add(1), Idempotency_Key='"k"')
        epoch = client.get("/v1").json["epoch"]
    facts = json.loads(journal_output(workspace, "info", address, "--json"))
    expect_equal((facts["format"], facts["epoch"], facts["commits"], facts["keys"]), (1, epoch, 5, 1), "the facts")
    expect_equal(facts["versions"], {"oldestState": 0, "oldestCommit": 1, "latest": 5}, "the versions")
    turns = [value for key, value in etcds.keys("facts/turns/").items() if len(value) > 16]
    expect_equal(facts["turns"], {"count": len(turns), "bytes": sum(map(len, turns))}, "the turns")
    sizes = [json.loads(value)["stateBytes"] for value in etcds.keys("facts/snapshots/").values()]
    expect_equal(facts["snapshots"], [{"version": 0, "bytes": sizes[0]}], "the snapshots")
    expect_equal(facts["etcds"], {"all": 3, "answering": 3}, "how many etcds answer")
    table = journal_output(workspace, "info", address).decode()
    expect(f"epoch                {epoch}\n" in table and "3 of 3 etcds answer" in table, "the table:", table)
    journal_refusal_of_setting(workspace, "compact", address, "works on a directory only")

    def check(place):
        done = subprocess.run([workspace.binary, "check", "--data", place], capture_output=True, text=True, timeout=60)
        expect_equal((done.returncode, done.stderr), (0, ""), "how check ends")
        return next(line for line in done.stdout.splitlines() if line.startswith("# journal: "))

    etcds.kill(1)
    found = check(address)
    expect("2 of 3 etcds answer" in found and f"epoch {epoch}, version 5" in found, "what check says:", found)
    expect("there is no history other in etcd" in check(etcds.address("other")), "what check says of a new name")
    expect("there is no journal in the data directory" in check(workspace.path("none yet")), "what check says of a directory")
    expect_equal(check("none"), "# journal: none", "what check says of none")
    etcds.kill(2)
    expect("1 of 3 etcds answer" in check(address), "what check says without a majority")
    server.kill()


def journal_refusal_of_setting(workspace, command, data, says, *arguments):
    done = run_journal(workspace, command, data, *arguments)
    expect_equal((done.returncode, done.stdout), (78, b""), f"exit code and standard output of journal {command}")
    expect(says in done.stderr.decode(), f"journal {command} does not say {says!r}:", done.stderr.decode())


def test_an_import_into_etcd_is_there_whole_or_not_at_all_and_takes_no_name_that_has_a_history(workspace):
    etcds = Etcds(workspace, 1)
    server = workspace.server()
    with server.client() as client:
        fill(client, workspace.seed, 60)
        state = client.get("/v1/state").json
    server.stop()
    lines = journal_output(workspace, "export", server.data).splitlines()
    address = etcds.address("imported")
    for says, damaged in [("line 1: ", []), ("there is no further line", lines[:-1]), ("line 21: ", lines[:20] + lines[21:])]:
        journal_refusal(workspace, "import", address, says, text=b"\n".join(damaged))
        expect_equal(etcds.keys("imported/"), {}, "what a refused import leaves")
    journal_output(workspace, "import", address, text=b"\n".join(lines))
    journal_output(workspace, "replay", etcds.address("replayed"), text=b"\n".join(lines))
    for name in ("imported", "replayed"):
        place = etcds.address(name)
        journal_output(workspace, "verify", place, "--domain", "showcase")
        expect(epoch_of(workspace, place) != json.loads(lines[0])["epoch"], f"{name} has the epoch of the recording")
        keys = etcds.keys(name + "/")
        for command, arguments in [("import", ()), ("replay", ()), ("restore", ("--from", server.data))]:
            journal_refusal(workspace, command, place, "already; another name is needed", *arguments, text=b"\n".join(lines))
        journal_refusal(workspace, "copy", server.data, "already; another name is needed", "--to", place)
        expect_equal(etcds.keys(name + "/"), keys, f"the keys of {name} after refusals")
        copy = Server(workspace, place, {}).start()
        with copy.client() as client:
            expect_equal(client.get("/v1/state").json, state, f"the state of {name}")
        copy.stop()
    for place in ("etcd://127.0.0.1/name", "none"):
        journal_refusal_of_setting(workspace, "copy", server.data, "etcd://", "--to", place)


@pytest.mark.rounds(4, long=30)
def test_a_copy_into_etcd_that_is_killed_leaves_no_history_and_the_next_one_succeeds(workspace, rounds, figures):
    etcds = Etcds(workspace, 1)
    server = workspace.server()
    with server.client() as client:
        large(client, 20_000)
    server.stop()
    exported = journal_output(workspace, "export", server.data)
    begun = time.monotonic()
    journal_output(workspace, "copy", server.data, "--to", etcds.address("timed"))
    duration = time.monotonic() - begun
    chance = random.Random(workspace.seed)
    killed = 0
    for number in range(rounds):
        name = f"killed{number}"
        address = etcds.address(name)
        process = subprocess.Popen(
            [workspace.binary, "journal", "copy", "--data", server.data, "--to", address],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        workspace.started.append(process)
        begun = lambda: etcds.keys(f"{name}/turns/") or process.poll() is not None
        wait_until(begun, "the copy begins", 20, pause=0.005)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0, duration / 2))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if f"{name}/meta" in etcds.keys(f"{name}/m"):
            continue
        killed += 1
        journal_refusal(workspace, "info", address, f"there is no history {name} in etcd")
        remains = etcds.keys(f"{name}/")
        start_refusal(workspace, address, "parts of a history that is not whole")
        expect_equal(etcds.keys(f"{name}/"), remains, "what a refused server has changed")
        journal_output(workspace, "copy", server.data, "--to", address)
        expect_equal(journal_output(workspace, "export", address), exported, "the export behind a killed copy")
    expect(killed > 0, "no copy was killed in its middle")
    figures(f"{killed} of {rounds} killed in the middle; 20,000 commits are copied in {duration:.1f} s")


def test_a_copy_goes_on_while_the_etcds_elect_another_leader(workspace):
    etcds = Etcds(workspace)
    server = workspace.server()
    with server.client() as client:
        large(client, 20_000)
    server.stop()
    exported = journal_output(workspace, "export", server.data)
    back = workspace.path("back")
    for source, place in [(server.data, etcds.address("through")), (etcds.address("through"), back)]:
        copy = subprocess.Popen(
            [workspace.binary, "journal", "copy", "--data", source, "--to", place],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        workspace.started.append(copy)
        time.sleep(0.4)
        leader = etcds.leader()
        etcds.kill(leader)
        said = copy.communicate(timeout=60)[1].decode()
        expect_equal((copy.returncode, said), (0, ""), f"how the copy to {place} ends")
        etcds.start(leader)
        etcds.wait()
        expect_equal(journal_output(workspace, "export", place), exported, f"the export of {place}")


def test_of_two_copies_to_one_name_one_makes_the_history(workspace):
    etcds = Etcds(workspace, 1)
    places = []
    for _ in range(2):
        server = workspace.server()
        with server.client() as client:
            large(client, 10_000)
        server.stop()
        places.append(server.data)
    address = etcds.address("one")
    copies = []
    for place in paced(places, 0.3):
        copies.append(
            subprocess.Popen(
                [workspace.binary, "journal", "copy", "--data", place, "--to", address],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        )
        workspace.started.append(copies[-1])
    errors = [copy.communicate(timeout=100)[1].decode() for copy in copies]
    expect_equal(sorted(copy.returncode for copy in copies), [0, 1], "the exit codes")
    winner = next(place for place, copy in zip(places, copies) if copy.returncode == 0)
    expect("another command makes a history" in "".join(errors) or "already" in "".join(errors), "the sentence:", errors)
    journal_output(workspace, "verify", address)
    expect_equal(
        journal_output(workspace, "export", address), journal_output(workspace, "export", winner), "what was made"
    )


def test_verify_names_the_version_of_a_turn_or_snapshot_in_etcd_that_is_damaged(workspace):
    etcds = Etcds(workspace, 1)
    address = etcds.address("hurt")
    server = Server(workspace, address, {}).start()
    with server.client() as client:
        for _ in range(20):
            client.commit(add(7))
    server.stop()
    journal_output(workspace, "verify", address)
    turns = etcds.keys("hurt/turns/")
    key = sorted(turns)[11]
    version = int(key.rpartition("/")[2])
    for index in (0, 16, len(turns[key]) - 1):
        damaged = bytearray(turns[key])
        damaged[index] ^= 1
        etcds.put(key, bytes(damaged))
        for command in ("verify", "export"):
            run = run_journal(workspace, command, address)
            text = run.stderr.decode()
            expect(run.returncode == 1 and f"the turn of version {version} in etcd" in text, f"{command} says:", text)
        copy = workspace.path(f"copy{index}")
        journal_refusal(workspace, "copy", address, f"the turn of version {version} in etcd", "--to", copy)
        etcds.put(key, turns[key])
    journal_output(workspace, "verify", address)
    etcds.delete(key)
    journal_refusal(workspace, "verify", address, f"the turn of version {version} in etcd is missing")
    etcds.put(key, turns[key])
    chunk, manifest = (sorted(etcds.keys(f"hurt/{kind}/"))[0] for kind in ("chunks", "snapshots"))
    for broken, says in [(chunk, "the snapshot of version 0 in etcd is damaged"), (manifest, "manifest")]:
        whole = etcds.keys(broken)[broken]
        etcds.put(broken, b"damaged")
        journal_refusal(workspace, "verify", address, says)
        etcds.put(broken, whole)
    # The chain is whole, and today's reducers make another state.
    lines = journal_output(workspace, "export", address).splitlines()
    lines[13] = lines[13].replace(b'"amount":7', b'"amount":8')
    tampered = etcds.address("tampered")
    journal_output(workspace, "import", tampered, text=b"\n".join(lines))
    says = "version 13 (counter/add): today's reducers make another state"
    journal_refusal(workspace, "verify", tampered, says, "--domain", "showcase")


def test_a_history_that_has_lost_its_beginning_to_the_retention_moves_with_what_is_kept(workspace):
    etcds = Etcds(workspace, 1)
    settings = {"journal_commits_max": 5_000, "journal_snapshots_max": 2, "history_commits_max": 100}
    address = etcds.address("old")
    server = Server(workspace, address, settings).start()
    lines = b"\n".join([add(1)] * 5_000)
    with server.client() as client:
        client.post(add(1, id="first"), Idempotency_Key='"first"')
        for _ in paced(range(8), 0.3):
            answer = client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
            expect_equal(answer.status, 200, "the status of 5,000 lines")
        cursor = client.get("/v1").json["cursor"]
    server.stop()
    facts = json.loads(journal_output(workspace, "info", address, "--json"))
    oldest = facts["versions"]["oldestCommit"] - 1
    expect(oldest > 10_000, "nothing was dropped:", facts)
    exported = journal_output(workspace, "export", address)
    back, again = workspace.path("back"), etcds.address("again")
    journal_output(workspace, "copy", address, "--to", back)
    journal_output(workspace, "copy", back, "--to", again)
    epoch, latest = cursor.split(".")
    for place in (back, again):
        journal_output(workspace, "verify", place)
        expect_equal(journal_output(workspace, "export", place), exported, f"the export of {place}")
        expect_equal(
            json.loads(journal_output(workspace, "info", place, "--json"))["versions"], facts["versions"], "the versions"
        )
        moved = Server(workspace, place, settings).start()
        with moved.client() as client:
            page = client.get(f"/v1/changes?since={epoch}.{oldest}&limit=5").json["changes"]
            expect_equal([change["version"] for change in page], list(range(oldest + 1, oldest + 6)), "the oldest commits")
            expect_equal(client.get(f"/v1/changes?since={epoch}.{oldest - 1}").status, 410, "what is before them")
            retry = client.post(add(1, id="first"), Idempotency_Key='"first"')
            expect_equal((retry.status, retry.json["version"]), (200, 1), "the retry of a dropped keyed action")
            expect_equal(client.commit(add(1))["version"], int(latest) + 1, "the next version")
        moved.stop()


def test_a_server_goes_on_with_a_copy_of_its_history_in_another_etcd_and_so_do_its_clients(workspace):
    old, new = Etcds(workspace, 1).address("moved"), Etcds(workspace, 1).address("moved")
    settings = {"cluster_directory": workspace.path("own")}
    server = Server(workspace, old, settings).start()
    with server.client() as client:
        for _ in range(3):
            client.commit(add(1))
        cursor = client.get("/v1").json["cursor"]
    server.stop()
    journal_output(workspace, "copy", old, "--to", new)
    moved = Server(workspace, new, settings).start()
    with moved.client() as client:
        expect_equal(client.get("/v1").json["cursor"], cursor, "the cursor in the other etcd")
        client.commit(add(1))
        answer = client.get(f"/v1/changes?since={cursor}")
        expect_equal((answer.status, len(answer.json["changes"])), (200, 1), "the changes since the move")


def test_a_commit_that_etcd_cannot_take_is_named_by_its_version_and_nothing_is_left(workspace):
    etcds = Etcds(workspace, 1)
    server = workspace.server()
    with server.client() as client:
        client.commit(add(1))
        many = [action("tasks/add", {"id": number, "title": "x" * 500}) for number in range(2_000)]
        expect_equal(client.post(b"[" + b",".join(many) + b"]").status, 200, "the status of a batch of two megabytes")
    server.stop()
    journal_refusal(
        workspace, "copy", server.data, "the commit of version 2 has", "--to", etcds.address("large")
    )
    expect_equal(etcds.keys("large/"), {}, "what is left")


def test_the_tools_use_etcd_as_a_user_who_may_write_below_the_name_only(workspace):
    etcds = Etcds(workspace, 1)
    server = workspace.server()
    with server.client() as client:
        fill(client, workspace.seed, 40)
    server.stop()
    exported = journal_output(workspace, "export", server.data)
    etcds.protect("mine/", "shop", "secret of shop")
    password = os.path.join(workspace.directory, "password")
    with open(password, "w") as file:
        file.write("secret of shop\n")
    user = ("--etcd-user", "shop", "--etcd-password", password)
    address = etcds.address("mine")
    journal_output(workspace, "copy", server.data, "--to", address, *user)
    journal_output(workspace, "verify", address, *user)
    expect_equal(journal_output(workspace, "export", address, *user), exported, "the export")
    journal_refusal(workspace, "export", address, "user name is empty")
    journal_refusal(workspace, "copy", server.data, "permission denied", "--to", etcds.address("other"), *user)


def test_the_tokens_move_with_the_history_and_stay_where_there_are_some(workspace):
    etcds = Etcds(workspace, 1)
    data, back = workspace.path("data"), workspace.path("back")
    make_token(workspace, data, "all", "--all")
    token = make_token(workspace, data, "page", "--read", "/counter", "--dispatch", "counter/*")
    server = workspace.server(data=data)
    with server.client() as client:
        expect_equal(client.post(add(2), **bearer(token)).status, 200, "the status in the directory")
    server.stop()
    address = etcds.address("tokens")
    said = journal_output(workspace, "copy", data, "--to", address).decode()
    expect("token file" in said, "what copy says:", said)

    server = Server(workspace, address, {}).start()
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter").status, 401, "the status without a token")
        expect_equal(client.get("/v1/state/counter", **bearer(token)).json, {"value": 2}, "the state in etcd")
    server.stop()
    os.mkdir(back)
    mine = make_token(workspace, back, "mine", "--all")
    journal_output(workspace, "copy", address, "--to", back)
    server = workspace.server(data=back)
    with server.client() as client:
        statuses = [client.get("/v1/state/counter", **bearer(each)).status for each in (mine, token)]
        expect_equal(statuses, [200, 401], "the status with the token of the new place, and with the old one")
