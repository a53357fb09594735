"""Scripts for Python that have a store of client.py."""

import json
import os
import shutil
import sys

from harness.pages import ROOT
from harness.programs import Program

CLIENT = ROOT / "Sources/CPage/files/client.py"
PRELUDE = """\
import json, math, threading, time
from storekeeper import Problem, connect
url, token, given = json.load(open("given.json"))
def show(*values):
    print(json.dumps(values) + "\\n", end="", flush=True)
def caught(name, work):
    try:
        show(name, {"value": work()})
    except Problem as problem:
        show(name, {"status": problem.status, "code": problem.code, "detail": problem.detail, "errors": problem.errors})
    except Exception as error:
        show(name, {"error": type(error).__name__})
def aside(work, *arguments):
    thread = threading.Thread(target=work, args=arguments)
    thread.start()
    return thread
store = connect(url, token=token)
"""


def start(workspace, port, text, token=None, given=None, python=sys.executable):
    """Starts a script; `show` in it prints a line of JSON, and `given` is the test's."""
    directory = workspace.path(f"script{workspace.count()}")
    os.mkdir(directory)
    shutil.copy(CLIENT, os.path.join(directory, "storekeeper.py"))
    with open(os.path.join(directory, "main.py"), "w") as file:
        file.write(PRELUDE + text)
    with open(os.path.join(directory, "given.json"), "w") as file:
        json.dump([f"http://127.0.0.1:{port}", token, given], file)
    return Program(workspace, [python, "-X", "dev", "main.py"], directory)
