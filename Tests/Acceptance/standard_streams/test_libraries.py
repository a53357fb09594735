"""The clients of the Durable Streams protocol in TypeScript and Swift, through kill -9."""

import os
import pathlib
import subprocess

import pytest

from harness.actions import add
from harness.expectations import Failure, expect, wait_until
from harness.kills import change_through_kills, judge_commits, judge_copies
from harness.libraries import MAKERS
from harness.programs import Program, free_port
from harness.worker import processes

PROGRAMS = pathlib.Path(__file__).parent / "programs"
# How a program reads, and how many batches for each kill lie between two copies of the state: it makes about a hundred.
MODES = {"catch-up": 0.5, "long-poll": 0.5, "sse": 2}


class Follower(Program):
    """A program that prints what it has of a stream until it has all of it."""

    def __init__(self, workspace, command, made, url, mode, step):
        directory = pathlib.Path(workspace.path(f"follower{workspace.count()}"))
        directory.mkdir()
        super().__init__(workspace, [*command[:-1], str(made / command[-1]), url, mode, str(step)], str(directory))

    @property
    def has_begun(self):
        return os.path.getsize(self.output) > 0

    def result(self, seconds):
        """What it has printed: lines for its batches, and how many batches and losses it had."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.command} was not done within {seconds} s: {self.printed()[-1:]}") from None
        expect(code == 0, f"{self.command} ended with {code}:", self.errors())
        *lines, end = self.printed()
        return lines, end


@pytest.mark.rounds(2, long=20)
@pytest.mark.parametrize("language", ["ts", "swift"])
def test_every_client_has_every_commit_once_and_in_order_through_kills(workspace, language, rounds, figures):
    made = pathlib.Path(workspace.path("program"))
    made.mkdir()
    command = MAKERS[language](made, (PROGRAMS / f"follow.{language}").read_text())
    fixed = free_port()
    server = workspace.server(listen_also=f"127.0.0.1:{fixed}")
    with server.client() as client:
        client.commit(add(1))  # A long-poll of an empty stream has no batch.
    base = f"http://127.0.0.1:{fixed}/v1/streams"
    commits, states = (
        [Follower(workspace, command, made, f"{base}/{name}", mode, int(rounds * MODES[mode])) for mode in MODES]
        for name in ("commits", "state")
    )
    wait_until(lambda: all(follower.has_begun for follower in commits + states), "the programs have begun", 30)
    latest = change_through_kills(workspace, server, processes.Value("i", server.port), rounds)
    ends, compared = [], []
    for follower in commits:
        lines, end = follower.result(60)
        judge_commits([(line["offset"], line["items"]) for line in lines], latest)
        ends.append(end)
    with server.client() as client:
        for follower in states:
            lines, end = follower.result(60)
            copies = [(line["offset"], values_of(line["state"])) for line in lines]
            compared.append(judge_copies(client, copies, latest))
            ends.append(end)
    # A program that waited for the end would have all in a few batches.
    batches, losses = [end["batches"] for end in ends], [end["losses"] for end in ends]
    expect(min(batches) > rounds and sum(losses) >= rounds, f"the programs had {batches} batches and {losses} losses")
    figures(
        f"{latest} commits, {rounds} kills, {losses} losses in {batches} batches; "
        f"the copies equal the state at {compared} versions"
    )


def values_of(types):
    return {(name, key): value for name, entities in types for key, value in entities}
