"""Derived stores: clients that see only their own part."""


from harness.actions import action, add, batch
from harness.expectations import expect, expect_equal, remains, wait_until


def test_a_client_of_a_derived_store_sees_and_dispatches_nothing_outside_it(workspace):
    """The client tries all routes of the store."""
    server = workspace.server(data="none")
    with server.client() as client, server.client() as other:
        secret = 987_654_321
        client.commit(action("tasks/add", {"id": 1, "title": "milk"}))
        begun = client.get("/v1/stores/tasks").json["cursor"]
        client.commit(batch(add(secret), action("tasks/complete", {"id": 1})))
        client.commit(add(1))
        root = "/v1/stores/tasks"
        seen = b""
        for target in (
            "",
            "/state",
            "/state?pretty",
            "/views",
            "/views/open",
            "/actions",
            "/openapi.json",
            f"/changes?since={begun}",
            f"/changes?since={begun}&as=keyed",
            "/changes?since=oldest",
            "/changes?since=aaaaaaaaaaaaaaaa.1&on-lost=snapshot",
            "/state/counter",
            "/state?as=keyed",
            "/views/counter",
        ):
            seen += client.get(root + target).body
        expect(str(secret).encode() not in seen, "the counter's value was seen")
        for part in (b"counter/", b"canvas", b"knowsTheCount"):
            expect(part not in seen, "something of another part was seen", part)
        for kind in ("counter/add", "counter/reset", "canvas/removeBlock"):
            refused = client.post(action(kind, {"amount": 1}), root + "/actions")
            expect_equal((refused.status, refused.json["code"]), (422, "unknown-action"), kind)
        mixed = client.post(batch(action("tasks/complete", {"id": 1}), add(1)), root + "/actions")
        expect_equal(mixed.status, 422, "a batch with a foreign action")
        changes = client.get(f"{root}/changes?since={begun}").json
        expect_equal(
            [change["action"] for change in changes["changes"]],
            [[{"type": "tasks/complete", "payload": {"id": 1}}]],
            "the actions of the changes",
        )
        expect_equal(
            changes["changes"][0]["patch"],
            [{"op": "replace", "path": "/entities/1/done", "value": True}],
            "the patch of the change",
        )
        expect_equal(changes["next"], changes["head"], "the cursor moves past the commits of other parts")
        other.send(f"GET {root}/changes?since={changes['next']}&wait=20 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        wait_until(lambda: server.metric(client, "waiters") == 1, "the follower to wait")
        client.commit(add(5))
        remains(lambda: server.metric(client, "waiters") == 1, "the counter wakes no follower of tasks", 0.1)
        client.commit(action("tasks/rename", {"id": 1, "title": "bread"}))
        expect_equal(
            other.receive().json["changes"][0]["patch"][0]["path"], "/entities/1/title", "the patch that it received"
        )
