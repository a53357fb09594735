#!/usr/bin/env python3
"""Writes the files that the guide shows, from its page, and runs its commands.

The README's server, that of the page with a domain that uses everything, and the lines of the page with the clients are built beside
them.

Usage: python3 Tests/Adopter/guide.py SCRATCH_PATH, the folder of a build for debugging of this package, which is compiled already.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Acceptance"))

from harness.expectations import expect, wait_until  # noqa: E402
from harness.programs import free_port  # noqa: E402

PAGE = ROOT / "Sources/StateServer/StateServer.docc/Guides/Adopting.md"
README = ROOT / "README.md"
WHOLE = ROOT / "Sources/StateServer/StateServer.docc/Guides/WholeDomain.md"
CLIENTS = ROOT / "Sources/StateServer/StateServer.docc/Guides/Clients.md"
# One path for each run: a build that moves is a new build.
FOLDER = ROOT / ".build-guide"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIBRARIES_OF_SWIFT = re.compile(r"libswift|lib_?Foundation|libdispatch|libBlocksRuntime")
LIBRARIES_OF_THE_SYSTEM = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}


def read_page():
    """The files by their path, the blocks of commands, and what comes into the manifest later."""
    text, files, commands, later = PAGE.read_text(), {}, [], []
    for block in BLOCK.finditer(text):
        above = text[: block.start()].rstrip().rpartition("\n\n")[2]
        if block[1] == "sh":
            commands.append(block[2])
            continue
        if above.endswith("In the file `Package.swift`, before the test target:"):
            later.append(block[2])
            continue
        name = re.search(r"[Tt]he file\s+`([^`]+)`:$", above)
        assert name, f"a block of {block[1]} is no file: {block[2][:80]}"
        assert name[1] not in files, f"{name[1]} is there twice"
        files[name[1]] = block[2]
    return files, commands, later


def only_block(page, language):
    [block] = [block[2] for block in BLOCK.finditer(page.read_text()) if block[1] == language]
    return block


def write(files, later):
    """The reader's package, in which the dependency is this checkout, and three programs of other pages are further targets."""
    servers = {"ReadmeServer": README, "WholeServer": WHOLE}
    manifest = files["Package.swift"]
    for old, new in [
        ('.package(path: "storekeeper")', f'.package(name: "storekeeper", path: "{ROOT}")'),
        (
            "        .testTarget(",
            "".join(server_target(manifest).replace("CounterServer", name) for name in servers)
            + "".join(later)
            + "".join(later).replace("CounterFollower", "ClientsFollower")
            + "        .testTarget(",
        ),
    ]:
        assert manifest.count(old) == 1, f"the manifest has not {old}"
        manifest = manifest.replace(old, new)
    for name, page in servers.items():
        # The page makes the folders of its own files itself.
        (FOLDER / "counter/Sources" / name).mkdir()
        files = {**files, f"Sources/{name}/main.swift": only_block(page, "swift")}
    shutil.copytree(FOLDER / "counter/Sources/CounterFollower", FOLDER / "counter/Sources/ClientsFollower", symlinks=True)
    lines = "import Foundation\nimport StateClient\n\n" + only_block(CLIENTS, "swift")
    files = {**files, "Sources/ClientsFollower/main.swift": lines}
    for name, text in {**files, "Package.swift": manifest}.items():
        path = FOLDER / "counter" / name
        path.write_text(text)


def server_target(manifest):
    start = manifest.index("        .executableTarget(")
    return manifest[start : manifest.index("        .testTarget(")]


def shell(text, folder, scratch, port):
    """A block of the page, where `swift` builds in the scratch path and git gives the checkout around this file."""
    prelude = f"""
        set -eo pipefail
        git() {{ [ "$1 $2" = "clone {ROOT}" ] && ln -s "$2" "$3"; }}
        swift() {{ command swift "$1" --scratch-path "{scratch}" "${{@:2}}"; }}
    """
    # A server that the block leaves in the background is asked to end, and has to do so in good order.
    epilogue = """
        for job in $(jobs -p); do pkill -TERM -P "$job" || kill -TERM "$job"; wait "$job"; done
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("STOREKEEPER")}
    environment |= {"STOREKEEPER": str(ROOT), "STOREKEEPER_LISTEN": f"127.0.0.1:{port}"}
    text = text.replace("localhost:8080", f"127.0.0.1:{port}")
    done = subprocess.run(
        ["bash", "-c", prelude + text + epilogue],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, f"{text}\nended with {done.returncode}: {done.stdout}"
    return done.stdout


def call(port, path, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, body and json.dumps(body).encode(), timeout=10) as answer:
        return json.load(answer)


@contextlib.contextmanager
def serving(binary):
    """The port of a server that serves until SIGTERM, and then ends in good order."""
    port = free_port()
    environment = dict(os.environ, STOREKEEPER_LISTEN=f"127.0.0.1:{port}", STOREKEEPER_DATA="none")
    process = subprocess.Popen([binary], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:

        def serves():
            expect(process.poll() is None, f"{binary} has ended")
            return call(port, "/v1")

        wait_until(serves, f"{binary} serves", 20, pause=0.05, past=OSError)
        yield port
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0, process.returncode
    finally:
        process.kill()


def serve_readme(binary):
    """The README's ten lines: they count, and refuse what does not fit."""
    with serving(binary) as port:
        call(port, "/v1/actions", {"type": "counter/add", "payload": {"amount": 2**63 - 1}})
        try:
            call(port, "/v1/actions", {"type": "counter/add", "payload": {"amount": 1}})
            raise SystemExit("a sum that does not fit is taken")
        except urllib.error.HTTPError as refusal:
            assert json.load(refusal)["code"] == "counter.overflow", refusal
        assert call(port, "/v1/state/value") == 2**63 - 1


