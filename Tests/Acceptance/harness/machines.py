"""Machines in one: network namespaces that a bridge joins, from which a test pulls the cable."""

import contextlib
import ctypes
import os
import subprocess

import pytest

from harness.tools import find, need

CLONE_NEWNET = 0x4000_0000
LIBC = ctypes.CDLL(None, use_errno=True)


class Machines:
    """Namespaces with an address each; what runs in one reaches the others by these, and itself also by loopback."""

    def __init__(self, workspace, count=3):
        need("ip")
        self.name = f"sk{os.getpid()}-{workspace.count()}"
        self.addresses = [f"10.77.0.{number + 1}" for number in range(count)]
        self.files = []
        if os.geteuid() != 0:
            pytest.skip("a network namespace needs root")
        try:
            self.ip("netns", "add", f"{self.name}-bridge")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this machine makes no network namespaces: {error.stderr.strip()}")
        workspace.at_close.append(self.remove)
        self.in_bridge("link", "add", "bridge", "type", "bridge")
        self.in_bridge("link", "set", "bridge", "up")
        for number, address in enumerate(self.addresses):
            space, port = f"{self.name}-{number}", f"port{number}"
            self.ip("netns", "add", space)
            self.files.append(os.open(f"/run/netns/{space}", os.O_RDONLY | os.O_CLOEXEC))
            self.in_bridge("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
            self.in_bridge("link", "set", port, "up")
            for name in ("lo", "eth0"):
                self.ip("-n", space, "link", "set", name, "up")
            self.ip("-n", space, "address", "add", f"{address}/24", "dev", "eth0")
            self.heal(number)

    def ip(self, *words):
        subprocess.run([find("ip"), *words], check=True, capture_output=True, text=True, timeout=20)

    def in_bridge(self, *words):
        self.ip("-n", f"{self.name}-bridge", *words)

    def cut(self, number):
        """Packets from and to this machine are lost from now on; no connection ends by that."""
        self.in_bridge("link", "set", f"port{number}", "nomaster")

    def heal(self, number):
        self.in_bridge("link", "set", f"port{number}", "master", "bridge")

    def enter(self, number):
        """The calling thread, and what it starts, is on this machine from now on."""
        self._enter(self.files[number])

    @contextlib.contextmanager
    def inside(self, number):
        """The sockets that the calling thread makes meanwhile are on this machine, and stay there."""
        here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.enter(number)
        try:
            yield
        finally:
            self._enter(here)
            os.close(here)

    def _enter(self, file):
        if LIBC.setns(file, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    def remove(self):
        for file in self.files:
            os.close(file)
        for space in [*(f"{self.name}-{number}" for number in range(len(self.files))), f"{self.name}-bridge"]:
            self.ip("netns", "del", space)
