"""Hooks of a server under test, and their receivers."""

import json
import os
import pathlib
import subprocess
import sys

from harness.expectations import Failure, expect, expect_equal, wait_until
from harness.programs import Restarting, free_port, storekeeper
from harness.tools import need_module


def hook(workspace, data, *arguments, code=0, settings={}):
    """Runs `storekeeper hook` on a data directory, and returns what it prints."""
    command, *others = arguments
    result = storekeeper(workspace, "hook", command, "--data", data, *others, **settings)
    expect_equal(result.returncode, code, f"the exit code of hook {command}, which says {result.stderr}")
    return result.stdout if code == 0 else result.stderr


class Receiver(Restarting):
    """A receiver with a hook of its own, as a process on a port that stays the same."""

    def __init__(self, workspace, data, *options, **settings):
        need_module("standardwebhooks")
        self.workspace, self.data = workspace, data
        name = f"receiver{workspace.count()}"
        self.file, self.settings_path = workspace.path(name + ".lines"), workspace.path(name + ".json")
        self.settings = {"port": free_port(), "file": self.file, "seed": workspace.seed, **settings}
        self.id, self.settings["secret"] = hook(
            workspace, data, "create", "--url", f"http://127.0.0.1:{self.settings['port']}/hook", *options
        ).split()
        self.process = None
        self.start()

    def set(self, **settings):
        self.settings |= settings
        # A receiver may be reading.
        pathlib.Path(self.settings_path + ".new").write_text(json.dumps(self.settings))
        os.replace(self.settings_path + ".new", self.settings_path)

    def start(self):
        self.set()
        program = pathlib.Path(__file__).with_name("hook_receiver.py")
        self.process = subprocess.Popen([sys.executable, program, self.settings_path])
        self.workspace.started.append(self.process)

    def hook(self, command, *arguments, **others):
        return hook(self.workspace, self.data, command, self.id, *arguments, **others)

    def listed(self):
        """The line of the hook in `hook list`."""
        lines = hook(self.workspace, self.data, "list").splitlines()
        return next(line for line in lines if line.startswith(self.id))

    @property
    def taken(self):
        """What the receiver has taken, in order."""
        if not os.path.exists(self.file):
            return []
        with open(self.file) as file:
            lines = [json.loads(line) for line in file.read().splitlines()]
        for line in lines:
            expect("fault" not in line, "the receiver has refused a delivery:", line)
            expect_equal(line["path"], "/hook", "where a delivery has come")
        return lines

    @property
    def commits(self):
        """The bodies, in order, without those that come again."""
        return [json.loads(body) for body in {line["id"]: line["body"] for line in self.taken}.values()]

    def wait_for(self, count, seconds=60):
        wait_until(lambda: len({line["id"] for line in self.taken}) >= count, f"{count} deliveries", seconds)


def judge(receiver, client, wanted, reads="/v1/changes?since=oldest&limit=1000"):
    """Whether the receiver has each commit of these versions, in order, with the bytes of /v1/changes.

    A commit may come again, and what follows it then comes again, too.
    """
    taken = [(line["id"], json.loads(line["body"])["version"], line["body"]) for line in receiver.taken]
    place = {version: index for index, version in enumerate(wanted)}
    last = -1
    bodies = {}
    for id, version, body in taken:
        expect(version in place, f"version {version} does not concern the hook")
        expect(place[version] <= last + 1, f"version {version} has come behind {wanted[max(0, last - 2) : last + 1]}")
        last = place[version] if place[version] != last else last
        expect(bodies.setdefault(id, body) == body, f"{id} has come with another body: {body}")
    expect_equal(len(bodies), len(wanted), "how many commits have come")
    shown = b""
    since = reads
    while True:
        page = client.get(since)
        shown += page.body
        answer = page.json
        if not answer["more"]:
            break
        since = f"{reads.replace('since=oldest', 'since=' + answer['next'])}"
    for body in bodies.values():
        if body.encode() not in shown:
            raise Failure(f"/v1/changes does not show {body}")
    return len(taken)
