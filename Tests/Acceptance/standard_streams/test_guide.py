"""The subscribers of the page Clients, as they stand there, through kill -9.

harness/libraries.py tells what those in TypeScript, Swift and Go need to be run.
"""

import pathlib

import pytest
from harness.actions import action, add
from harness.expectations import expect, wait_until
from harness.libraries import MAKERS
from harness.mirror import Mirror, entities_of
from harness.pages import blocks
from harness.programs import HERE, Program, free_port

PAGE = "Clients.md"


@pytest.mark.parametrize("language", list(MAKERS))
def test_the_subscriber_of_the_page_has_the_state_through_kills(workspace, language, figures):
    [(_, text)] = blocks(PAGE, language)
    expect(HERE in text, f"the program asks no server at {HERE}")
    directory, port = pathlib.Path(workspace.path("program")), free_port()
    directory.mkdir()
    command = MAKERS[language](directory, text.replace(HERE, f"localhost:{port}"))
    server = workspace.server(listen_also=f"127.0.0.1:{port}")
    program = Program(workspace, command, str(directory))
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "before"}))
    catches_up(server, program, language)
    for number in range(2, 8):
        if number % 3 == 0:
            server.kill()
            server.start()
        with server.client() as client:
            client.commit(action("tasks/add", {"id": number, "title": f"task {number}"}, id=f"mine-{number}"))
            client.commit(action("tasks/rename", {"id": 1, "title": f"renamed {number}"}))
            client.commit(add(number))
            if number == 5:
                client.commit(action("tasks/remove", {"id": 2}))
    catches_up(server, program, language)
    transactions = {line["headers"].get("txid") for line in program.printed()}
    expect({f"mine-{number}" for number in range(2, 8)} <= transactions, "the IDs of actions are missing")
    figures(f"{len(program.printed())} messages")


def catches_up(server, program, language):
    """Awaits that what the program has printed makes the state of the server."""
    with server.client() as client:
        types = client.get("/v1/streams").json["streams"][1]["types"]
        wanted = entities_of(client.get("/v1/state").json, types)
    if language == "swift":  # its program reads types and keys only
        wanted = dict.fromkeys(wanted)

    def has_it():
        expect(program.process.poll() is None, "the program ended:", program.errors())
        mirror = Mirror()
        for message in program.printed():
            mirror.take({"value": None, **message} if language == "swift" and is_set(message) else message)
        return mirror.values == wanted

    wait_until(has_it, "the program has the state", 30)


def is_set(message):
    return message["headers"].get("operation") in ("insert", "update")
