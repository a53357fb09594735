"""What a server knows of its history after many stops in good order."""

from harness.actions import add
from harness.expectations import expect_equal


def test_a_history_begins_at_its_first_state_after_many_stops(workspace):
    server = workspace.server()
    for _ in range(12):
        with server.client() as client:
            for _ in range(5):
                client.commit(add(1))
        server.stop()
        server.start()
    with server.client() as client:
        for version in (0, 1, 37, 60):
            answer = client.get(f"/v1/state/counter?version={version}")
            expect_equal((answer.status, answer.json), (200, {"value": version}), f"the state of version {version}")
