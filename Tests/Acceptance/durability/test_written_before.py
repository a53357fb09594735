"""Data of 791a958b, which later programs go on with: written_by_791a958b has two directories, an etcd, and what is in them."""

import http.client
import json
import os
import subprocess
import tarfile

import pytest

from harness.etcd import free_ports
from harness.expectations import expect, expect_equal, wait_until
from harness.server import Server
from harness.tokens import bearer

FOLDER = os.path.join(os.path.dirname(__file__), "written_by_791a958b")
with open(os.path.join(FOLDER, "expected.json")) as file:
    EXPECTED = json.load(file)
#: Those servers remembered keys for a year.
SETTINGS = {"idempotency_seconds": 31536000}


def unpacked(workspace, name):
    with tarfile.open(os.path.join(FOLDER, name + ".tar.gz")) as archive:
        archive.extractall(workspace.directory, filter="data")
    return os.path.join(workspace.directory, name)


def started_etcd(workspace):
    """The address of the history in the etcd."""
    port, peer = free_ports(2)
    with open(os.path.join(workspace.directory, "etcd.log"), "wb") as log:
        process = subprocess.Popen(
            ["etcd", "--data-dir", unpacked(workspace, "etcd"), "--unsafe-no-fsync"]
            + [f"--{kind}-client-urls=http://127.0.0.1:{port}" for kind in ("listen", "advertise")]
            + [f"--listen-peer-urls=http://127.0.0.1:{peer}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    workspace.started.append(process)

    def is_healthy():
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            return b"true" in connection.getresponse().read()
        except OSError:
            return False

    wait_until(is_healthy, "etcd is healthy", 30)
    return f"etcd://127.0.0.1:{port}/fix"


class Continued(Server):
    """A server whose `data` is taken as it is, also in a run with another journal."""

    def __init__(self, workspace, name):
        if name == "etcd":
            super().__init__(workspace, started_etcd(workspace), {"domain": "document", **SETTINGS})
        else:
            super().__init__(workspace, unpacked(workspace, name), {"domain": name, **SETTINGS})
        self.fields = bearer(EXPECTED[name]["token"]) if "token" in EXPECTED[name] else {}

    def get(self, target, **fields):
        with self.client() as client:
            return client.get(target, **self.fields, **fields)


def last_keyed_action(name):
    """The action of the last key, and its version."""
    if name == "showcase":
        return "key-199", {"type": "counter/add", "payload": {"amount": 199}}, 200
    return "key-29", {"type": "document/increment", "payload": {"path": "/count", "by": 29}}, 330


@pytest.mark.parametrize("name", EXPECTED)
def test_what_791a958b_has_written_goes_on(workspace, name):
    server, expected = Continued(workspace, name), EXPECTED[name]
    for start in ("the first start", "the second start"):
        server.start()

        state = server.get("/v1/state")
        expect_equal((state.cursor, state.fields["etag"]), (expected["cursor"], expected["tag"]), f"{start}: the state")
        expect_equal(state.body.decode(), expected["state"], f"{start}: the state")
        expect_equal(server.get("/v1/state", If_None_Match=expected["tag"]).status, 304, f"{start}: the tag")
        check_history(server, expected, start)
        if expected["schedule"] is not None:
            expect_equal(server.get("/v1/schedule").json, expected["schedule"], f"{start}: the schedule")
        check_key(server, name, start)
        if "ann" in expected:
            check_tokens_and_hook(server, expected, start)
        server.stop()

    # It also goes on in truth.
    server.start()
    with server.client() as client:
        document = {"type": "document/set", "payload": {"path": "/named", "value": 1}}
        action = {"type": "counter/add", "payload": {"amount": 1}} if name == "showcase" else document
        receipt = client.post(json.dumps(action).encode(), **server.fields).json
    epoch, version = expected["cursor"].split(".")
    expect_equal(receipt["cursor"], f"{epoch}.{int(version) + 1}", "the cursor of the next commit")
    server.stop()
    if name != "etcd":
        verify = [workspace.binary, "journal", "verify", "--deep", "--domain", server.settings["domain"], "--data"]
        result = subprocess.run([*verify, server.data], capture_output=True, text=True, timeout=60)
        expect_equal(result.returncode, 0, f"verify --deep: {result.stderr}")


def check_history(server, expected, start):
    epoch = expected["cursor"].split(".")[0]
    changes, cursor = [], f"{epoch}.0"
    while cursor != expected["cursor"]:
        page = server.get(f"/v1/changes?since={cursor}").json
        changes += page["changes"]
        cursor = page["next"]
    expect_equal(len(changes), expected["changes"], f"{start}: the number of commits")
    expect_equal(changes[-1]["patch"], expected["last_patch"], f"{start}: the last patch")


def check_key(server, name, start):
    key, action, version = last_keyed_action(name)
    with server.client() as client:
        again = client.post(json.dumps(action).encode(), **server.fields, Idempotency_Key=key)
    expect_equal((again.status, again.json.get("version")), (200, version), f"{start}: the receipt of {key}")


def check_tokens_and_hook(server, expected, start):
    with server.client() as client:
        seen = client.get("/v1/state/tasks", **bearer(expected["ann"]))
        hidden = client.get("/v1/state/counter", **bearer(expected["ann"]))
        unknown = client.get("/v1/state", **bearer("sk_" + "0" * 43))
    expect_equal((seen.status, hidden.status, unknown.status), (200, 404, 401), f"{start}: Ann's token, and an unknown one")
    hooks = server.get("/v1/operations").json["hooks"]
    expect_equal([hook["behind"] for hook in hooks], [expected["changes"]], f"{start}: how far hooks are behind")
