"""Who changed this? Commits that a filter seldom passes come in one answer, however many others lie between them."""

import threading
import time

import pytest

from harness.actions import action, bulk
from harness.client import Client
from harness.expectations import expect, expect_equal
from harness.journal import damage_segment
from harness.workspace import Workspace

BETWEEN = 11_000
TIMES = 4


@pytest.fixture(scope="module")
def server(pytestconfig):
    """A document in which one place has been changed four times, with many other commits behind each; some of them are only
    in the journal."""
    workspace = Workspace(pytestconfig.storekeeper, pytestconfig.seed)
    server = workspace.server(domain="document", data=workspace.path("data"), history_commits_max=20_000)
    with server.client() as client:
        for number in range(TIMES):
            client.commit(action("document/set", {"path": "/counter", "value": number}, id=f"rare-{number}"))
            for start in range(0, BETWEEN, 5500):
                bulk(client, [action("document/increment", {"path": "/other"})] * 5500)
    yield server
    workspace.close()


FILTERS = ["path=/counter", "types=document/set", "path=/counter&types=document/*"]


@pytest.mark.parametrize("wanted", FILTERS)
@pytest.mark.parametrize("since, order", [("before=now", -1), ("since=oldest", 1)])
def test_all_of_them_come_in_one_answer(server, wanted, since, order):
    with server.client() as client:
        page = client.get(f"/v1/changes?{since}&limit=10&{wanted}").json

    expect_equal([commit["id"] for commit in page["changes"]], [f"rare-{number}" for number in range(TIMES)][::order], "the commits")
    expect_equal(page["more"], False, "whether there are more")


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("since, order", [("before", -1), ("since", 1)])
def test_pages_of_them_go_on_from_next_with_each_once(server, limit, since, order):
    found, place, pages = [], {"before": "now", "since": "oldest"}[since], 0
    with server.client() as client:
        while place:
            page = client.get(f"/v1/changes?{since}={place}&limit={limit}&path=/counter").json
            expect(len(page["changes"]) <= limit, "a page is too long")
            found += [commit["id"] for commit in page["changes"]]
            place, pages = page["next"] if page["more"] else None, pages + 1
    expect_equal(found, [f"rare-{number}" for number in range(TIMES)][::order], "the commits")
    expect(pages <= TIMES // limit + 1, f"it took {pages} pages")


def test_searches_for_what_was_never_changed_hold_nobody_else(server):
    with server.client() as client, Client(server.port, source="127.0.0.2") as other:
        done = []

        def search():
            with server.client() as mine:
                for _ in range(5):
                    place, more = "now", True
                    while more:
                        page = mine.get(f"/v1/changes?before={place}&path=/never").json
                        place, more = page["next"], page["more"]
                        done.append(page["changes"])

        threads = [threading.Thread(target=search) for _ in range(4)]
        for thread in threads:
            thread.start()
        waits = []
        while any(thread.is_alive() for thread in threads):
            begin = time.monotonic()
            expect_equal(len(other.get("/v1/changes?before=now&limit=5").json["changes"]), 5, "the commits of another client")
            waits.append(time.monotonic() - begin)
        for thread in threads:
            thread.join()
    expect(len(done) >= 20 and not any(done), "the answers:", done)
    expect(sorted(waits)[len(waits) // 2] < 1, f"another client waited {sorted(waits)[len(waits) // 2]:.2f} s")



def test_what_cannot_be_read_behind_what_was_found_is_said_by_the_next_answer(workspace):
    server = workspace.server(domain="document", history_commits_max=1000)
    with server.client() as client:
        for number in range(2):
            client.commit(action("document/set", {"path": "/counter", "value": number}, id=f"rare-{number}"))
            for _ in range(2 * BETWEEN // 5500):
                bulk(client, [action("document/increment", {"path": "/other"})] * 5500)
    server.stop()
    server.start()
    damage_segment(server, BETWEEN + BETWEEN // 2)
    with server.client() as client:
        page = client.get("/v1/changes?since=oldest&limit=10&path=/counter").json
        answer = client.get(f"/v1/changes?since={page['next']}&limit=10&path=/counter")
    expect_equal(([commit["id"] for commit in page["changes"]], page["more"]), (["rare-0"], True), "what lies before the damage")
    expect_equal((answer.status, answer.json.get("code")), (500, "journal-damaged"), "what the next answer says")
