"""The programs in JavaScript of the page Clients, as they stand there."""

import os
import pathlib
import shutil

import pytest

from harness.actions import action, add
from harness.expectations import expect, expect_equal, wait_until
from harness.javascript import CLIENT
from harness.pages import blocks
from harness.programs import HERE, Program
from harness.tools import need
from harness.typescript import compile_strictly

PAGE = "Guides/Clients.md"


def serve(workspace):
    """The server of the command that stands on the page."""
    [(_, command)] = blocks(PAGE, "sh")
    _, option, domain, *_ = command.split()
    expect_equal(option, "--domain", "the first option of the command")
    return workspace.server(domain=domain)


MODULES = pathlib.Path("/usr/share/nodejs")
SHOW = """
globalThis.location = { origin: process.argv[2] }
globalThis.IS_REACT_ACT_ENVIRONMENT = true
const { act, create } = (await import("react-test-renderer")).default
const { createElement } = (await import("react")).default
const { Counter, store } = await import("./counter.js")
let shown
await act(async () => { shown = create(createElement(Counter)) })
const texts = [shown.toJSON().children.join()]
const show = async () => {
    for (const last = texts.at(-1); shown.toJSON().children.join() === last; ) await act(() => new Promise((resume) => setTimeout(resume, 10)))
    texts.push(shown.toJSON().children.join())
}
await show()
await act(async () => shown.toJSON().props.onClick())
await show()
await act(async () => shown.unmount())
console.log(JSON.stringify([...texts, String(store.latest("/counter/value"))]))
"""


def test_the_program_of_the_page_does_what_it_says(workspace):
    need("node")
    [(_, text)] = blocks(PAGE, "js")
    server = serve(workspace)
    directory = workspace.path("program")
    os.mkdir(directory)
    shutil.copy(CLIENT, os.path.join(directory, "client.mjs"))
    with open(os.path.join(directory, "main.mjs"), "w") as file:
        expect(HERE in text, f"the program asks no server at {HERE}")
        file.write(text.replace(HERE, f"127.0.0.1:{server.port}"))
    with server.client() as client:
        client.commit(add(1))

    program = Program(workspace, ["node", "main.mjs"], directory)

    wait_until(lambda: program.process.poll() is not None, "the program has ended")
    expect_equal(program.process.returncode, 0, "the exit code, with " + program.errors())
    with open(program.output) as file:
        printed = file.read()
    for line in ("counter { value: 1 }", "now [] and []", "commit 1 { type: 'counter/add'", "commit 2 { id: 'order-7'"):
        expect(line in printed, f"the program does not print {line!r}:", printed)
    with server.client() as client:
        expect_equal(client.get("/v1/actions/order-7").json["version"], 2, "the commit of the program")


def test_the_component_of_the_page_shows_each_value(workspace):
    need("node", "tsc")
    if not (MODULES / "react-test-renderer").is_dir():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("not installed: node-react-test-renderer")
    server = serve(workspace)
    directory = pathlib.Path(workspace.path("program"))
    directory.mkdir()
    (directory / "node_modules").symlink_to(MODULES)
    (directory / "package.json").write_text('{"type": "module"}')
    (directory / "counter.tsx").write_text("".join(text for _, text in blocks(PAGE, "tsx")))
    (directory / "show.mjs").write_text(SHOW)
    with server.client() as client:
        (directory / "client.d.ts").write_bytes(client.get("/v1/client.d.ts").body)
        client.commit(add(41))
    shutil.copy(CLIENT, directory / "client.js")
    code, said = compile_strictly("--skipLibCheck", "--jsx", "react-jsx", "--noEmit", "false", directory / "counter.tsx")
    expect_equal(code, 0, f"the exit code of the compiler, which says {said}")

    program = Program(workspace, ["node", "--preserve-symlinks", "show.mjs", f"http://127.0.0.1:{server.port}"], str(directory))

    wait_until(lambda: program.process.poll() is not None, "the program has ended")
    expect_equal(program.process.returncode, 0, "the exit code, with " + program.errors())
    expect_equal(program.printed(), [["...", "41", "42", "undefined"]], "what the component shows")
