"""What Kubernetes gives to a pod beside its settings."""

from harness.expectations import expect, expect_equal
from harness.server import Server, log_when_ready, start_refusal
from harness.tools import CONFIG

# What a pod of a namespace has that has the Services storekeeper and storekeeper-replica.
VARIABLES = {
    "STOREKEEPER_SERVICE_HOST": "10.96.0.7",
    "STOREKEEPER_SERVICE_PORT": "80",
    "STOREKEEPER_SERVICE_PORT_HTTP": "80",
    "STOREKEEPER_PORT": "tcp://10.96.0.7:80",
    "STOREKEEPER_PORT_80_TCP": "tcp://10.96.0.7:80",
    "STOREKEEPER_PORT_80_TCP_PROTO": "tcp",
    "STOREKEEPER_PORT_80_TCP_PORT": "80",
    "STOREKEEPER_PORT_80_TCP_ADDR": "10.96.0.7",
    "STOREKEEPER_REPLICA_SERVICE_HOST": "10.96.0.8",
    "STOREKEEPER_REPLICA_PORT": "tcp://10.96.0.8:80",
}


def test_a_pod_behind_a_service_of_this_name_starts_and_logs_what_it_ignores(workspace):
    server = Server(workspace, workspace.path("data"), {"depth_max": 7})
    server.environment = VARIABLES

    log = log_when_ready(server.start())

    lines = [line for line in log.splitlines() if "variables of Kubernetes ignored" in line]
    expect_equal(len(lines), 1, "the lines about the variables")
    for name in VARIABLES:
        expect(name in lines[0], f"{name} is missing in {lines[0]}")
    with server.client() as client:
        expect_equal(client.get("/v1").json["limits"]["depth_max"], 7, "the setting beside them")


def test_a_misspelt_setting_beside_them_ends_the_start(workspace):
    text = start_refusal(workspace, workspace.path("data"), "STOREKEEPER_ACCES", acces="tokens", port="tcp://10.96.0.7:80")
    expect("did you mean STOREKEEPER_ACCESS?" in text, text)


def test_the_manifest_asks_for_no_such_variables():
    expect("enableServiceLinks: false" in (CONFIG / "kubernetes/storekeeper.yaml").read_text(), "service links")
