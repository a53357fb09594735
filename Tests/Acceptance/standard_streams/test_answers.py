"""Answers on standard streams that a cache, a grant or a damaged journal decides."""

import pytest

from harness.actions import action, add
from harness.expectations import Failure, expect, expect_equal
from harness.journal import damage_segment
from harness.streams import StreamClient
from harness.tokens import bearer, make_token

STREAMS = ("commits", "state")


@pytest.mark.parametrize("name", STREAMS)
def test_a_304_has_the_tag_and_the_vary_of_the_200(workspace, name):
    with workspace.server().client() as client:
        epoch = client.get("/v1").json["epoch"]
        for number in range(100):
            client.commit(action("tasks/add", {"id": number, "title": f"title {number}"}))
        path = f"/v1/streams/{name}?offset={epoch}_{0:016x}{'_z' if name == 'state' else ''}"
        for coding in ("gzip", "zstd", "identity"):
            answer = client.get(path, Accept_Encoding=coding)
            is_coded = coding != "identity"
            expect_equal((answer.status, answer.fields.get("content-encoding")), (200, coding if is_coded else None), "200")
            again = client.get(path, Accept_Encoding=coding, If_None_Match=answer.fields["etag"])
            expect_equal((again.status, again.body), (304, b""), "the status and the body of what the client has")
            for field in ("etag", "vary", "cache-control", "stream-next-offset", "stream-up-to-date"):
                expect_equal(again.fields.get(field), answer.fields.get(field), f"{field} of a 304 to {coding}")
        # What the client has is of another coding than the one that it would get now.
        coded = client.get(path, Accept_Encoding="gzip").fields["etag"]
        for now in ("zstd", "identity"):
            again = client.get(path, Accept_Encoding=now, If_None_Match=coded)
            found = (again.status, again.fields["etag"], again.fields.get("vary"))
            expect_equal(found, (304, coded, "Accept-Encoding"), f"304 to {now} of what was gzip")
        # What the client has was not compressed, so the answer that it stands for was not either.
        again = client.get(path, Accept_Encoding="gzip", If_None_Match=answer.fields["etag"])
        expect_equal((again.status, again.fields["etag"], again.fields.get("vary")), (304, answer.fields["etag"], None), "304")


@pytest.mark.parametrize("name", STREAMS)
def test_a_tag_names_what_the_client_may_see(workspace, name):
    data = workspace.path("data")
    grants = {
        "counter": ("--read", "/counter", "--read", "actions:counter/*"),
        "tasks": ("--read", "/tasks", "--read", "actions:tasks/*"),
        "everything": ("--read", "*", "--others", "--dispatch", "*"),
    }
    # One subject whose grant changes.
    tokens = {grant: make_token(workspace, data, "someone", *options) for grant, options in grants.items()}
    with workspace.server(data).client() as client:
        for body in (add(1), action("tasks/add", {"id": 1, "title": "hidden"})):
            client.commit(body, **bearer(tokens["everything"]))
        epoch = client.get("/v1", **bearer(tokens["everything"])).json["epoch"]
        path = f"/v1/streams/{name}?offset={epoch}_{0:016x}{'_z' if name == 'state' else ''}"
        answers = {grant: client.get(path, **bearer(token)) for grant, token in tokens.items()}
        for before, answer in answers.items():
            expect_equal(answer.status, 200, f"the status with {before}")
            for after, token in tokens.items():
                found = client.get(path, If_None_Match=answer.fields["etag"], **bearer(token))
                expect_equal(found.status, 304 if before == after else 200, f"the status with {after} after {before}")
                expect(before == after or found.body == answers[after].body, f"the body with {after} after {before}")


@pytest.mark.parametrize("name", STREAMS)
def test_events_that_a_damaged_journal_cannot_tell_are_refused_by_the_status(workspace, name):
    server, epoch = restarted_behind_30_commits(workspace)
    damage_segment(server, 20)
    with server.client() as client:
        for version, status in ((19, 500), (30, 200)):
            path = f"/v1/streams/{name}?offset={epoch}_{version:016x}{'_z' if name == 'state' else ''}"
            expect_equal(client.get(path).status, status, f"the status of catch-up from {version}")
            if status == 500:
                with StreamClient(server.port, path + "&live=sse") as stream:
                    with pytest.raises(Failure, match="a stream was answered"):
                        stream.begin()
                answer = client.get(path + "&live=sse")
                expect_equal((answer.status, answer.json["code"]), (500, "journal-damaged"), f"events from {version}")
    for version in (0, 30) if name == "commits" else (30,):
        path = f"/v1/streams/{name}?offset={epoch}_{version:016x}{'_z' if name == 'state' else ''}&live=sse"
        with StreamClient(server.port, path) as stream:
            stream.begin()
            expect_equal(stream.answer.status, 200, f"the status of events from {version}")
            if version == 0:
                expect_equal([commit["version"] for commit in stream.next(5).json], list(range(1, 20)), "the commits")


@pytest.mark.parametrize("name", STREAMS)
def test_events_begin_behind_what_the_journal_has(workspace, name):
    server, epoch = restarted_behind_30_commits(workspace)
    path = f"/v1/streams/{name}?offset={epoch}_{5:016x}{'_z' if name == 'state' else ''}&live=sse"
    with StreamClient(server.port, path) as stream:
        stream.begin()
        messages = stream.next(5).json
    expect_equal(len(messages), 25, "how many commits the events tell")


@pytest.mark.parametrize("name", STREAMS)
def test_the_head_of_events_has_no_offset_to_which_a_client_would_go_back(workspace, name):
    """The Swift client takes one for the end of the events, and asks for all of them once more after a minute."""
    server = workspace.server()
    with server.client() as client:
        client.commit(add(1))
        epoch = client.get("/v1").json["epoch"]
    for offset in ("-1", "now", f"{epoch}_{0:016x}{'_z' if name == 'state' else ''}"):
        with StreamClient(server.port, f"/v1/streams/{name}?offset={offset}&live=sse") as stream:
            stream.begin()
        expect("stream-next-offset" not in stream.answer.fields, f"the head of events from {offset} has an offset")


def restarted_behind_30_commits(workspace):
    """A server that has the commits 1 to 30 in its journal and not in memory, and their epoch."""
    server = workspace.server()
    with server.client() as client:
        for number in range(1, 31):
            client.commit(add(number))
        epoch = client.get("/v1").json["epoch"]
    server.stop()
    server.start()
    return server, epoch
