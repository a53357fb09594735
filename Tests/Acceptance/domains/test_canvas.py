"""The canvas: 100,000 objects in 1,000 blocks, and 10,000 clients that wait for different objects."""

import json
import select
import time

from harness.actions import action, bulk
from harness.crowd import many_descriptors
from harness.expectations import expect, expect_equal, wait_until
from harness.messages import encode_request

FRAME = {"x": 0, "y": 0, "width": 1, "height": 1}


def test_moving_one_of_100000_objects_wakes_one_of_10000_watchers(workspace, figures):
    watchers_count = 10_000
    with many_descriptors(watchers_count):
        watch_canvas(workspace, figures, watchers_count)


def watch_canvas(workspace, figures, watchers_count):
    server = workspace.server(data="none", domain="canvas", connections_max=watchers_count + 2000)
    watchers = []
    try:
        with server.client() as client:
            bulk(client, [action("canvas/addBlock", {"id": block, "frame": FRAME}) for block in range(1000)])
            for start in range(0, 100_000, 20_000):
                bulk(
                    client,
                    [
                        action("canvas/addObject", {"id": number, "block": number % 1000, "frame": FRAME})
                        for number in range(start, start + 20_000)
                    ],
                )
            tag = client.get("/v1/state/objects/0").fields["etag"]
            cursor = client.get("/v1").json["cursor"]

            def move(number, x):
                body = action("canvas/moveObject", {"id": number, "x": x, "y": 0})
                begun = time.monotonic()
                client.commit(body)
                return time.monotonic() - begun

            # The objects of block 0 are equal: they have one tag.
            alone = sorted(move(99_999, 1 + turn) for turn in range(200))[100]
            for index in range(watchers_count):
                watcher = server.client()
                number = index * 9
                known = tag if number % 1000 == 0 else client.get(f"/v1/state/objects/{number}").fields["etag"]
                watcher.send(
                    encode_request("GET", f"/v1/state/objects/{number}?wait=55", fields={"If-None-Match": known})
                )
                watchers.append(watcher)
            wait_until(lambda: server.metric(client, "waiters") >= watchers_count, "all watchers to wait", seconds=10)

            beside = sorted(move(99_999, 1000 + turn) for turn in range(200))[100]
            expect_equal(
                server.metric(client, "waiters"), watchers_count, "waiters after moves that concern no watcher"
            )
            chosen = watchers[4321]
            move(4321 * 9, 7.5)
            expect_equal(chosen.receive().json["frame"]["x"], 7.5, "the answer to the watcher of the moved object")
            expect_equal(server.metric(client, "waiters"), watchers_count - 1, "waiters after one was woken")
            poll = select.poll()
            for watcher in watchers:
                poll.register(watcher.socket, select.POLLIN)
            expect_equal(poll.poll(300), [], "watchers of other objects that were woken")

            difference = client.get(f"/v1/state?as=keyed&since={cursor}").json
            expect_equal(
                difference["collections"], {"/objects": {"changed": [99_999, 38_889]}}, "the difference by IDs"
            )
            expect(len(json.dumps(difference)) < 200, "the difference is short")
            figures(f"a move takes {alone * 1e6:.0f} us without waiters, {beside * 1e6:.0f} us beside 10,000 watchers")
    finally:
        for watcher in watchers:
            watcher.close()
