"""GET /v1/journal/backup: who may have one, what is in it, and how it ends."""

import ctypes
import glob
import hashlib
import http.client
import io
import json
import os
import socket
import stat
import tarfile
import time

import pytest

from durability.test_backups import Writers, state_at
from harness.actions import action, add
from harness.expectations import expect, expect_equal, wait_until
from harness.journal import journal_output, journal_refusal
from harness.messages import encode_request, version_of
from harness.tokens import bearer, make_token, token_names

BACKUP = "/v1/journal/backup"


def fetch(server, fields=None):
    """The answer and its body; `http.client.IncompleteRead` where it was cut off."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", BACKUP, headers=fields or {})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def unpack(body, place):
    """Unpacks an archive into a data directory of its own."""
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        members = archive.getmembers()
        expect_equal([member.name for member in members], ["journal.sqlite", "fence"], "the files of the backup")
        expect(all(member.mode == 0o600 and member.isreg() for member in members), "their modes")
        os.mkdir(place)
        for member in members:
            with open(os.path.join(place, member.name), "wb") as file:
                file.write(archive.extractfile(member).read())
    return place


def fill(server, megabytes):
    """A state and a journal that fit into no buffer of a socket."""
    with server.client() as client:
        for number in range(megabytes):
            lines = b"\n".join(
                action("tasks/add", {"id": number * 1000 + index, "title": hashlib.sha256(b"%d" % index).hexdigest() * 15})
                for index in range(1000)
            )
            expect_equal(client.post(lines, Content_Type="application/x-ndjson").status, 200, "a load")


def begin(server, fields=None):
    """A client that has asked for a backup and reads nothing; its socket takes little."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(20)
    client.connect(("127.0.0.1", server.port))
    client.sendall(encode_request("GET", BACKUP, None, fields))
    expect(client.recv(15).startswith(b"HTTP/1.1 200 OK"), "the backup did not begin")
    return client


def rest(client):
    """What a client reads to the end of its connection."""
    data = bytearray()
    try:
        while more := client.recv(1 << 18):
            data += more
    except ConnectionError:
        pass
    return bytes(data)


def test_a_backup_under_load_has_the_state_of_its_version_byte_by_byte(workspace, figures):
    server = workspace.server()
    writers = Writers(workspace, server)
    backups = []
    for number in range(4):
        time.sleep(0.3)
        with server.client() as client:
            before = version_of(client.get("/v1").json["cursor"])
        answer, body = fetch(server)
        expect_equal((answer.status, answer.getheader("content-type")), (200, "application/x-tar"), "the answer")
        last = version_of(answer.getheader("state-cursor"))
        expect(last >= before, f"the backup ends at {last}, although {before} was acknowledged before it")
        backups.append((unpack(body, workspace.path(f"backup{number}")), last))
    writers.stop()
    answer, body = fetch(server)
    backups.append((unpack(body, workspace.path("quiet")), version_of(answer.getheader("state-cursor"))))
    with server.client() as client:
        latest = client.get("/v1/state")
    expect(backups[3][1] > backups[0][1], "nothing was written meanwhile")
    expect_equal(backups[-1][1], version_of(latest.cursor), "the version of the last backup")
    expect_equal(glob.glob(server.data + "/.*"), [], "what the backups have left in the data directory")
    for backup, last in backups:
        journal_output(workspace, "verify", backup, "--deep")
        expect_equal(state_at(workspace, backup, last), state_at(workspace, server.data, last), f"the state of {last}")
        for flags in [(), ("--same-epoch",)]:
            data = workspace.path(f"restored{workspace.count()}")
            journal_output(workspace, "restore", data, "--from", backup, *flags)
            copy = workspace.server(data=data)
            with server.client() as ours, copy.client() as theirs:
                restored = theirs.get("/v1/state")
                expect_equal(restored.json, ours.get(f"/v1/state?version={last}").json, "the state over HTTP")
                if last == version_of(latest.cursor):
                    expect_equal(
                        (restored.body, restored.fields["etag"]),
                        (latest.body, latest.fields["etag"]),
                        "the bytes of the state, and its ETag",
                    )
                expect_equal(theirs.commit(add(1))["version"], last + 1, "the next version")
            copy.stop()
    server.stop()
    figures(f"backups at versions {[last for _, last in backups]}")


