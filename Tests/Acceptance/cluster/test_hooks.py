"""Hooks of three servers on one history, of which the one that writes delivers, and is killed."""

import random

import pytest

from harness.actions import add
from harness.etcd import Etcds
from harness.expectations import expect_equal, wait_until
from harness.hooks import Receiver
from harness.nodes import led, writer_of


@pytest.mark.rounds(2, long=10)
def test_each_commit_comes_in_order_through_kills_of_the_writer(workspace, figures, rounds):
    chance = random.Random(workspace.seed)
    address = Etcds(workspace, 1).address("hooks")
    servers = led(workspace, address, [{}] * 3)
    receiver = Receiver(workspace, address, "--read", "*")
    sent = 0
    for _ in range(rounds):
        wait_until(lambda: writer_of(servers) is not None, "one writes", 20)
        writer = writer_of(servers)
        other = next(server for server in servers if server is not writer)
        with other.client() as client:
            for _ in range(100):
                sent += 1
                # On a busy machine the writer can lose its part, and the outcome is then unknown.
                key = f'"{sent}"'
                wait_until(lambda: client.post(add(1), Idempotency_Key=key).status == 200, f"action {sent} is taken", 20)
        writer.restart(after=chance.uniform(0, 1))
    receiver.wait_for(sent, 40)
    versions = [commit["version"] for commit in receiver.commits]
    expect_equal(versions, list(range(1, sent + 1)), "the versions")
    wait_until(lambda: "up to date" in receiver.listed(), "the list says that nothing is left")
    again = len(receiver.taken) - sent
    figures(f"{sent} commits through {rounds} kills of the writer; {again} came again")


def test_running_servers_notice_a_hook_and_its_end(workspace):
    servers = led(workspace, Etcds(workspace, 1).address("hooks"), [{}] * 3)
    receiver = Receiver(workspace, servers[0].data, "--read", "*")
    for server in servers:
        wait_until(lambda: '"hooks":"1"' in server.log_text(), "the server has read the hook", 5)
    with servers[0].client() as client:
        client.commit(add(1))
    receiver.wait_for(1, 10)
    receiver.hook("delete")
    for server in servers:
        wait_until(lambda: '"hooks":"0"' in server.log_text(), "the server has read that there is none", 5)
