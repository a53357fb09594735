"""Who may use a history in etcd, and what its servers share beside the turns: tokens, and room."""

import os
import subprocess
import threading
import time

from harness.actions import add
from harness.client import Client
from harness.etcd import Etcds
from harness.expectations import expect, expect_equal, wait_until
from harness.metrics import Figures
from harness.nodes import Nodes
from harness.programs import storekeeper
from harness.server import Server, start_refusal
from harness.tokens import bearer, make_token


def test_a_token_is_of_all_servers_and_its_revocation_ends_its_waits_at_each_of_them(workspace):
    etcds = Etcds(workspace, 1)
    address = etcds.address("guarded")
    nodes = Nodes(workspace, etcds, "guarded")
    with Client(nodes.ports[0]) as client:
        expect_equal(client.get("/v1/state").status, 200, "the status while there is no token")
    administrator = make_token(workspace, address, "admin", "--all")
    token = make_token(workspace, address, "ci", "--read", "/counter", "--dispatch", "counter/*")
    for port in nodes.ports:
        with Client(port) as client:
            wait_until(lambda: client.get("/v1/state/counter").status == 401, "a server asks for a token", seconds=2)
            wait_until(
                lambda: client.request("GET", "/v1/state/counter", None, bearer(token)).status == 200, "it knows it", seconds=2
            )
            expect_equal(client.request("GET", "/v1/state", None, bearer(token)).status, 404, "what it may not see")
            expect_equal(client.request("GET", "/v1/state", None, bearer(administrator)).status, 200, "what another may")
    ended = {}

    def follow(port):
        with Client(port, timeout=30) as client:
            cursor = client.request("GET", "/v1", None, bearer(token)).json["cursor"]
            answer = client.request("GET", f"/v1/changes?since={cursor}&wait=20", None, bearer(token))
            ended[port] = (time.monotonic(), answer.status)

    threads = [threading.Thread(target=follow, args=(port,)) for port in nodes.ports]
    for thread in threads:
        thread.start()
    for port in nodes.ports:
        with Client(port) as client:
            waiters = lambda: Figures(client.request("GET", "/metrics", None, bearer(administrator)).body)["waiters"]
            wait_until(lambda: waiters() == 1, "a client waits")
    [line] = [line for line in storekeeper(workspace, "token", "list", "--data", address).stdout.splitlines() if " ci " in line]
    begun = time.monotonic()
    revoked = storekeeper(workspace, "token", "revoke", line.split()[0], "--data", address)
    expect_equal(revoked.returncode, 0, f"the exit code of token revoke: {revoked.stderr}")
    for thread in threads:
        thread.join()
    for port in nodes.ports:
        ended_at, status = ended[port]
        expect_equal(status, 401, "the answer to a wait of a revoked token")
        expect(ended_at - begun < 2, f"it comes after {ended_at - begun:.1f} s")
    # One that starts now has the tokens from the history alone.
    later = Server(workspace, address, {}).start()
    with later.client() as client:
        expect_equal(client.get("/v1/state/counter").status, 401, "the status without a token")
        expect_equal(client.request("GET", "/v1/state/counter", None, bearer(token)).status, 401, "with a revoked one")
        expect_equal(client.request("GET", "/v1/state", None, bearer(administrator)).status, 200, "with a good one")


def test_a_server_uses_etcd_as_a_user_and_goes_on_with_another_token_or_password(workspace):
    etcds = Etcds(workspace, 1)
    etcds.protect("mine/", "shop", "secret of shop")
    password = os.path.join(workspace.directory, "password")
    with open(password, "w") as file:
        file.write("secret of shop\n")
    settings = {"etcd_user": "shop", "etcd_password": password, "cluster_address": "http://127.0.0.1:29999"}
    server = Server(workspace, etcds.address("mine"), settings).start()
    with server.client() as client:
        client.commit(add(1))
        # The tokens of etcd's users are lost with its process.
        etcds.kill(0)
        etcds.start(0)
        wait_until(lambda: client.post(add(1)).status == 200, "it goes on", seconds=20)
        other = Server(workspace, etcds.address("mine"), settings).start()
        with other.client() as reader:
            cursor = client.commit(add(1))["cursor"]
            answer = reader.get(f"/v1/state/counter/value?at-least={cursor}&wait=10")
            expect_equal((answer.status, answer.json), (200, 3), "what another server has")
        wait_until(lambda: client.get("/readyz").status == 200, "the server is ready", seconds=5)

        etcds.login()
        with open(password, "w") as file:
            file.write("another secret\n")
        etcds.call(0, "/v3/auth/user/changepw", {"name": "shop", "password": "another secret"})
        cursor = client.commit(add(1))["cursor"]
        with other.client() as reader:
            answer = reader.get(f"/v1/state/counter/value?at-least={cursor}&wait=10")
            expect_equal((answer.status, answer.json), (200, 4), "what another server has after a change of the password")
            expect_equal(reader.post(add(1)).status, 200, "the status of an action at the other server")
    start_refusal(workspace, etcds.address("other"), "permission denied", etcd_user="shop", etcd_password=password)
    start_refusal(workspace, etcds.address("mine"), "user name is empty")
    with open(password, "w") as file:
        file.write("wrong")
    start_refusal(workspace, etcds.address("mine"), "invalid user ID or password", etcd_user="shop", etcd_password=password)
    start_refusal(workspace, etcds.address("mine"), "no file", etcd_user="shop", etcd_password=password + ".none")


