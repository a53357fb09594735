"""The subscribers of the page Clients, as they stand there, through kill -9.

DURABLE_STREAMS_SOURCES is a checkout of the repository durable-streams/durable-streams, from which the clients in
TypeScript, Swift and Go are built; without it these programs are not run.
"""

import os
import pathlib
import subprocess
import sys

import pytest
from harness.actions import action, add
from harness.expectations import expect, wait_until
from harness.mirror import Mirror, entities_of
from harness.pages import blocks
from harness.programs import HERE, Program, free_port
from harness.tools import need

PAGE = "Clients.md"
# The packages of the write side are not needed to read.
READS_ONLY = 'export default { promise() { throw new Error("this client only reads") } }\n'


def sources():
    folder = os.environ.get("DURABLE_STREAMS_SOURCES")
    if not folder:
        pytest.skip("DURABLE_STREAMS_SOURCES names no checkout of durable-streams/durable-streams")
    return pathlib.Path(folder) / "packages"


def make(command, directory):
    built = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300)
    expect(built.returncode == 0, f"{command[0]} says:", built.stdout[-2000:] + built.stderr[-2000:])


def make_sh(directory, text):
    need("curl", "jq")
    (directory / "follow.sh").write_text(text)
    return ["bash", "follow.sh"]


def make_python(directory, text):
    pytest.importorskip("durable_streams")
    (directory / "follow.py").write_text(text)
    return [sys.executable, "follow.py"]


def make_ts(directory, text):
    packages = sources()
    need("node", "esbuild")
    (directory / "follow.ts").write_text(text)
    (directory / "fastq.js").write_text(READS_ONLY)
    aliases = [f"--alias:@durable-streams/{name}={packages}/{name}/src/index.ts" for name in ("client", "state")]
    make(
        ["esbuild", "follow.ts", "--bundle", "--platform=node", "--format=esm", "--outfile=follow.mjs"]
        + [*aliases, "--alias:fastq=./fastq.js"],
        directory,
    )
    return ["node", "follow.mjs"]


def make_swift(directory, text):
    packages = sources()
    need("swift")
    (directory / "Sources/follow").mkdir(parents=True)
    (directory / "Sources/follow/main.swift").write_text("import Glibc\nsetlinebuf(stdout)\n" + text)
    (directory / "Package.swift").write_text(f"""
// swift-tools-version: 6.0
import PackageDescription

let product = Target.Dependency.product(name: "DurableStreams", package: "client-swift")
let package = Package(
    name: "follow", dependencies: [.package(path: "{packages}/client-swift")],
    targets: [.executableTarget(name: "follow", dependencies: [product], swiftSettings: [.swiftLanguageMode(.v5)])])
""".strip())
    make(["swift", "build"], directory)
    return [".build/debug/follow"]


def make_go(directory, text):
    packages = sources()
    need("go")
    (directory / "main.go").write_text(text)
    module = "github.com/durable-streams/durable-streams/packages/client-go"
    (directory / "go.mod").write_text(
        f"module follow\n\ngo 1.19\n\nrequire {module} v0.0.0\n\nreplace {module} => {packages}/client-go\n"
    )
    make(["go", "build", "-mod=mod", "-o", "follow", "."], directory)
    return ["./follow"]


MAKERS = {"sh": make_sh, "python": make_python, "ts": make_ts, "swift": make_swift, "go": make_go}


@pytest.mark.parametrize("language", list(MAKERS))
def test_the_subscriber_of_the_page_has_the_state_through_kills(workspace, language, figures):
    [(_, text)] = blocks(PAGE, language)
    expect(HERE in text, f"the program asks no server at {HERE}")
    directory, port = pathlib.Path(workspace.path("program")), free_port()
    directory.mkdir()
    command = MAKERS[language](directory, text.replace(HERE, f"localhost:{port}"))
    server = workspace.server(listen_also=f"127.0.0.1:{port}")
    program = Program(workspace, command, str(directory))
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "before"}))
    catches_up(server, program, language)
    for number in range(2, 8):
        if number % 3 == 0:
            server.kill()
            server.start()
        with server.client() as client:
            client.commit(action("tasks/add", {"id": number, "title": f"task {number}"}, id=f"mine-{number}"))
            client.commit(action("tasks/rename", {"id": 1, "title": f"renamed {number}"}))
            client.commit(add(number))
            if number == 5:
                client.commit(action("tasks/remove", {"id": 2}))
    catches_up(server, program, language)
    transactions = {line["headers"].get("txid") for line in program.printed()}
    expect({f"mine-{number}" for number in range(2, 8)} <= transactions, "the IDs of actions are missing")
    figures(f"{len(program.printed())} messages")


def catches_up(server, program, language):
    """Awaits that what the program has printed makes the state of the server."""
    with server.client() as client:
        types = client.get("/v1/streams").json["streams"][1]["types"]
        wanted = entities_of(client.get("/v1/state").json, types)
    if language == "swift":  # its program reads types and keys only
        wanted = dict.fromkeys(wanted)

    def has_it():
        expect(program.process.poll() is None, "the program ended:", program.errors())
        mirror = Mirror()
        for message in program.printed():
            mirror.take({"value": None, **message} if language == "swift" and is_set(message) else message)
        return mirror.values == wanted

    wait_until(has_it, "the program has the state", 30)


def is_set(message):
    return message["headers"].get("operation") in ("insert", "update")
