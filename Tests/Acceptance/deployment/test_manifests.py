"""The files for Docker Compose and Kubernetes: the programs of these projects, or their schemas, read them."""

import json

from harness.expectations import expect, expect_equal
from harness.tools import CONFIG, need, run

COMPOSE, KUBERNETES = CONFIG / "compose.yaml", CONFIG / "kubernetes/storekeeper.yaml"
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


def test_docker_compose_refuses_a_misspelt_key(workspace):
    need("docker-compose")
    misspelt = changed(workspace, COMPOSE, "stop_grace_period", "stop_grace_time")

    _, said = run("docker-compose", "-f", misspelt, "config", "--quiet")

    expect("stop_grace_time" in said, said)


def test_kubernetes_takes_each_object():
    need("kubernetes-validate")
    count = KUBERNETES.read_text().count("\nkind: ")
    for version in VERSIONS:
        code, said = run("kubernetes-validate", "--strict", "-k", version, KUBERNETES)
        expect_equal((code, said.count(" passed for resource ")), (0, count), f"the objects for {version}: {said}")


def test_kubernetes_refuses_a_misspelt_key(workspace):
    need("kubernetes-validate")
    misspelt = changed(workspace, KUBERNETES, "readOnlyRootFilesystem", "readOnlyRootFileSystem")

    code, said = run("kubernetes-validate", "--strict", misspelt)

    expect(code != 0 and "readOnlyRootFileSystem" in said, code, said)
