"""Thousands of streams at once."""

import copy
import statistics
import time

import pytest

from harness.actions import action, add, bulk
from harness.crowd import Crowd, many_descriptors
from harness.expectations import expect, expect_equal, wait_until
from harness.messages import encode_request
from harness.records import StreamRecord, ValueRecord
from harness.streams import read_events


@pytest.mark.prompt
def test_each_of_10000_streams_has_every_commit_once_in_order_with_its_id(workspace, figures):
    """The streams begin while there are commits."""
    with many_descriptors(10_000):
        figures(follow_as_crowd(workspace.server(data="none", connections_max=12_000), 10_000))


def test_each_of_500_streams_of_two_loops_has_every_commit_once_in_order_with_its_id(workspace, figures):
    figures(follow_as_crowd(workspace.server(data="none", loops=2), 500))


def follow_as_crowd(server, count):
    """Opens so many streams, commits one by one and in bursts, and judges what each stream has sent."""
    crowd = Crowd(server, "/v1/changes?since=now")
    try:
        with server.client() as client:
            start = client.get("/v1/state")
            states = {start.cursor: start.json}
            before = server.memory_bytes()
            for joined in range(0, count // 10 * 10, count // 10):
                crowd.join(count // 10)
                # Some of them have begun, so that streams begin at each commit; the others begin while it is made.
                wait_until(lambda joined=joined: server.metric(client, "streams") > joined, "streams have begun", 10)
                client.commit(add(1))
                state = client.get("/v1/state")
                states[state.cursor] = state.json
            epoch = start.cursor.rpartition(".")[0]

            def reach(version):
                return crowd.read_until(f"id: {epoch}.{version}\n".encode(), 20)

            # The last streams begin when their loop has taken them in: another loop may be later.
            crowd.read_until(b"retry: ", 20)
            client.commit(add(1))
            reach(11)
            each = (server.memory_bytes() - before) / count
            expect(count < 10_000 or each < 8192, f"a stream takes {each:.0f} bytes of the server's memory")
            times = []
            for version in range(12, 17):
                begun = time.monotonic()
                client.commit(add(1))
                reach(version)
                times.append(time.monotonic() - begun)
            for _ in range(3):
                client.send(encode_request("POST", "/v1/actions", add(1)) * 10)
                expect_equal({client.receive().status for _ in range(10)}, {200}, "the answers to a burst")
            bulk(client, [add(1)] * 10)
            reach(56)
            final = client.get("/v1/state")
        stories = crowd.stories()
        for begin, text in stories:
            record = StreamRecord(copy.deepcopy(states[begin]), begin).take_all(read_events(text))
            expect_equal(
                (record.version, record.state),
                (56, final.json),
                f"the version and the state that the events from {begin} lead to",
            )
        expect_equal(sum(stories.values()), count, "streams that were judged")
        expect(len({begin for begin, _ in stories}) >= 10, "all streams have begun at the same commit")
    finally:
        crowd.close()
    return (
        f"{count:,} streams have a commit within {1000 * statistics.median(times):.0f} ms (median),"
        f" {1000 * max(times):.0f} ms at most; {each:.0f} bytes of memory a stream"
    )


def test_each_of_1000_streams_of_a_value_begins_with_a_snapshot_never_goes_back_and_ends_on_the_last_value(
    workspace, figures
):
    count = 1000
    with many_descriptors(count):
        server = workspace.server(data="none")
        crowd = Crowd(server, "/v1/state/counter")
        try:
            with server.client() as client:
                total = 0
                for _ in range(10):
                    crowd.join(count // 10)
                    client.commit(add(1))
                    client.commit(action("tasks/add", {"id": total, "title": "elsewhere"}))
                    total += 2
                for number in range(10):
                    bulk(client, [add(1)] * 100)
                    for _ in range(20):
                        client.commit(add(1))
                    total += 120
                last = client.commit(add(1))["cursor"]
                crowd.read_until(f"id: {last}\n".encode(), 20)
                stories = crowd.stories()
        finally:
            crowd.close()

    def truth(version):
        return {"value": (version + 1) // 2 if version <= 20 else version - 10}

    events = 0
    for (_, text), number in stories.items():
        record = ValueRecord(truth).take_all(read_events(text))
        expect_equal((record.version, record.value), (total + 1, {"value": total - 9}), "the end of a stream")
        events += record.count * number
    expect_equal(sum(stories.values()), count, "streams that were judged")
    figures(f"1,211 values, {events / count:.0f} events a stream on average")
