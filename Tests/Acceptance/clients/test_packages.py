"""The wheel and the npm archive of the clients, in fresh environments without a network: in order and once, through kills."""

import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

from harness.expectations import expect_equal
from harness.javascript import ended, printed
from harness.kills import kill_at_shares
from harness.pages import ROOT
from harness.programs import Program, free_port
from harness.tools import need, run
from harness.typescript import compile_strictly

PYTHON = """
import json, sys
from storekeeper import connect
store = connect(sys.argv[1])
for number in range(int(sys.argv[2])):
    receipt = store.dispatch("counter/add", {"amount": 1}, id=f"n{number}")
    print(json.dumps(["receipt", number, receipt["version"]]), flush=True)
"""
NODE = """
import { connect } from "storekeeper"
const store = connect(process.argv[2])
for (let number = 0; number < Number(process.argv[3]); number++) {
    const { version } = await store.dispatch("counter/add", { amount: 1 }, { id: `n${number}` })
    console.log(JSON.stringify(["receipt", number, version]))
}
"""
TYPES = """
import { connect, Problem, type Commit } from "storekeeper"
const store = connect("http://localhost:8080"), value: unknown = await store.state("/counter/value")
const { version } = await store.dispatch("counter/add", { amount: 1 }, { id: "a" })
for await (const item of store.changes()) if (!item.reset) { const commit: Commit = item; commit.version + (version ?? 0); break }
for await (const open of store.view("open", { owner: "ann" })) console.log(open, value, Problem)
"""
WRONG = ['store.dispatch()', 'store.state(1)', 'const text: string = await store.state("/a")', "store.close(1)"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder with both, made as .ci/package makes them."""
    folders = [tmp_path_factory.mktemp("packages") for _ in range(2)]
    for folder in folders:
        subprocess.run([ROOT / ".ci/clients", "1.2.3", folder], check=True, env={"SOURCE_DATE_EPOCH": "1700000000", "PATH": "/usr/bin:/bin"})
    one, other = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    expect_equal((sorted(one), one == other), (["storekeeper-1.2.3-py3-none-any.whl", "storekeeper-1.2.3.tgz"], True), "both")
    return folders[0]


def install_wheel(made, directory):
    directory.mkdir()
    python = directory / "env/bin/python"
    for command in (
        ["venv", "--without-pip", directory / "env"],
        ["pip", "--python", python, "install", "--no-index", "--quiet", made / "storekeeper-1.2.3-py3-none-any.whl"],
    ):
        subprocess.run([sys.executable, "-m", *command], check=True)
    (directory / "main.py").write_text(PYTHON)
    return [str(python), "main.py"]


def install_archive(made, directory):
    need("node")
    directory.mkdir()
    (directory / "package.json").write_text('{"type": "module"}')
    archive = made / "storekeeper-1.2.3.tgz"
    if shutil.which("npm"):
        code, said = run("npm", "install", "--offline", "--no-audit", "--no-fund", archive, cwd=directory)
        expect_equal(code, 0, said)
    else:  # Debian's npm conflicts with the Node of others, which has its own.
        (directory / "node_modules").mkdir()
        with tarfile.open(archive) as content:
            content.extractall(directory)
        (directory / "package").rename(directory / "node_modules/storekeeper")
    (directory / "main.mjs").write_text(NODE)
    return ["node", "main.mjs"]


@pytest.mark.parametrize("install", [install_wheel, install_archive])
@pytest.mark.rounds(2, long=10)
def test_actions_commit_once_and_in_order_through_kills(workspace, made, install, rounds):
    directory = pathlib.Path(workspace.path("program"))
    command = install(made, directory)
    server = workspace.server(listen_also=f"127.0.0.1:{(port := free_port())}")
    count = 100 * rounds
    program = Program(workspace, [*command, f"http://127.0.0.1:{port}", str(count)], str(directory))
    kill_at_shares(server, count, rounds)
    ended(program, 120)
    with server.client() as client:
        changes = client.get("/v1/changes?since=oldest&limit=1000").json["changes"]
    expect_equal([change["id"] for change in changes], [f"n{number}" for number in range(count)], "the commits")
    expect_equal(printed(program, "receipt"), [[number, number + 1] for number in range(count)], "the receipts")


def test_the_types_come_with_them(workspace, made):
    need("tsc")
    directory = pathlib.Path(workspace.path("types"))
    install_archive(made, directory)
    (directory / "main.mts").write_text("\n".join([TYPES, *WRONG]))
    said = compile_strictly(directory / "main.mts")[1]
    lines = [int(line) for line in re.findall(r"main\.mts\((\d+),\d+\): error", said)]
    first = TYPES.count("\n") + 2
    expect_equal(lines, list(range(first, first + len(WRONG))), f"the lines with a fault: {said}")
    typed = pathlib.Path(workspace.path("wheel"))
    install_wheel(made, typed)
    code = 'import pathlib, storekeeper; print(pathlib.Path(storekeeper.__file__).with_name("py.typed").exists())'
    done = subprocess.run([typed / "env/bin/python", "-c", code], capture_output=True, text=True)
    expect_equal(done.stdout, "True\n", done.stderr)
