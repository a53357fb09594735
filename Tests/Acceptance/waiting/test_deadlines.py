"""Waits whose time is up."""

import json
import time

import pytest

from harness.actions import action, add
from harness.expectations import expect, sleep_until
from harness.messages import encode_request


@pytest.mark.prompt
@pytest.mark.rounds(4, long=6)
def test_a_wait_whose_time_is_up_during_its_answer_gets_200_or_304(workspace, figures, rounds):
    """Never a refusal: 2,000 waits end in the moment of a commit."""
    server, counts = workspace.server(), {200: 0, 304: 0}
    with server.client() as control:
        clients = [server.client(timeout=20) for _ in range(2000)]
        try:
            for _ in range(rounds):
                tag = control.get("/v1/state/counter").fields["etag"]
                request = encode_request("GET", "/v1/state/counter?wait=1", fields={"If-None-Match": tag})
                begun = time.monotonic()
                for client in clients:
                    client.send(request)
                # The server shortens each wait by up to a sixteenth: the times of many are up in this moment.
                sleep_until(begun + 0.98)
                control.commit(add(1))
                for client in clients:
                    answer = client.receive()
                    expect(answer.status in counts, "an answer to a wait that has ended:", answer)
                    counts[answer.status] += 1
        finally:
            for client in clients:
                client.close()
    expect(min(counts.values()) > 0, f"NOT CHECKED: no commit came close to the deadlines: {counts}")
    figures(f"{counts[200]} answers 200, {counts[304]} answers 304")


@pytest.mark.rounds(3, long=12)
def test_a_wait_for_a_value_that_takes_long_to_encode_ends_in_time(workspace, figures, rounds):
    """Commits and deadlines fall in any order."""
    server, slowest = workspace.server(data="none"), 0
    with server.client() as control:
        for start in range(0, 60_000, 5000):
            control.commit(
                json.dumps(
                    [
                        {"type": "tasks/add", "payload": {"id": number, "title": "t"}}
                        for number in range(start, start + 5000)
                    ]
                ).encode()
            )
        clients = [server.client(timeout=8) for _ in range(12)]
        try:
            for turn in range(rounds):
                # The value never comes: only the deadline answers these requests.
                for index, client in enumerate(clients):
                    client.send(encode_request("GET", f"/v1/state/tasks/entities?until=1&wait={0.05 + 0.01 * index}"))
                begun = time.monotonic()
                while time.monotonic() < begun + 0.25:
                    control.commit(action("tasks/rename", {"id": turn, "title": str(time.monotonic())}))
                for client in clients:
                    answer = client.receive()
                    expect(answer.status in (200, 304), "an answer to a wait that has ended:", answer)
                slowest = max(slowest, time.monotonic() - begun)
        finally:
            for client in clients:
                client.close()
    figures(f"{rounds * len(clients)} waits of at most 0.16 s; the last of a round was answered after {slowest:.2f} s")