def serve_whole(binary, scratch):
    """The domain that uses everything: each command of its page is answered as the page says."""
    with serving(binary) as port:
        printed = shell(only_block(WHOLE, "sh"), FOLDER, scratch, port)
        answers = [json.loads(line) for line in printed.splitlines()]
    received, shipped, orders, empty, asked, item, refused = answers
    assert received["changed"] and [commit["types"] for commit in shipped["caused"]] == [["orders/want"]], shipped
    assert (orders, empty, item) == ({"wanted": ["tea"]}, ["tea"], {"count": 0, "price": 3}), answers
    assert asked["settled"] and [commit["version"] for commit in asked["caused"]] == [asked["version"] + 1], asked
    assert refused["code"] == "unknown-action", refused
    assert subprocess.run([binary, "--version"], capture_output=True, text=True).stdout == "1.0.0\n"


# What only the program of this package is built with: the schemas of documents and models.
OF_THE_PROGRAM = {"libre2-dev"}


def judge_dockerfile(text, manifest, binary):
    """What can be known of an image without building it."""
    build, image = text.split("FROM debian:bookworm-slim")
    product = re.search(r'executableTarget\(\s*name: "(\w+)"', manifest)[1]
    assert f"--product {product} " in build and f'/{product}" /staging/counter-server' in build, "another product"
    for copied in re.findall(r"^COPY (?!--from)(\S+) ", build, re.MULTILINE):
        assert (FOLDER / "counter" / copied).exists(), f"the Dockerfile copies {copied}, which is not there"
    packages = re.search(r'^packages="(.*)"$', (ROOT / ".ci/install").read_text(), re.MULTILINE)[1].split()
    lacking = [package for package in packages if package not in build and package not in OF_THE_PROGRAM]
    assert not lacking, f"the build lacks {lacking}"
    # The stages and options are those of the Dockerfile beside the README, which is known to make an image.
    own = (ROOT / "Dockerfile").read_text()
    for line in ("FROM swift:6.3-bookworm AS build", "RUN swift build -c release ", " --static-swift-stdlib --product "):
        assert line in own and line in text, line
    needed = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"\(NEEDED\).*\[(.+)\]", needed):
        if LIBRARIES_OF_SWIFT.match(library) or library in LIBRARIES_OF_THE_SYSTEM:
            continue
        owner = subprocess.run(["dpkg", "-S", f"*/{library}"], capture_output=True, text=True, check=True).stdout
        names = {line.partition(":")[0] for line in owner.splitlines()}
        assert any(f" {name} " in image for name in names), f"the image lacks {library} of {names}"


def main():
    scratch = pathlib.Path(sys.argv[1]).resolve()
    files, commands, later = read_page()
    [make, run, link, follow, docker] = commands
    assert docker.startswith("docker build -t counter ."), docker
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    shell(make, FOLDER, scratch, 0)
    shell(link, FOLDER / "counter", scratch, 0)
    write(files, later)
    printed = shell(run, FOLDER / "counter", scratch, free_port())
    assert '"version":1' in printed and printed.rstrip().endswith("2"), printed
    printed = shell(follow, FOLDER / "counter", scratch, free_port())
    assert printed.endswith("the counter is 5\nthe counter is 6\n"), printed
    where = ["--package-path", FOLDER / "counter", "--scratch-path", scratch]
    show = ["swift", "build", *where, "--show-bin-path"]
    products = pathlib.Path(subprocess.run(show, capture_output=True, text=True, check=True).stdout.strip())
    serve_readme(products / "ReadmeServer")
    serve_whole(products / "WholeServer", scratch)
    judge_dockerfile(files["Dockerfile"], files["Package.swift"], products / "CounterServer")
    print(f"the guide: {len(files)} files, {len(commands)} blocks of commands, 1 passed, 0 failed")


main()
