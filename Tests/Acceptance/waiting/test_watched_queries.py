"""Queries that clients wait for and follow, while members come, change, move and go."""

import pytest

from harness.expectations import expect
from harness.query_followers import follow_queries


@pytest.mark.rounds(500, long=5000)
@pytest.mark.seconds(long=1200)
def test_what_clients_get_of_watched_queries_is_what_the_query_says_of_that_version(workspace, figures, rounds):
    server = workspace.server(domain="document", data="none", history_commits_max=20_000)
    results = follow_queries(workspace, [server], count=20 if rounds == 500 else 50, commits=rounds, pause=0.01)
    expect(results > rounds // 5, f"only {results} results")
    figures(f"{results} results of watched queries, each as the past says")


@pytest.mark.rounds(200, long=2000)
def test_queries_are_followed_through_kills_of_the_server(workspace, figures, rounds):
    server = workspace.server(domain="document", data=workspace.path("data"), history_commits_max=20_000)

    def disturb(part):
        server.kill() if part % 2 else server.stop()
        server.start()

    results = follow_queries(workspace, [server], count=12, commits=rounds, pause=0.01, disturb=disturb)
    figures(f"{results} results of watched queries through two stops and a kill, each as the past says")
