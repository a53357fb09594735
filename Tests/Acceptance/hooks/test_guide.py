"""The receivers of the page about hooks, as they stand there, each with its own server."""

import subprocess
import sys

import pytest

from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until
from harness.hooks import hook
from harness.pages import blocks
from harness.programs import free_port
from harness.tools import need, need_module

PAGE = "Guides/Hooks.md"


@pytest.mark.parametrize("language, program", [("python", [sys.executable, "-c"]), ("js", ["node", "--input-type=module", "-e"])])
def test_a_receiver_of_the_guide_writes_the_result_back(workspace, language, program):
    if language == "js":
        need("node")
    else:
        need_module("standardwebhooks")
    ((_, text),) = blocks(PAGE, language)
    port, data = free_port(), workspace.path("data")
    expect("9000" in text, "the port of the receiver:", text)
    create = next(line for line in blocks(PAGE, "sh")[0][1].splitlines() if "hook create" in line).split()
    options = [word.strip("'") for word in create[create.index("--path") :]]
    id, secret = hook(
        workspace, data, "create", "--url", f"http://127.0.0.1:{port}/hook", *options
    ).split()
    receiver = subprocess.Popen(
        [*program, text.replace("9000", str(port))], env={"SECRET": secret, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    )
    workspace.started.append(receiver)
    server = workspace.server(data, domain="document")
    with server.client() as client:
        receipt = client.commit(action("document/set", {"path": "/wanted", "value": "v7"}))
        result = client.get("/v1/state/result?wait=20&until-exists")
        expect_equal(result.json, "v7 is deployed", "the result")
        commit = client.get("/v1/changes?before=now&limit=1").json["changes"][0]
        expect_equal((commit["cause"], commit["by"]), (receipt["id"], f"hook:{id}"), "what the commit names")
        wait_until(lambda: "up to date" in hook(workspace, data, "list"), "the hook goes on")
    with server.client() as client:
        expect_equal(server.metric(client, "hook_refusals_total"), 0, "the refusals")
