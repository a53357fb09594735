"""The directory, servers and workers of one test."""

import os
import shutil
import tempfile

from harness.messages import HOST
from harness.programs import storekeeper
from harness.server import Server
from harness.worker import Worker


class Workspace:
    """The directory, servers and workers of one test; they end with it."""

    # The etcds that have the journals of a run with --journal=etcd.
    etcds = None

    def __init__(self, binary, seed):
        self.binary, self.seed = binary, seed
        self.directory = tempfile.mkdtemp(prefix="storekeeper-acceptance-")
        self.started, self.workers = [], []
        self.at_close = []
        self.names = 0

    def count(self):
        self.names += 1
        return self.names

    def path(self, name):
        return os.path.join(self.directory, name)

    def journal_of(self, data):
        """What `--data` is for a data directory: in a run with --journal=etcd a history of its own in etcd."""
        if self.etcds is None or data == "none" or "://" in data:
            return data
        return self.etcds.address(os.path.relpath(data, os.path.dirname(self.directory)))

    def server(self, data=None, prepare=None, address=HOST, **settings):
        """A running server; by default with a journal in a new directory."""
        return Server(self, data or self.path(f"data{self.count()}"), settings, prepare, address).start()

    def known(self, **settings):
        """Those of the settings that the server has."""
        text = storekeeper(self, "check").stdout
        names = {line.partition("=")[0].strip() for line in text.splitlines()}
        return {name: value for name, value in settings.items() if name in names}

    def empty_state(self):
        """The state that a new history begins with."""
        server = self.server(data="none")
        with server.client() as client:
            state = client.get("/v1/state").json
        server.stop()
        return state

    def worker(self, function, *arguments):
        worker = Worker(function, arguments)
        self.workers.append(worker)
        return worker

    def close(self):
        for worker in self.workers:
            worker.end()
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        for undo in reversed(self.at_close):
            undo()
        shutil.rmtree(self.directory, ignore_errors=True)
