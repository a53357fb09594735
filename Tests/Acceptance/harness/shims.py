"""Libraries that a server is started with, by which its disk and its clocks fail."""

import mmap
import os
import shutil
import struct
import subprocess

from harness.expectations import expect

SOURCES = os.path.join(os.path.dirname(__file__), "shims")


class Shim:
    """A library for LD_PRELOAD, compiled for one test, and the memory by which the test controls it."""

    def __init__(self, workspace, name, variable):
        self.library = workspace.path(f"{name}.so")
        if not os.path.exists(self.library):
            source = os.path.join(SOURCES, f"{name}.c")
            # The toolchain has clang where there is no other compiler.
            compiler = shutil.which("cc") or "clang"
            done = subprocess.run(
                [compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", self.library, source, "-ldl"],
                capture_output=True,
                text=True,
            )
            expect(done.returncode == 0, f"{name}.c does not compile:", done.stderr)
        self.variable = variable
        self.control = workspace.path(f"{name}{workspace.count()}.control")
        with open(self.control, "wb") as file:
            file.write(bytes(4096))
        with open(self.control, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 4096)

    def attach(self, server):
        """The server has the library from its next start on."""
        libraries = [self.library, server.environment.get("LD_PRELOAD", "")]
        server.environment["LD_PRELOAD"] = " ".join(filter(None, libraries))
        server.environment[self.variable] = self.control


class Disk(Shim):
    """The disk of a server: its syncs, writes and reads fail as a test says."""

    KINDS = {"sync": 1, "write": 2, "full": 3, "short": 4, "late sync": 5, "read": 6}

    def __init__(self, workspace, server):
        super().__init__(workspace, "disk", "FAULT_CONTROL")
        server.environment["FAULT_DIRECTORY"] = server.data + "/"
        self.attach(server)

    def fail(self, kind, after=0, times=0):
        """Makes `times` calls fail, or all for 0, after some that pass."""
        self.heal()
        struct.pack_into("4i", self.memory, 0, 0, after, 0, times)
        struct.pack_into("i", self.memory, 0, self.KINDS[kind])

    def heal(self):
        struct.pack_into("i", self.memory, 0, 0)

    @property
    def failures(self):
        """How many calls have failed since the last `fail`."""
        return struct.unpack_from("i", self.memory, 8)[0]


class Clocks(Shim):
    """The clocks of a server."""

    def __init__(self, workspace, server):
        super().__init__(workspace, "clocks", "CLOCK_CONTROL")
        self.attach(server)

    def move(self, wall, monotonic=0):
        struct.pack_into("2q", self.memory, 0, wall, monotonic)
