"""Scripts for Node that have a store of client.js."""

import json
import os
import shutil

from harness.expectations import expect, expect_equal, wait_until
from harness.pages import ROOT
from harness.programs import Program
from harness.tools import need

CLIENT = ROOT / "Sources/CPage/files/client.js"
PRELUDE = """\
import { connect, Problem } from "./client.mjs"
import { readFileSync } from "node:fs"
const [url, token, given] = JSON.parse(readFileSync("given.json"))
const print = (...values) => console.log(JSON.stringify(values.map((value) => value === undefined ? "undefined" : value)))
const pause = (milliseconds) => new Promise((resume) => setTimeout(resume, milliseconds))
const told = ({ name, status, code, detail, errors }) => ({ name, status, code, detail, errors })
const store = connect(url, { token, onConnection: (isThere) => print("connection", isThere) })
"""


def start(workspace, port, text, token=None, given=None):
    """Starts a script; `print` in it prints a line of JSON, and `given` is what the test gives it."""
    need("node")
    directory = workspace.path(f"script{workspace.count()}")
    os.mkdir(directory)
    # Node 18 takes a file for a module by its name.
    shutil.copy(CLIENT, os.path.join(directory, "client.mjs"))
    with open(os.path.join(directory, "main.mjs"), "w") as file:
        file.write(PRELUDE + text)
    with open(os.path.join(directory, "given.json"), "w") as file:
        json.dump([f"http://127.0.0.1:{port}", token, given or {}], file)
    return Program(workspace, ["node", "main.mjs"], directory)


def printed(script, name):
    """What the script has printed behind this name, line by line."""
    expect(not script.process.poll(), "the script ended:", script.errors())
    return [line[1:] for line in script.printed() if line[0] == name]


def named(lines):
    """What stands first behind each name."""
    return {name: rest[0] for name, *rest in lines if rest}


def ended(script, seconds=20):
    """Awaits the end of a script that ends by itself, and returns the lines that it has printed."""
    wait_until(lambda: script.process.poll() is not None, "the script has ended", seconds)
    expect_equal(script.process.returncode, 0, "the exit code, with " + script.errors())
    return script.printed()
