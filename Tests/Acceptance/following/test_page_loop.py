"""The loop in the shell that follows every change, as its page has it."""

import json
import os
import signal
import subprocess

import pytest

from harness.actions import add
from harness.expectations import expect_equal, wait_until
from harness.pages import PAGES

PAGE = PAGES / "Guides/Following.md"


class Loop:
    """The page's loop as a process: it asks at the port that stands in a file, and prints to another."""

    def __init__(self, workspace, server):
        self.server, self.port, self.output = server, workspace.path("port"), workspace.path("output")
        self.publish()
        blocks = PAGE.read_text().split("```sh\n")[1:]
        text = next(block for block in blocks if "since=$next" in block).partition("```")[0]
        with open(self.output, "wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", text.replace("localhost:8080", f"127.0.0.1:$(cat {self.port})")],
                stdout=file,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

        def end():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

        workspace.at_close.append(end)

    def publish(self):
        """Says at which port the server is now."""
        with open(self.port + ".new", "w") as new:
            new.write(str(self.server.port))
        os.rename(self.port + ".new", self.port)

    def printed(self):
        with open(self.output) as file:
            return [json.loads(line) for line in file.read().split("\n")[:-1]]

    def commit(self):
        """Commits, and waits until the loop has printed it; the cursors."""
        with self.server.client() as client:
            cursors = [client.commit(add(1))["cursor"] for _ in range(3)]
        wait_until(
            lambda: (printed := self.printed()) and printed[-1].get("cursor") == cursors[-1],
            "the loop printed the commits",
            20,
        )
        return cursors


@pytest.fixture
def loop(workspace):
    """The loop beside a server with a journal, which it waits for."""
    server = workspace.server()
    loop = Loop(workspace, server)
    with server.client() as client:
        wait_until(lambda: server.metric(client, "waiters") == 1, "the loop waits", 10)
    return loop


def test_the_loop_of_the_readme_prints_each_commit_once_across_a_restart_and_the_state_of_a_new_history(loop):
    server = loop.server
    cursors = loop.commit()
    server.restart(down=1.5)
    with server.client() as client:  # while the loop is away
        cursors.append(client.commit(add(1))["cursor"])
    loop.publish()
    cursors += loop.commit()
    expect_equal([line["cursor"] for line in loop.printed()], cursors, "the commits that the loop printed")
    server.kill()
    server.data = "none"
    server.start()
    loop.publish()
    wait_until(lambda: len(loop.printed()) > len(cursors), "the loop printed the state of the new history", 20)
    with server.client() as client:
        expect_equal(
            loop.printed()[len(cursors) :], [{"state": client.get("/v1/state").json}], "what came of the restart"
        )
    news = loop.commit()
    expect_equal([line["cursor"] for line in loop.printed()[len(cursors) + 1 :]], news, "the commits that came then")