def test_only_a_client_that_may_see_and_operate_everything_gets_a_backup(workspace):
    data = workspace.path("data")
    may_not = [
        make_token(workspace, data, "metrics", "--operate"),
        make_token(workspace, data, "reader", "--read", "*", "--others"),
        make_token(workspace, data, "own", "--read", "*", "--operate"),
        make_token(workspace, data, "part", "--read", "/counter", "--read", "actions:*", "--others", "--operate"),
    ]
    may = [
        make_token(workspace, data, "backup", "--read", "*", "--others", "--operate"),
        make_token(workspace, data, "admin", "--all"),
    ]
    server = workspace.server(data=data)
    with server.client() as client:
        for token in may_not:
            for method in ("GET", "HEAD", "POST", "OPTIONS"):
                answers = [
                    client.request(method, target, None, bearer(token) | {"X-Request-Id": "x"})
                    for target in (BACKUP, "/v1/journal/nothing")
                ]
                for answer in answers:
                    del answer.fields["date"]
                expect(str(answers[0]) == str(answers[1]), f"{method} tells that there are backups:", answers[0])
                expect_equal(answers[0].status, 404, method)
        for token in may:
            head = client.request("HEAD", BACKUP, None, bearer(token))
            expect_equal((head.status, head.fields["content-type"]), (200, "application/x-tar"), "HEAD")
            expect_equal(client.request("POST", BACKUP, b"", bearer(token)).status, 405, "POST")
            expect_equal(client.request("GET", BACKUP + "?pretty", None, bearer(token)).status, 400, "a parameter")
            expect_equal(fetch(server, bearer(token))[0].status, 200, "GET")
        expect_equal(client.get(BACKUP).status, 401, "GET without a token")
    expect_equal(fetch(server, bearer(may[0]) | {"Content-Length": "0"})[0].status, 200, "GET with an empty body")


def test_a_server_in_memory_has_no_backup(workspace):
    with workspace.server(data="none").client() as client:
        answer = client.get(BACKUP)
        expect_equal((answer.status, answer.json["code"]), (404, "no-journal"), "the answer")


def test_there_is_one_backup_at_a_time_and_a_client_that_leaves_makes_way(workspace):
    server = workspace.server()
    fill(server, 8)
    descriptors = server.descriptors()
    client = begin(server)
    answer, body = fetch(server)
    expect_equal((answer.status, json.loads(body)["code"]), (503, "backup-under-way"), "the second one")
    expect_equal(answer.getheader("retry-after"), "10", "when to come back")
    with server.client() as other:
        other.commit(add(1))
        expect_equal(other.get("/v1/state/counter/value").json, 1, "the value beside a backup")
    expect_equal(glob.glob(server.data + "/.*"), [], "the data directory while a backup is being sent")
    client.close()
    wait_until(lambda: fetch(server)[0].status == 200, "a backup after the client has left")
    # SQLite keeps one descriptor of a file that another connection of the process has locked, and uses it again.
    wait_until(lambda: server.descriptors() <= descriptors + 1, "the files of the backups are closed")
    wait_until(lambda: "backup cut off" in server.log_text(), "the log says that a backup was cut off")


