"""Programs of other projects that read the OpenAPI document: clients, types, and requests at random. Only with --long.

`pip install -r Tests/Acceptance/contract/openapi/requirements.txt` installs them.
"""

import ast
import os
import pathlib
import subprocess
import sys

import pytest

from harness.expectations import expect, expect_equal
from harness.forms import of_a_night
from harness.tools import find, need, run

pytestmark = pytest.mark.long_form(only=True)

HERE = pathlib.Path(__file__).parent / "openapi"


@pytest.fixture
def server(workspace):
    return workspace.server(data="none")


@pytest.fixture
def document(workspace, server):
    path = workspace.path("openapi.json")
    with server.client() as client, open(path, "wb") as file:
        file.write(client.get("/v1/openapi.json").body)
    return path


def test_a_generated_client_dispatches_dry_runs_long_polls_and_follows(workspace, server, document):
    need("openapi-python-client")
    package = workspace.path("storekeeper_client")
    code, text = run(
        "openapi-python-client", "generate", "--path", document, "--meta", "none", "--output-path", package
    )
    expect_equal(code, 0, "the exit code of the generator, which says " + text[-500:])
    expect("will not be generated" not in text, "an operation is left out:", text)
    environment = os.environ | {"PYTHONPATH": workspace.directory}
    script = HERE / "generated_client.py"
    code, text = run(sys.executable, script, f"http://127.0.0.1:{server.port}", env=environment)
    expect_equal((code, text.strip()), (0, "dispatched, dry-run, long-polled, followed"), "what the client says")


def test_each_type_has_a_name(workspace, document):
    """datamodel-codegen numbers or calls "Model" what the document gives no name to."""
    need("datamodel-codegen")
    output = workspace.path("models.py")
    arguments = ["--input", document, "--input-file-type", "openapi", "--output", output]
    code, text = run("datamodel-codegen", *arguments, "--output-model-type", "pydantic_v2.BaseModel")
    expect_equal(code, 0, "the exit code of the generator, which says " + text[-500:])
    names = [node.name for node in ast.parse(pathlib.Path(output).read_text()).body if isinstance(node, ast.ClassDef)]
    expect({"Receipt", "Commit", "Problem", "CounterAdd", "CounterAddPayload"} <= set(names), names)
    unnamed = [name for name in names if name.startswith("Model") or name[-1].isdigit()]
    expect_equal(unnamed, [], "the types without a name")


@pytest.mark.seconds(long=3600)
def test_requests_at_random_find_nothing(workspace, server, figures):
    """schemathesis with each of its checks: what the document allows is taken, what it forbids is refused."""
    need("schemathesis")
    # Many of the requests wait for what never comes.
    server = workspace.server(data="none", wait_seconds_default=1, wait_seconds_max=1)
    environment = os.environ | {"SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE)}
    arguments = ["run", f"http://127.0.0.1:{server.port}/v1/openapi.json", "--max-examples", str(of_a_night(300)), "--checks", "all"]
    arguments += ["--seed", str(workspace.seed), "--no-color"]
    command = [find("schemathesis"), "--config-file", str(HERE / "schemathesis.toml"), *arguments]
    # The first phase parses Python, which in Python 3.11 several threads cannot do at once (AST constructor recursion).
    for phases, workers in (("coverage", 1), ("fuzzing,stateful", 8)):
        arguments = ["--phases", phases, "--workers", str(workers)]
        code, text = run_long(command + arguments, environment, workspace.directory)
        expect_equal(code, 0, "the exit code of schemathesis, which says " + text[-9000:])
        figures(f"{phases}: " + text.split("Test cases:")[1].split("\n")[1].strip())


def run_long(command, environment, directory):
    """The exit code of a program that takes its time, and what it has printed."""
    done = subprocess.run(
        command,
        env=environment,
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3500,
    )
    return done.returncode, done.stdout
