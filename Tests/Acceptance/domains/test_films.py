"""Films that the server fetches from a films server, which may be slow, fail, hang or send malformed answers."""

from harness.actions import action
from harness.expectations import expect, expect_equal
from harness.films_server import SECRET, Stub
from harness.journal import journal_output

HOPE = {"title": "A New Hope", "director": "George Lucas", "episode": 4}


def test_a_load_of_films_ends_in_its_time_whatever_the_films_server_does(workspace):
    """The reason of a failed load quotes nothing of the answer."""
    stub = Stub(workspace)
    server = workspace.server(films_base_url=stub.address + "/", films_timeout_seconds=1, films_retries=2)
    cases = [
        ([stub.good], 1, None),
        ([stub.array], 1, None),
        ([stub.slow], 1, None),
        ([stub.fail, stub.cut_off, stub.good], 3, None),
        ([stub.hang, stub.good], 2, None),
        ([stub.fail], 3, "status 500"),
        ([stub.missing], 1, "status 404"),
        ([stub.elsewhere], 1, "status 302"),
        ([stub.rubbish], 1, "a list of films"),
        ([stub.other_shape], 1, "a list of films"),
        ([stub.unfit], 1, "do not fit"),
        ([stub.huge], 1, "more than 1048576 bytes"),
        ([stub.hang], 3, "within 1.0 seconds"),
        ([stub.endless], 3, "within 1.0 seconds"),
        ([stub.cut_off], 3, "connection"),
    ]
    with server.client() as client:
        for answers, count, reason in cases:
            name = answers[0].__name__
            stub.will(*answers)
            films = load_films(client)
            expect_equal(stub.count, count, f"requests ({name})")
            expect_equal(films["films"], [HOPE], f"films ({name})")
            if reason is None:
                expect_equal((films["phase"], films.get("reason")), ("finished", None), f"phase and reason ({name})")
            else:
                expect(
                    films["phase"] == "failed" and reason in films["reason"], f"{name} does not say {reason!r}:", films
                )
                expect("not to be repeated" not in films["reason"], "the answer is quoted:", films)
        expect_equal(stub.paths, {"/films"}, "paths asked for")
        stub.close()
        films = load_films(client)
        expect(films["phase"] == "failed" and "connection" in films["reason"], "no server listens:", films)
    expect(SECRET.decode() not in server.log_text(), "the answer is in the log:", server.log_text())
    server.stop()


def test_fetched_films_are_not_fetched_again_after_kill_9_by_a_replay_or_by_a_verification(workspace):
    stub = Stub(workspace)
    stub.will(stub.good, stub.hang)
    server = workspace.server(films_base_url=stub.address, films_timeout_seconds=60, films_retries=0)
    with server.client() as client:
        load_films(client)
        before = client.get("/v1/state/films").json
    server.restart()
    with server.client() as client:
        expect_equal(client.get("/v1/state/films").json, before, "films after kill -9")
        answer = client.post(action("films/load"), Prefer="wait=1")
        expect_equal((answer.status, answer.json.get("settled")), (202, False), f"status and settled of {answer}")
        expect_equal(client.get("/v1/state/films/phase").json, "loading", "phase while the films server hangs")
    server.restart()
    with server.client() as client:
        expect_equal(client.get("/v1/state/films/phase").json, "failed", "phase after kill -9 during a load")
        lines = journal_output(workspace, "export", server.data)
        state = client.get("/v1/state").body
    journal_output(workspace, "verify", server.data)
    data = workspace.path("again")
    journal_output(workspace, "replay", data, text=lines)
    again = workspace.server(data=data, films_base_url=stub.address)
    with again.client() as client:
        expect_equal(client.get("/v1/state").body, state, "the state after a replay")
    expect_equal(stub.count, 2, "requests for two loads")


def test_a_cancelled_load_ends_at_once_and_a_stop_does_not_wait_for_films(workspace):
    stub = Stub(workspace)
    stub.will(stub.hang)
    server = workspace.server(films_base_url=stub.address, films_timeout_seconds=60)
    with server.client() as client:
        client.commit(action("films/load"))
        client.commit(action("films/cancel"))
        expect_equal(client.get("/v1/state/films").json, {"phase": "idle", "films": []}, "films after a cancel")
        expect_equal(client.post(action("films/cancel")).status, 409, "status of another cancel")
        client.commit(action("films/load"))
    server.stop()


def load_films(client):
    """Loads to the end; returns the slice afterwards."""
    answer = client.post(action("films/load"), Prefer="wait=20")
    expect_equal((answer.status, answer.json.get("settled")), (200, True), f"status and settled of {answer}")
    expect_equal(len(answer.json["caused"]), 1, f"commits caused in {answer}")
    expect_equal(answer.json["caused"][0]["cause"], answer.json["id"], "the cause of what was caused")
    films = client.get("/v1/state/films").json
    wanted = {"finished": "films/set", "failed": "films/fail"}
    expect_equal(answer.json["caused"][0]["types"], [wanted.get(films["phase"])], f"what was caused for {films}")
    return films
