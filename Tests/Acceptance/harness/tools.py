"""Programs of other projects that judge the files under config."""

import ctypes
import functools
import importlib
import os
import pathlib
import shutil
import subprocess
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
CONFIG = ROOT / "config"
PACKAGES = ROOT / ".build/package"
# Programs of Debian for an administrator, and those of Python packages.
FOLDERS = [os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", sysconfig.get_path("scripts")]


@functools.cache
def takes_chunks():
    """Whether the server takes chunked bodies: it does with libmicrohttpd 1.0 and later."""
    library = ctypes.CDLL("libmicrohttpd.so.12")
    library.MHD_get_version.restype = ctypes.c_char_p
    return int(library.MHD_get_version().split(b".")[0]) >= 1


def find(program):
    """The path of a program, or nothing where it is not installed."""
    return shutil.which(program, path=os.pathsep.join(FOLDERS))


def need(*programs):
    """Skips the test on a machine without these; CI has to install packages.txt and requirements.txt."""
    lacking = [program for program in programs if not find(program)]
    if lacking:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"not installed: {', '.join(lacking)}")


def made(pattern):
    """The path of the one file that .ci/package has made by this name."""
    found = list(PACKAGES.glob(pattern))
    if len(found) != 1:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f".ci/package has not made {pattern}: {found}")
    return found[0]


def run(program, *arguments, input="", seconds=120, **others):
    """Runs a program to its end, and returns its exit code and what it has printed."""
    done = subprocess.run(
        [find(program), *map(str, arguments)],
        input=input,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        **others,
    )
    return done.returncode, done.stdout


def need_module(name):
    """Imports a module, or skips the test on a machine without it; CI has to install requirements.txt."""
    try:
        return importlib.import_module(name)
    except ImportError:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"not installed: the Python module {name}")
