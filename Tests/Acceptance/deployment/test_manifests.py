"""The files for Docker Compose and Kubernetes: the programs of these projects, or their schemas, read them."""

import json
import os
import subprocess

import pytest
from harness.expectations import expect, expect_equal
from harness.tools import CONFIG, need, need_module, run

COMPOSE, KUBERNETES = CONFIG / "compose.yaml", CONFIG / "kubernetes/storekeeper.yaml"
# Three servers on three etcds.
CLUSTER, CLUSTER_KUBERNETES = CONFIG / "cluster/compose.yaml", CONFIG / "cluster/kubernetes.yaml"
# The oldest version with all that the file uses, and the newest that the validator knows.
VERSIONS = "1.28.0", "1.37.0"


def changed(workspace, file, before, after):
    """A copy of the file with another text in one place."""
    text = file.read_text()
    expect_equal(text.count(before), 1, f"places with {before!r}")
    path = workspace.path(file.name)
    with open(path, "w") as copy:
        copy.write(text.replace(before, after))
    return path


def test_docker_compose_reads_the_file(workspace):
    need("docker-compose")

    # The program from the Python package ends with 0 in any case.
    _, said = run("docker-compose", "-f", COMPOSE, "config", "--format", "json")

    expect(said.startswith("{"), said)
    service = json.loads(said)["services"]["storekeeper"]
    expect_equal([port["host_ip"] for port in service["ports"]], ["127.0.0.1"], "the addresses of the ports")
    expect_equal(service["volumes"][0]["target"], "/data", "the directory of the journal")


@pytest.mark.parametrize("file", [COMPOSE, CLUSTER], ids=["one server", "a cluster"])
def test_docker_compose_refuses_a_misspelt_key(workspace, file):
    need("docker-compose")
    misspelt = changed(workspace, file, "stop_grace_period", "stop_grace_time")

    _, said = run("docker-compose", "-f", misspelt, "config", "--quiet")

    expect("stop_grace_time" in said, said)


@pytest.mark.parametrize("file", [KUBERNETES, CLUSTER_KUBERNETES], ids=["one server", "a cluster"])
def test_kubernetes_takes_each_object(file):
    need("kubernetes-validate")
    count = file.read_text().count("\nkind: ")
    for version in VERSIONS:
        code, said = run("kubernetes-validate", "--strict", "-k", version, file)
        expect_equal((code, said.count(" passed for resource ")), (0, count), f"the objects for {version}: {said}")


def test_kubernetes_refuses_a_misspelt_key(workspace):
    need("kubernetes-validate")
    misspelt = changed(workspace, KUBERNETES, "readOnlyRootFilesystem", "readOnlyRootFileSystem")

    code, said = run("kubernetes-validate", "--strict", misspelt)

    expect(code != 0 and "readOnlyRootFileSystem" in said, code, said)


def test_the_rules_that_a_hook_needs_stand_in_the_file_as_a_comment(workspace):
    need("kubernetes-validate")
    yaml = need_module("yaml")
    text = KUBERNETES.read_text()
    expect_equal(text.count("\n  egress: []\n"), 1, "rules for all that the server reaches")
    head, _, rest = text.partition("\n  egress: []\n")
    comment, _, tail = rest.partition("---\n")
    lines = [line.replace("# ", "", 1) for line in comment.splitlines()[1:]]
    path = workspace.path("hooks.yaml")
    with open(path, "w") as file:
        file.write("\n".join([head, *lines, "---", tail]))

    code, said = run("kubernetes-validate", "--strict", "-k", VERSIONS[0], path)

    expect_equal(code, 0, said)
    with open(path) as file:
        [policy] = [each for each in yaml.safe_load_all(file) if each["kind"] == "NetworkPolicy"]
    ports = [port["port"] for rule in policy["spec"]["egress"] for port in rule["ports"]]
    expect_equal(sorted(ports), [53, 53, 443], "the ports that the server reaches")


def check(workspace, environment):
    """Has the server judge settings in the environment."""
    others = {key: value for key, value in os.environ.items() if not key.startswith("STOREKEEPER_")}
    done = subprocess.run(
        [workspace.binary, "check"], capture_output=True, text=True, timeout=20, env=others | environment
    )
    expect_equal(done.returncode, 0, f"the exit code of check: {done.stderr}")


def test_each_server_of_compose_has_an_address_of_its_own_and_all_have_the_same_etcds(workspace):
    need("docker-compose")
    _, said = run("docker-compose", "-f", CLUSTER, "config", "--format", "json")
    services = json.loads(said)["services"]
    etcds = [name for name in services if name.startswith("etcd")]
    members = ",".join(f"{name}=http://{name}:2380" for name in etcds)
    for name, service in services.items():
        if name in etcds:
            expect(f"--initial-cluster={members}" in service["command"], f"the members that {name} knows")
            expect(f"--advertise-client-urls=http://{name}:2379" in service["command"], f"the address of {name}")
            continue
        environment = service["environment"]
        expect_equal(environment["STOREKEEPER_CLUSTER_ADDRESS"], f"http://{name}:8080", f"the address of {name}")
        expect(name in environment["STOREKEEPER_ALLOWED_HOSTS"].split(","), f"{name} does not know its own name")
        hosts = ",".join(f"{etcd}:2379" for etcd in etcds)
        expect_equal(environment["STOREKEEPER_DATA"], f"etcd://{hosts}/storekeeper", f"the data of {name}")
        expect_equal([port["host_ip"] for port in service["ports"]], ["127.0.0.1"], f"the ports of {name}")
        check(workspace, environment)
    expect_equal((len(services), len(etcds)), (6, 3), "the services, and the etcds of them")


def test_the_pods_of_a_cluster_know_each_other_by_the_names_that_their_services_give(workspace):
    yaml = need_module("yaml")
    objects = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(CLUSTER_KUBERNETES.read_text())}
    pods = {}
    for (kind, name), each in objects.items():
        if kind != "StatefulSet":
            continue
        service = each["spec"]["serviceName"]
        expect_equal(objects["Service", service]["spec"]["clusterIP"], "None", f"the address of {service}")
        names = [f"{name}-{number}.{service}" for number in range(each["spec"]["replicas"])]
        [container] = each["spec"]["template"]["spec"]["containers"]
        pods[name] = names, container
        budget = objects["PodDisruptionBudget", name]["spec"]
        expect_equal((budget["maxUnavailable"], len(names)), (1, 3), f"the pods of {name} that may be away, and all")
    (etcds, etcd), (servers, server) = pods["storekeeper-etcd"], pods["storekeeper"]
    members = ",".join(f"{name.partition('.')[0]}=http://{name}:2380" for name in etcds)
    expect(f"--initial-cluster={members}" in etcd["command"], "the members that an etcd knows")
    variables = {each["name"]: each.get("value", "") for each in server["env"]}
    expect_equal(
        variables["STOREKEEPER_DATA"], f"etcd://{','.join(f'{name}:2379' for name in etcds)}/storekeeper", "the data"
    )
    for name in servers:
        pod = name.partition(".")[0]
        environment = {key: value.replace("$(POD_NAME)", pod) for key, value in variables.items() if key != "POD_NAME"}
        expect_equal(environment["STOREKEEPER_CLUSTER_ADDRESS"], f"http://{name}:8080", "the address of a server")
        check(workspace, environment)
