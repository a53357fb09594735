"""Commits that do not concern a waiter."""

import json
import threading

from harness.actions import action, add
from harness.expectations import expect_equal, wait_until
from harness.pollers import Poller


def test_50_pollers_sleep_through_400_commits_that_leave_their_selections_as_they_are(workspace):
    server = workspace.server()
    with server.client() as writer:
        writer.commit(add(5))
        writer.commit(action("tasks/add", {"id": 1, "title": "one"}))
        places = ["/counter", "/counter/value", "/tasks/entities/1", "/tasks/favourites"]
        pollers, answers = [], []
        for index in range(50):
            path = places[index % 4]
            poller, client = Poller(path, wait=6), server.client()
            poller.poll(client)
            pollers.append((poller, client))

        def wait(poller, client):
            try:
                answers.append(poller.poll(client).status)
            except Exception as error:
                answers.append(error)

        threads = [threading.Thread(target=wait, args=pair, daemon=True) for pair in pollers]
        for thread in threads:
            thread.start()
        wait_until(lambda: server.metric(writer, "waiters") == 50, "50 waiters")
        for number in range(100):
            writer.commit(add(0))
            writer.commit(action("tasks/add", {"id": 1000 + number, "title": "another"}))
            writer.commit(action("tasks/rename", {"id": 1000, "title": f"another {number}"}))
            # There and back within one commit.
            writer.commit(json.dumps([json.loads(add(3)), json.loads(add(-3))]).encode())
        before = server.metric(writer, "waiters")
        for thread in threads:
            thread.join(20)
        expect_equal([answer for answer in answers if answer != 304], [], "answers other than 304")
        expect_equal(before, 50, "waiters that still slept after the commits")
        expect_equal(len(answers), 50, "answers")
