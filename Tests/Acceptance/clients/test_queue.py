"""The queue in Python of the page Clients, as it stands there, with a lease of two seconds."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
from collections import Counter

import pytest

from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until
from harness.pages import blocks
from harness.programs import HERE, Program, free_port
from harness.python import CLIENT
from harness.tools import need_module

LEASE = "LEASE = 30"


class Queue:
    """A server with a document, and workers as they stand on the page."""

    def __init__(self, workspace):
        self.workspace, self.port = workspace, free_port()
        self.server = workspace.server(domain="document", listen_also=f"127.0.0.1:{self.port}")
        self.workers = []

    def add(self, **jobs):
        """Adds jobs that take so many seconds."""
        with self.server.client() as client:
            for name, seconds in jobs.items():
                place = f"/jobs/{name}"
                client.commit(action("document/set", {"path": place, "value": {"seconds": seconds}}))

    def jobs(self):
        with self.server.client() as client:
            return client.get("/v1/state").json.get("jobs", {})

    def start_worker(self):
        _, (_, text) = blocks("Guides/Clients.md", "python")
        expect(HERE in text and LEASE in text, "the program has another address, or another lease")
        directory = pathlib.Path(self.workspace.path(f"worker{self.workspace.count()}"))
        directory.mkdir()
        shutil.copy(CLIENT, directory / "storekeeper.py")
        text = text.replace(HERE, f"127.0.0.1:{self.port}").replace(LEASE, "LEASE = 2")
        (directory / "main.py").write_text(text)
        worker = Program(self.workspace, [sys.executable, "main.py"], str(directory))
        self.workers.append(worker)
        return worker

    def said(self, worker):
        expect(worker.process.poll() is None, "the worker has ended:", worker.errors())
        return pathlib.Path(worker.output).read_text().splitlines()

    def hold(self, name):
        """Waits until a worker has the job."""
        wait_until(lambda: "worker" in self.jobs()[name], f"a worker has {name}")


@pytest.fixture
def queue(workspace):
    return Queue(workspace)


def test_each_job_is_done_once_by_several_workers_also_when_the_server_is_killed(queue):
    names = [f"mail-{number:02}" for number in range(30)]
    for _ in range(3):
        queue.start_worker()
    queue.add(**dict.fromkeys(names, 0.05))
    wait_until(lambda: len(queue.jobs()) < 20, "the workers work")
    queue.server.restart()
    wait_until(lambda: queue.jobs() == {}, "the jobs are done", 60)
    queue.add(**{"a~1b~0c": 0})
    wait_until(lambda: queue.jobs() == {}, "a job with an odd name is done")

    # A lease can end while the server is away: then a worker has lost its job, and another one has done it.
    def done():
        return Counter(line for worker in queue.workers for line in queue.said(worker) if line.startswith("done"))

    wait_until(lambda: len(done()) == len(names) + 1, "the workers have said so")
    expect_equal(done(), Counter(f"done {name}" for name in [*names, "a/b~c"]), "what the workers have said")
    expect(all(queue.said(worker) for worker in queue.workers), "a worker has done nothing")


def test_a_job_that_takes_longer_than_the_lease_stays_with_its_worker(queue):
    first = queue.start_worker()
    queue.add(long=5)
    queue.hold("long")
    second = queue.start_worker()
    queue.add(short=0)
    wait_until(lambda: queue.jobs() == {}, "the jobs are done", 20)
    wait_until(lambda: queue.said(first), "the first worker has said so")
    expect_equal((queue.said(first), queue.said(second)), (["done long"], ["done short"]), "who has done what")


def test_the_job_of_a_killed_worker_goes_to_another_one(queue):
    first = queue.start_worker()
    queue.add(job=1)
    queue.hold("job")
    first.end()
    second = queue.start_worker()
    wait_until(lambda: queue.jobs() == {}, "the job is done", 20)
    wait_until(lambda: queue.said(second), "the second worker has said so")
    expect_equal(queue.said(second), ["done job"], "the second worker")


def test_a_worker_alone_takes_the_job_again_that_it_has_lost(queue):
    worker = queue.start_worker()
    queue.add(job=2)
    queue.hold("job")
    with queue.server.client() as client:
        client.commit(action("document/remove", {"path": "/jobs/job/worker"}))
    wait_until(lambda: queue.said(worker) == ["lost job", "done job"], "the worker takes its job again", 20)


def test_a_worker_that_stood_still_for_longer_than_its_lease_cannot_acknowledge(queue):
    first = queue.start_worker()
    queue.add(job=0.5)
    queue.hold("job")
    os.kill(first.process.pid, signal.SIGSTOP)
    wait_until(lambda: "worker" not in queue.jobs()["job"], "the lease is over")
    second = queue.start_worker()
    queue.hold("job")
    os.kill(first.process.pid, signal.SIGCONT)
    wait_until(lambda: queue.jobs() == {} and queue.said(first) and queue.said(second), "the job is done", 20)
    expect_equal((queue.said(first), queue.said(second)), (["lost job"], ["done job"]), "who has done what")


def test_the_worker_is_typed(queue, workspace):
    need_module("mypy")
    directory = pathlib.Path(queue.start_worker().directory)
    check = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.9", "storekeeper.py", "main.py"]
    done = subprocess.run(check, cwd=directory, capture_output=True, text=True)
    expect_equal(done.returncode, 0, done.stdout)
