"""Streams of values, views and derived stores."""

from harness.actions import action, add, batch
from harness.expectations import expect, expect_equal
from harness.records import StreamRecord
from harness.streams import EVENTS, LINES, Event, open_stream


def test_a_stream_of_a_value_a_view_or_a_derived_store_holds_nothing_else(workspace):
    """A value that is removed and comes back, too."""
    server = workspace.server(data="none", heartbeat_seconds=1)
    with server.client() as client:
        secret = 987_654_321
        for target in ("/v1/views/nothing", "/v1/stores/tasks/views/count"):
            missing = client.get(target, Accept=EVENTS)
            expect_equal((missing.status, missing.fields["content-type"]), (404, "application/problem+json"), target)
        for target in ("/v1/state/tasks/entities/1", "/v1/stores/tasks/state/counter"):
            with open_stream(server, target) as stream:
                expect_equal(stream.next(), Event("removed", client.get("/v1").cursor, "null"), target)
        one = {"id": 1, "title": "milk"}
        client.commit(action("tasks/add", one))
        begin = client.get("/v1/stores/tasks/state")
        value, view, store_value, store_view, changes, lines, whole = [
            open_stream(server, target, form=form)
            for target, form in (
                ("/v1/state/tasks/entities/1", EVENTS),
                ("/v1/views/tasks.open", EVENTS),
                ("/v1/stores/tasks/state", EVENTS),
                ("/v1/stores/tasks/views/open", EVENTS),
                ("/v1/stores/tasks/changes?since=now", EVENTS),
                ("/v1/stores/tasks/changes?since=now", LINES),
                ("/v1/changes?since=now", EVENTS),
            )
        ]
        for stream, target in (
            (value, "/v1/state/tasks/entities/1"),
            (view, "/v1/views/tasks.open"),
            (store_value, "/v1/stores/tasks/state"),
            (store_view, "/v1/stores/tasks/views/open"),
        ):
            event = stream.next()
            answer = client.get(target)
            expect_equal(event, Event("snapshot", answer.cursor, answer.body.decode().rstrip()), f"the first event of {target}")
        client.commit(add(secret))
        events = []
        for body in (
            batch(add(1), action("tasks/complete", {"id": 1})),
            action("tasks/remove", {"id": 1}),
            action("tasks/add", one),
        ):
            # A stream of a value may skip what has changed again before it is sent: each value is awaited.
            last = client.commit(body)["cursor"]
            events += value.until(lambda event, last=last: event.id == last)
        end = client.get("/v1/stores/tasks/state")
        names = [event.name for event in events if event.name != "progress"]
        expect_equal(names, ["change", "removed", "change"], "the events of a value that goes and comes")
        expect_equal([event.data for event in events if event.name == "removed"], ["null"], "the data of removed")
        expect_equal(events[-1].json, end.json["entities"]["1"], "the value that came back")
        seen = []
        for stream, target in (
            (view, "/v1/views/tasks.open"),
            (store_value, "/v1/stores/tasks/state"),
            (store_view, "/v1/stores/tasks/views/open"),
        ):
            events = stream.until(
                lambda event: event.name == "change" and event.data == client.get(target).body.decode().rstrip()
            )
            seen += events
        for stream in (changes, lines):
            record = StreamRecord(begin.json, begin.cursor, is_filtered=True)
            events = stream.until(lambda event: event.id == last)
            record.take_all(events)
            expect_equal(
                [what for _, what in record.seen],
                [
                    [{"type": "tasks/complete", "payload": {"id": 1}}],
                    {"type": "tasks/remove", "payload": {"id": 1}},
                    {"type": "tasks/add", "payload": one},
                ],
                "the actions on a derived store's stream",
            )
            seen += events
        text = repr(seen)
        for part in (str(secret), "counter", "canvas", "knowsTheCount"):
            expect(part not in text, f"a derived store's stream contains {part}")
        expect(
            str(secret) in repr(whole.until(lambda event: event.id == last)),
            "the whole store's stream leaves something out",
        )
        # The snapshot after a lost cursor is the store's own state.
        with open_stream(server, "/v1/stores/tasks/changes?since=now", "aaaaaaaaaaaaaaaa.1") as lost:
            expect_equal(
                [lost.next().name, lost.next().json], ["reset", end.json], "reset and snapshot of a derived store"
            )


def test_a_stream_that_comes_back_while_its_value_is_away_hears_of_the_next_value(workspace):
    """An EventSource takes any other answer than 200 for the end."""
    server = workspace.server(data="none", domain="document")
    job = "/v1/state/job"
    with server.client() as client:
        client.commit(action("document/set", {"path": "/job", "value": 1}))
        with open_stream(server, job) as stream:
            last = stream.next().id
        client.commit(action("document/remove", {"path": "/job"}))
        # Also a client that has never been there, and one that comes from another history.
        with open_stream(server, job, last) as stream, open_stream(server, job) as new:
            with open_stream(server, job, "aaaaaaaaaaaaaaaa.7") as lost:
                expect_equal(lost.next().name, "reset", "the first event of another history")
                for each in (stream, new, lost):
                    removed = each.next()
                    expect_equal((removed.name, removed.version, removed.data), ("removed", 2, "null"), "what is away")
                client.commit(action("document/set", {"path": "/other", "value": 0}))
                # null is a value; a large one is encoded elsewhere.
                for value in (None, "x" * 300_000, 3):
                    cursor = client.commit(action("document/set", {"path": "/job", "value": value}))["cursor"]
                    for each in (stream, new, lost):
                        event = each.until(lambda event: event.name == "change")[-1]
                        expect_equal((event.id, event.json), (cursor, value), "what has come")
