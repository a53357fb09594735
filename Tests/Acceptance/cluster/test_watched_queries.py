"""Queries that clients wait for and follow at several servers of one history, while servers end and come back."""

import pytest

from harness.etcd import Etcds
from harness.nodes import Nodes
from harness.query_followers import follow_queries


@pytest.mark.rounds(200, long=2000)
def test_queries_are_followed_at_three_servers_through_kills(workspace, figures, rounds):
    nodes = Nodes(workspace, Etcds(workspace, 1), "queries", domain="document")

    def disturb(part):
        nodes.servers[1 + part % 2].kill()
        nodes.restart(1 + part % 2)

    results = follow_queries(workspace, nodes.servers, count=12, commits=rounds, pause=0.02, disturb=disturb)
    figures(f"{results} results of watched queries at three servers through three kills, each as the past says")
