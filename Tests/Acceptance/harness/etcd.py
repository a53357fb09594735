"""Three etcds on loopback, which a test kills, stops and starts again."""

import base64
import contextlib
import functools
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess

from harness.expectations import Failure, wait_until
from harness.programs import free_ports


class Etcds:
    """A cluster of etcds with default timeouts, on loopback or each on a machine of its own.

    `certificates` has files of an authority, a certificate and a key, with which the etcds are reached by TLS only.
    """

    def __init__(self, workspace, count=3, machines=None, arguments=(), certificates=None):
        self.workspace, self.machines = workspace, machines
        self.arguments, self.certificates, self.token = list(arguments), certificates, None
        self.hosts = machines.addresses if machines else ["127.0.0.1"] * count
        ports = free_ports(2 * count)
        self.ports, self.peers = ports[:count], ports[count:]
        # The ports by which servers reach them: another network may be in between.
        self.reached = self.ports
        self.directory = os.path.join(workspace.directory, f"etcd{workspace.count()}")
        os.mkdir(self.directory)
        self.processes = [None] * count
        for index in range(count):
            self.start(index)
        self.wait()

    def start(self, index, cluster="new"):
        """Starts an etcd, which goes on with what its directory has; without any it joins a cluster that is `existing`."""
        members = ",".join(f"e{number}=http://{self.hosts[number]}:{port}" for number, port in enumerate(self.peers))
        scheme = "https" if self.certificates else "http"
        client, peer = f"{scheme}://{self.hosts[index]}:{self.ports[index]}", f"http://{self.hosts[index]}:{self.peers[index]}"
        files = []
        if self.certificates:
            authority, certificate, key = self.certificates
            files = ["--cert-file", certificate, "--key-file", key, "--trusted-ca-file", authority, "--client-cert-auth"]
        with open(os.path.join(self.directory, f"e{index}.log"), "ab") as log:
            self.processes[index] = subprocess.Popen(
                ["etcd", "--name", f"e{index}", "--data-dir", os.path.join(self.directory, f"e{index}")]
                + ["--listen-client-urls", client, "--advertise-client-urls", client]
                + ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
                + ["--initial-cluster", members, "--initial-cluster-state", cluster, "--logger", "zap"]
                + files
                + self.arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=self.machines and functools.partial(self.machines.enter, index),
            )
        self.workspace.started.append(self.processes[index])

    def kill(self, index):
        self.processes[index].kill()
        self.processes[index].wait()

    def signal(self, index, number):
        self.processes[index].send_signal(number)

    def replace(self, index):
        """Takes an etcd out of the cluster, and a new one without data in its place: a learner first, and then a member."""
        other = (index + 1) % len(self.processes)
        peer = f"http://{self.hosts[index]}:{self.peers[index]}"
        mine = lambda members: next((member for member in members if peer in member["peerURLs"]), None)
        old = mine(self.call(other, "/v3/cluster/member/list", {})["members"])["ID"]
        self.change(other, "remove", {"ID": old}, lambda members: mine(members) is None)
        self.kill(index)
        shutil.rmtree(os.path.join(self.directory, f"e{index}"))
        new = mine(self.change(other, "add", {"peerURLs": [peer], "isLearner": True}, mine))["ID"]
        self.start(index, cluster="existing")
        self.change(other, "promote", {"ID": new}, lambda members: not mine(members).get("isLearner"))

    def change(self, index, change, message, is_made, seconds=30):
        """Changes the members, which an etcd refuses within five seconds of a start and while it elects; returns them."""
        answer = None

        def made():
            nonlocal answer
            answer = self.call(index, f"/v3/cluster/member/{change}", message)
            members = self.call(index, "/v3/cluster/member/list", {})["members"]
            return is_made(members) and members

        # While it elects, it answers late or with an error.
        what = lambda: f"etcd does {change} a member: {answer}"
        return wait_until(made, what, seconds, pause=0.2, past=(TimeoutError, KeyError))

    def call(self, index, path, message, timeout=5):
        if self.certificates:
            authority, certificate, key = self.certificates
            context = ssl.create_default_context(cafile=authority)
            context.load_cert_chain(certificate, key)
            connection = http.client.HTTPSConnection("127.0.0.1", self.ports[index], timeout=timeout, context=context)
        else:
            connection = http.client.HTTPConnection(self.hosts[index], self.ports[index], timeout=timeout)
        with self.machines.inside(index) if self.machines else contextlib.nullcontext():
            connection.connect()
        try:
            connection.request("POST", path, json.dumps(message), {"Authorization": self.token} if self.token else {})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def wait(self, seconds=30):
        """Waits until the cluster has a leader that takes reads."""
        def reads():
            for index, process in enumerate(self.processes):
                if process.poll() is None:
                    self.call(index, "/v3/kv/range", {"key": base64.b64encode(b"x").decode()})["header"]
            return True

        past = (OSError, KeyError, ValueError, http.client.HTTPException)
        wait_until(reads, "etcd is there", seconds, pause=0.1, past=past)

    def leader(self):
        """The number of the leader among those that answer."""
        for index, process in enumerate(self.processes):
            if process.poll() is not None:
                continue
            status = self.call(index, "/v3/maintenance/status", {})
            leader = status["leader"]
            for other, process in enumerate(self.processes):
                if process.poll() is None:
                    header = self.call(other, "/v3/maintenance/status", {})["header"]
                    if header["member_id"] == leader:
                        return other
        return None

    def address(self, name):
        """What `--data` is for a history of this name."""
        scheme = "etcds" if self.certificates else "etcd"
        return f"{scheme}://{','.join(f'{host}:{port}' for host, port in zip(self.hosts, self.reached))}/{name}"

    def protect(self, prefix, user, password):
        """From now on only `root` and this user use etcd, who may read and write the keys that begin with a prefix."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        key, end = (base64.b64encode(text.encode()).decode() for text in (prefix, end))
        for path, message in [
            ("user/add", {"name": "root", "password": "of all"}),
            ("role/add", {"name": "root"}),
            ("user/grant", {"user": "root", "role": "root"}),
            ("user/add", {"name": user, "password": password}),
            ("role/add", {"name": "of a prefix"}),
            ("role/grant", {"name": "of a prefix", "perm": {"permType": "READWRITE", "key": key, "range_end": end}}),
            ("user/grant", {"user": user, "role": "of a prefix"}),
            ("enable", {}),
        ]:
            answer = self.call(0, f"/v3/auth/{path}", message)
            if "error" in answer:
                raise Failure(f"etcd refuses {path}: {answer}")

    def login(self):
        """Has `root` make the later calls."""
        self.token = None
        self.token = self.call(0, "/v3/auth/authenticate", {"name": "root", "password": "of all"})["token"]

    def keys(self, prefix):
        """The keys that begin with a prefix, with their values."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        message = {
            "key": base64.b64encode(prefix.encode()).decode(),
            "range_end": base64.b64encode(end.encode()).decode(),
        }
        found = self.call(0, "/v3/kv/range", message).get("kvs", [])
        return {base64.b64decode(pair["key"]).decode(): base64.b64decode(pair.get("value", "")) for pair in found}

    def put(self, key, value, index=0, timeout=5):
        message = {"key": base64.b64encode(key.encode()).decode(), "value": base64.b64encode(value).decode()}
        return self.call(index, "/v3/kv/put", message, timeout)

    def delete(self, prefix):
        """Deletes the keys that begin with a prefix."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        keys = [base64.b64encode(key.encode()).decode() for key in (prefix, end)]
        self.call(0, "/v3/kv/deleterange", {"key": keys[0], "range_end": keys[1]})

    def stop_all(self):
        for index in range(len(self.processes)):
            self.signal(index, signal.SIGKILL)
            self.processes[index].wait()
