"""The judges of streams notice what they exist for."""

import copy

from harness.actions import add
from harness.expectations import Failure, expect, expect_equal, passes
from harness.records import StreamRecord, ValueRecord, counter_at
from harness.streams import Event, open_stream, read_events


def test_the_judges_notice_an_event_that_is_dropped_repeated_swapped_altered_or_misnamed(workspace):
    """They notice a value that goes back, too."""
    server = workspace.server(data="none")
    with server.client() as client:
        start = client.get("/v1/state")
        commits = open_stream(server, f"/v1/changes?since={start.cursor}")
        values = open_stream(server, "/v1/state/counter")
        expect_equal(values.next().name, "snapshot", "the first event")
        received = [Event("snapshot", start.cursor, '{"value":0}')]
        for number in range(1, 21):
            client.commit(add(1))
            received.append(values.next())
        events = commits.until(lambda event: event.version == 20)
        final = client.get("/v1/state").json
        lost = open_stream(server, "/v1/changes?since=now", last_id="aaaaaaaaaaaaaaaa.1")
        reset = [lost.next(), lost.next()]

    def commits_pass(alter, events=events):
        altered = list(events)
        alter(altered)
        record = StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(altered)
        return record.state == final and not record.is_reset

    def values_pass(alter):
        altered = list(received)
        alter(altered)
        return ValueRecord(counter_at).take_all(altered).value == counter_at(20)

    def swap(events):
        events[4], events[5] = events[5], events[4]

    def replace(index, **fields):
        return lambda events: events.__setitem__(index, events[index]._replace(**fields))

    doctored = [
        ("dropped", lambda events: events.pop(7)),
        ("the last dropped", lambda events: events.pop()),
        ("repeated", lambda events: events.insert(7, events[7])),
        ("swapped", swap),
        ("of another id", replace(7, id=events[8].id)),
        ("without an id", replace(7, id=None)),
        ("of another name", replace(7, name="changes")),
        ("progress out of place", replace(7, name="progress")),
        ("falsified", replace(19, data=events[19].data.replace('"value":20', '"value":21'))),
    ]
    expect(
        commits_pass(lambda _: None) and values_pass(lambda _: None), "the judges do not take the events as they came"
    )
    for name, alter in doctored:
        expect(not fails_to_notice(commits_pass, alter), f"a commit that was {name} went unnoticed")
    for name, alter in (
        ("a value that came twice", lambda events: events.insert(8, events[7])),
        ("values swapped", swap),
        ("the last value dropped", lambda events: events.pop()),
        ("a value of another time", replace(7, data='{"value":6}')),
        ("no snapshot", lambda events: events.pop(0)),
        ("a snapshot in the middle", replace(7, name="snapshot")),
    ):
        expect(not fails_to_notice(values_pass, alter), f"{name}: it went unnoticed")
    for name, alter in (
        ("a reset without its snapshot", lambda events: events.append(reset[0])),
        ("a snapshot without a reset", lambda events: events.append(reset[1])),
        ("an id on a reset", lambda events: events.extend([reset[0]._replace(id=start.cursor), reset[1]])),
    ):
        expect(not fails_to_notice(commits_pass, alter), f"{name}: it went unnoticed")
    expect(commits_pass(lambda events: events.extend(reset)), "a good reset is not taken")
    expect(not passes(lambda: read_events(b"event: change\nid: a.1\ndata: {}\n\nevent: chan")), "half an event passed")


def fails_to_notice(judge, alter):
    try:
        return judge(alter)
    except (Failure, AttributeError, KeyError, ValueError):
        return False
