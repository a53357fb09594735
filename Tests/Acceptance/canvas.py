"""A canvas of 100,000 objects that 10,000 clients look at, and a client that sees nothing but its own part."""

import json
import resource
import select
import time

from harness.actions import action, add, batch, bulk
from harness.expectations import expect, expect_equal, wait_until

FRAME = {"x": 0, "y": 0, "width": 1, "height": 1}


def watched_canvas(workspace):
    """With 100,000 objects in 1,000 blocks and 10,000 watchers of different objects, moving one wakes one."""
    watchers_count = 10_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, watchers_count + 2000), hard))
    server = workspace.server(data="none", domain="canvas", connections_max=watchers_count + 2000)
    watchers = []
    try:
        with server.client() as client:
            bulk(client, [action("canvas/addBlock", {"id": block, "frame": FRAME}) for block in range(1000)])
            for start in range(0, 100_000, 20_000):
                bulk(client, [
                    action("canvas/addObject", {"id": number, "block": number % 1000, "frame": FRAME})
                    for number in range(start, start + 20_000)])
            tag = client.get("/v1/state/objects/0").fields["etag"]
            position = client.get("/v1").json["cursor"]

            def move(number, x):
                body = action("canvas/moveObject", {"id": number, "x": x, "y": 0})
                begun = time.monotonic()
                client.commit(body)
                return time.monotonic() - begun

            # Object 0 and those like it look the same: one tag serves all that are on block 0.
            alone = sorted(move(99_999, 1 + turn) for turn in range(200))[100]
            for index in range(watchers_count):
                watcher = server.client()
                number = index * 9
                known = tag if number % 1000 == 0 else client.get(f"/v1/state/objects/{number}").fields["etag"]
                watcher.send(
                    f"GET /v1/state/objects/{number}?wait=55 HTTP/1.1\r\nHost: here\r\nIf-None-Match: {known}\r\n\r\n"
                    .encode())
                watchers.append(watcher)
            wait_until(
                lambda: server.metric(client, "waiters") >= watchers_count, "all watchers to wait", seconds=10)

            beside = sorted(move(99_999, 1000 + turn) for turn in range(200))[100]
            expect_equal(server.metric(client, "waiters"), watchers_count, "waiters after moves that concern nobody")
            chosen = watchers[4321]
            move(4321 * 9, 7.5)
            expect_equal(chosen.receive().json["frame"]["x"], 7.5, "what the watcher of the moved object was told")
            expect_equal(server.metric(client, "waiters"), watchers_count - 1, "waiters after one was woken")
            poll = select.poll()
            for watcher in watchers:
                poll.register(watcher.socket, select.POLLIN)
            expect_equal(poll.poll(300), [], "watchers of other objects that were woken")

            difference = client.get(f"/v1/state?as=keyed&since={position}").json
            expect_equal(
                difference["collections"], {"/objects": {"changed": [99_999, 38_889]}}, "the difference by IDs")
            expect(len(json.dumps(difference)) < 200, "the difference is short")
            return f"a move takes {alone * 1e6:.0f} us with nobody waiting, {beside * 1e6:.0f} us beside 10,000 watchers"
    finally:
        for watcher in watchers:
            watcher.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def own_world(workspace):
    """A client of a derived store sees and dispatches nothing outside, over all of the store's routes."""
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
                "", "/state", "/state?pretty", "/views", "/views/open", "/actions", "/openapi.json",
                f"/changes?since={begun}", f"/changes?since={begun}&as=keyed", "/changes?since=oldest",
                "/changes?since=aaaaaaaaaaaaaaaa.1&on-lost=snapshot", "/state/counter", "/state?as=keyed",
                "/views/counter"):
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
        expect_equal([change["action"] for change in changes["changes"]],
                     [[{"type": "tasks/complete", "payload": {"id": 1}}]], "the actions that are told")
        expect_equal(changes["changes"][0]["patch"],
                     [{"op": "replace", "path": "/entities/1/done", "value": True}], "the patch that is told")
        expect_equal(changes["next"], changes["head"], "the position moves past what others do")
        other.send(f"GET {root}/changes?since={changes['next']}&wait=20 HTTP/1.1\r\nHost: here\r\n\r\n".encode())
        wait_until(lambda: server.metric(client, "waiters") == 1, "the follower to wait")
        client.commit(add(5))
        time.sleep(0.1)
        expect_equal(server.metric(client, "waiters"), 1, "a follower of tasks after an action on the counter")
        client.commit(action("tasks/rename", {"id": 1, "title": "bread"}))
        expect_equal(other.receive().json["changes"][0]["patch"][0]["path"], "/entities/1/title", "what it was told")
