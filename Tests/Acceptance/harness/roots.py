"""Fresh Debian systems in folders, and programs that run inside them."""

import os
import pathlib
import shlex
import shutil
import tempfile

import pytest
from harness.expectations import expect_equal
from harness.tools import need, run

# Runs a program inside the root $0: with a /proc of its own, and with /tmp in common, so that paths of a test are the same
# inside. The mounts are in a namespace that ends with the program, and the process is that of the program.
ENTER = 'mount -t proc proc "$0/proc" && mount --bind /tmp "$0/tmp" && cd / && exec chroot "$0" "$@"'


class Root:
    """A Debian system in a folder, of a suite such as `bookworm`; its programs listen on the addresses of this machine."""

    def __init__(self, suite):
        need("debootstrap", "unshare")
        if os.geteuid() != 0:
            pytest.skip("only root can enter another root")
        self.suite = suite
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"storekeeper-{suite}-"))
        self.folder.chmod(0o755)
        code, said = run(
            *("debootstrap", "--variant=minbase", "--include=systemd-standalone-sysusers", suite, self.folder), seconds=600
        )
        expect_equal(code, 0, f"debootstrap: {said[-2000:]}")

    def command(self, *arguments):
        """The command line that runs a program inside."""
        return ["unshare", "--mount", "sh", "-c", ENTER, str(self.folder), *map(str, arguments)]

    def run(self, *arguments):
        """Runs a program inside to its end, and returns what it prints; any exit code but 0 is a failure."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        code, said = run(*self.command(*arguments), env=environment)
        expect_equal(code, 0, f"{shlex.join(map(str, arguments))}: {said[-2000:]}")
        return said

    def wrap(self, path, *command):
        """Writes a program of this machine that runs a command inside, and returns its path."""
        with open(path, "w") as file:
            file.write(f'#!/bin/sh\nexec {shlex.join(self.command(*command))} "$@"\n')
        os.chmod(path, 0o755)
        return path

    def remove(self):
        shutil.rmtree(self.folder)

