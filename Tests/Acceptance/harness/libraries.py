"""Programs in other languages, made with libraries that are installed beside the project.

DURABLE_STREAMS_LIBRARIES is a folder of clients of the Durable Streams protocol, which the project does not contain:

    node_modules/  as npm makes it, with @durable-streams/client, @durable-streams/state and @tanstack/db
    swift/         the module DurableStreams and its library, of the package client-swift
    go/            a proxy of Go modules as files, with the module client-go

A program whose part of the folder is missing is not made, and its test is skipped.
"""

import os
import pathlib
import subprocess
import sys

import pytest

from harness.expectations import expect
from harness.tools import need, need_module


def libraries(part):
    """The part of the folder with the libraries of a language."""
    folder = os.environ.get("DURABLE_STREAMS_LIBRARIES")
    if not folder:
        pytest.skip("DURABLE_STREAMS_LIBRARIES names no folder with the clients of Durable Streams")
    path = pathlib.Path(folder).resolve() / part
    if not path.is_dir():
        pytest.skip(f"DURABLE_STREAMS_LIBRARIES has no folder {part}")
    return path


def make(command, directory, **variables):
    environment = os.environ | variables
    built = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=300)
    expect(built.returncode == 0, f"{command[0]} says:", built.stdout[-2000:] + built.stderr[-2000:])


def make_sh(directory, text):
    need("curl", "jq")
    (directory / "follow.sh").write_text(text)
    return ["bash", "follow.sh"]


def make_python(directory, text):
    need_module("durable_streams")
    (directory / "follow.py").write_text(text)
    return [sys.executable, "follow.py"]


def make_ts(directory, text):
    modules = libraries("node_modules")
    need("node", "esbuild")
    (directory / "node_modules").symlink_to(modules)
    (directory / "follow.ts").write_text(text)
    # Node takes the libraries as they are installed; only the types of the program itself are removed.
    make(["esbuild", "follow.ts", "--format=esm", "--outfile=follow.mjs"], directory)
    return ["node", "follow.mjs"]


def make_swift(directory, text):
    modules = libraries("swift")
    need("swiftc")
    # A file is written to in lines, for the test reads it as it grows.
    (directory / "main.swift").write_text("import Glibc\nsetlinebuf(stdout)\n" + text)
    make(
        ["swiftc", "-swift-version", "5", "-I", modules, "-L", modules, "-lDurableStreams"]
        + ["-Xlinker", "-rpath", "-Xlinker", modules, "-o", "follow", "main.swift"],
        directory,
    )
    return ["./follow"]


def make_go(directory, text):
    proxy = libraries("go")
    need("go")
    (directory / "main.go").write_text(text)
    (directory / "go.mod").write_text("module follow\n\ngo 1.19\n")
    variables = {"GOPROXY": proxy.as_uri(), "GONOSUMDB": "*", "GOMODCACHE": f"{directory}/modules"}
    variables["GOFLAGS"] = "-modcacherw"
    make(["go", "mod", "tidy"], directory, **variables)
    make(["go", "build", "-o", "follow", "."], directory, **variables)
    return ["./follow"]


MAKERS = {"sh": make_sh, "python": make_python, "ts": make_ts, "swift": make_swift, "go": make_go}