@pytest.mark.prompt
def test_a_revoked_token_and_a_stop_cut_a_backup_off(workspace):
    data = workspace.path("data")
    token = make_token(workspace, data, "backup", "--all")
    server = workspace.server(data=data)
    admin = make_token(workspace, data, "admin", "--all")
    with server.client() as client:
        wait_until(lambda: client.get("/v1", **bearer(admin)).status == 200, "the second token")
        for number in range(8):
            lines = b"\n".join(
                action("tasks/add", {"id": number * 1000 + index, "title": "x" * 960}) for index in range(1000)
            )
            client.post(lines, Content_Type="application/x-ndjson", **bearer(admin))
    client = begin(server, bearer(token))
    os.rename(data + "/tokens.json", data + "/tokens.old")
    with open(data + "/tokens.old") as file:
        kept = [entry for entry in json.load(file)["tokens"] if entry["subject"] == "admin"]
    with open(data + "/tokens.new", "w") as file:
        json.dump({"tokens": kept}, file)
    begun = time.monotonic()
    os.rename(data + "/tokens.new", data + "/tokens.json")
    wait_until(lambda: "the credential has ended" in server.log_text(), "the end of the backup", seconds=1)
    expect(time.monotonic() - begun < 1.2, f"the backup lasted {time.monotonic() - begun:.2f} s")
    expect(not rest(client).endswith(b"0\r\n\r\n"), "the body has an end, although it is not complete")
    client = begin(server, bearer(admin))
    server.terminate()
    expect(not rest(client).endswith(b"0\r\n\r\n"), "the body has an end at a stop")
    expect_equal(server.wait(), 0, "the exit code")
    expect_equal(token_names(data).keys(), {"admin"}, "the tokens")


def test_a_part_of_a_backup_is_refused(workspace):
    """The fence is the last file; an archive that was cut off anywhere gives no journal."""
    server = workspace.server()
    with server.client() as client:
        client.commit(add(3))
    _, body = fetch(server)
    place = workspace.path("cut")
    os.mkdir(place)
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        with open(place + "/journal.sqlite", "wb") as file:
            file.write(archive.extractfile("journal.sqlite").read())
        end = archive.getmember("fence").offset
    journal_refusal(workspace, "restore", workspace.path("restored"), "fence", "--from", place)
    with pytest.raises(tarfile.ReadError), tarfile.open(fileobj=io.BytesIO(body[: end - 600])) as archive:
        archive.getmembers()


def test_what_a_kill_leaves_of_a_copy_is_removed_by_the_next_start(workspace):
    """The kill comes while the copy is made: there is a draft, for this user only, and then there is none."""
    server = workspace.server()
    fill(server, 16)
    place = server.data + "/.outgoing"
    for _ in range(20):
        client = socket.create_connection(("127.0.0.1", server.port), 20)
        client.sendall(encode_request("GET", BACKUP, None, {}))
        end = time.monotonic() + 10
        while not os.path.exists(place + "/draft.sqlite") and time.monotonic() < end:
            pass
        server.process.kill()
        server.process.wait()
        client.close()
        left = os.path.exists(place)
        if left:
            expect_equal(stat.S_IMODE(os.stat(place).st_mode), 0o700, "the permissions of the directory")
            for path in glob.glob(place + "/*"):
                expect_equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, path)
        server.start()
        expect(not os.path.exists(place), "the start has left what the kill has left")
        if left:
            break
    expect(left, "no kill has met a copy")
    expect_equal(fetch(server)[0].status, 200, "the next backup")


def test_a_backup_does_not_fill_the_disk(workspace):
    """A small tmpfs: a copy has to leave 64 MiB."""
    place = workspace.path("small")
    os.mkdir(place)
    c = ctypes.CDLL(None, use_errno=True)
    if c.mount(b"none", place.encode(), b"tmpfs", 0, b"size=80m") != 0:
        pytest.skip(f"this user may not mount: {os.strerror(ctypes.get_errno())}")
    workspace.at_close.append(lambda: c.umount2(place.encode(), 2))
    server = workspace.server(data=place + "/data")
    with server.client() as client:
        client.commit(add(1))
        expect_equal(fetch(server)[0].status, 200, "with room")
        with open(place + "/ballast", "wb") as file:
            file.write(b"x" * (20 << 20))
        answer, body = fetch(server)
        expect_equal((answer.status, json.loads(body)["code"]), (507, "no-room-for-backup"), "without room")
        expect(client.commit(add(1))["version"] == 2, "the journal goes on")
    expect_equal(glob.glob(place + "/data/.*"), [], "what the refusal has left")