def certificates(directory):
    """The files of an authority, a certificate for 127.0.0.1 and its key."""
    authority, key = (os.path.join(directory, name) for name in ("ca.pem", "ca-key.pem"))
    openssl(f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=authority -keyout {key} -out {authority} -days 2")
    return authority, *certificate(directory, "/CN=etcd")


def certificate(directory, subject):
    """The files of a certificate of the directory's authority for 127.0.0.1, and of its key."""
    names = [os.path.join(directory, subject[1:] + name) for name in (".pem", "-key.pem", "-request.pem", "-names")]
    found, key, request, extensions = names
    with open(extensions, "w") as file:
        file.write("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    openssl(f"req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj {subject} -keyout {key} -out {request}")
    by = f"-CA {directory}/ca.pem -CAkey {directory}/ca-key.pem -CAcreateserial"
    openssl(f"x509 -req -in {request} {by} -out {found} -days 2 -extfile {extensions}")
    return found, key


def openssl(command):
    subprocess.run(["openssl", *command.split()], check=True, capture_output=True, timeout=20)


def test_a_server_reaches_etcd_by_tls_and_says_why_where_it_cannot(workspace):
    files = certificates(workspace.directory)
    etcds = Etcds(workspace, 1, certificates=files)
    settings = dict(zip(("etcd_authorities", "etcd_certificate", "etcd_key"), files))
    server = Server(workspace, etcds.address("sealed"), settings).start()
    with server.client() as client:
        client.commit(add(5))
    server.stop()
    strangers = os.path.join(workspace.directory, "strangers")
    os.mkdir(strangers)
    other = certificates(strangers)
    for wrong, reason in [
        ({}, "SSL peer certificate"),
        (settings | {"etcd_authorities": other[0]}, "SSL peer certificate"),
        (settings | {"etcd_key": other[2]}, "local SSL certificate"),
        # etcd closes the connection, and libcurl knows no more.
        ({"etcd_authorities": files[0]}, "etcd does not answer"),
    ]:
        waiting = Server(workspace, etcds.address("sealed"), wrong).launch()
        wait_until(lambda: "waiting for etcd" in waiting.log_text(), f"a server with {wrong} says that it waits")
        expect(reason in waiting.log_text(), f"no {reason!r}:", waiting.log_text())
        waiting.kill()
    # Where there are users, the gateway wants a certificate without a name, lest somebody takes that for the user.
    etcds.protect("sealed/", "shop", "secret of shop")
    password = os.path.join(workspace.directory, "password")
    with open(password, "w") as file:
        file.write("secret of shop")
    settings |= {"etcd_user": "shop", "etcd_password": password}
    waiting = Server(workspace, etcds.address("sealed"), settings).launch()
    wait_until(lambda: "status is 400: CommonName of client" in waiting.log_text(), "it says what the gateway says")
    waiting.kill()
    nameless = dict(zip(("etcd_certificate", "etcd_key"), certificate(workspace.directory, "/O=shop")))
    server = Server(workspace, etcds.address("sealed"), settings | nameless).start()
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter/value").json, 5, "the state by a certificate without a name")


def test_an_etcd_that_is_almost_full_takes_no_action_and_the_server_says_what_to_do(workspace):
    quota = 64 << 20
    etcds = Etcds(workspace, 1, arguments=["--quota-backend-bytes", str(quota)])
    server = Server(workspace, etcds.address("full"), {}).start()
    with server.client() as client:
        client.commit(add(1))
        number = 0
        while int(etcds.call(0, "/v3/maintenance/status", {})["dbSize"]) < 0.91 * quota:
            etcds.put(f"others/{number}", os.urandom(1 << 18))
            number += 1
        wait_until(lambda: client.get("/readyz").status == 503, "the server is not ready", seconds=15)
        reason = client.get("/readyz?verbose").body.decode()
        expect("of its quota: defragment it" in reason, "no word about what to do:", reason)
        answer = client.post(add(1))
        expect_equal((answer.status, answer.json["code"]), (503, "not-durable"), "the answer to an action")
        expect_equal(client.get("/v1/state/counter/value").json, 1, "the state")
        # With more it is full, and etcd itself refuses all but deletions.
        for number in range(30):
            etcds.put(f"others/more{number}", os.urandom(1 << 20))
        wait_until(lambda: "NOSPACE" in client.get("/readyz?verbose").body.decode(), "it names the alarm", seconds=15)
        etcds.kill(0)
        etcds.arguments = ["--quota-backend-bytes", str(200 << 20)]
        etcds.start(0)
        etcds.wait()
        for alarm in etcds.call(0, "/v3/maintenance/alarm", {"action": "GET"})["alarms"]:
            etcds.call(0, "/v3/maintenance/alarm", {"action": "DEACTIVATE", **alarm})
        wait_until(lambda: client.get("/readyz").status == 200, "the server is ready again", seconds=30)
        expect_equal(client.commit(add(1))["version"], 2, "the next version")
