"""The model engine without a server: the program of Tests/ModelEngine, and node as the reference."""

import json
import pathlib
import shutil
import subprocess

from harness.expectations import expect

ROOT = pathlib.Path(__file__).resolve().parents[3]
META = {"id": "k3v9q7m2abcdefgh.1", "time": "2030-01-31T12:00:00.000Z", "by": "ci"}


def build(folder):
    """Compiles the program into the folder, and returns its path."""
    program = folder / "model_lines"
    # The sources are embedded by #embed, which Debian's own compilers do not take.
    clang = shutil.which("clang") or "/opt/swift/usr/bin/clang"
    engine = ROOT / "Sources/CModelEngine"
    done = subprocess.run(
        [clang, "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-I", engine / "include"]
        + [*sorted(engine.glob("*.c")), ROOT / "Tests/ModelEngine/model_lines.c", "-o", program, "-ldl"],
        capture_output=True,
        text=True,
    )
    expect(done.returncode == 0, "the model engine does not compile:", done.stderr)
    return program


def compact(value):
    return json.dumps(value, separators=(",", ":"))


class Lines:
    """A process that answers each line with a line."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


class Model(Lines):
    """A model of one file."""

    def __init__(self, program, path, seconds=0.05):
        super().__init__(program, path, str(seconds))
        self.description = json.loads(self.process.stdout.readline())

    def call(self, *words):
        return self.ask("\t".join(words))

    def load(self, state):
        return self.call("load", compact(state))

    def reduce(self, kind, payload=None, meta=META):
        action = {"type": kind, "meta": meta} | ({} if payload is None else {"payload": payload})
        return self.call("reduce", kind, compact(action))

    @property
    def state(self):
        return self.call("state")["state"]


def difference(old, new, path=""):
    """A patch from one value to another: of objects member by member, and of anything else as a whole."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [] if compact(old) == compact(new) else [{"op": "replace", "path": path, "value": new}]
    operations = []
    for name in {**old, **new}:
        place = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if name not in new:
            operations.append({"op": "remove", "path": place})
        elif name not in old:
            operations.append({"op": "add", "path": place, "value": new[name]})
        else:
            operations += difference(old[name], new[name], place)
    return operations
