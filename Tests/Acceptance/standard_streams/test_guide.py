"""The programs of the page about clients of Durable Streams, as they stand there, through what can happen to them.

harness/libraries.py tells what those in TypeScript, Swift and Go need to be run.
"""

import pathlib

import pytest

from harness.actions import action, add
from harness.cuts import Cuts
from harness.expectations import expect, expect_equal, wait_until
from harness.libraries import MAKERS
from harness.mirror import Mirror, entities_of
from harness.pages import blocks
from harness.programs import HERE, Program, free_port

PAGE = "Guides/StreamClients.md"

every_language = pytest.mark.parametrize("language", list(MAKERS))


def start(workspace, language, address, block=0, further=""):
    """Starts a program of the page, which asks the server at this address."""
    _, text = blocks(PAGE, language)[block]
    expect(HERE in text, f"the program asks no server at {HERE}")
    directory = pathlib.Path(workspace.path("program"))
    directory.mkdir()
    command = MAKERS[language](directory, text.replace(HERE, address) + further)
    return Program(workspace, command, str(directory))


@every_language
def test_the_subscriber_of_the_page_has_the_state_through_kills(workspace, language, figures):
    port = free_port()
    server = workspace.server(listen_also=f"127.0.0.1:{port}")
    program = start(workspace, language, f"localhost:{port}")
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "before"}))
    catches_up(server, program, language)
    for number in range(2, 8):
        if number % 3 == 0:
            server.restart()
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


@every_language
def test_the_subscriber_of_the_page_has_the_state_though_answers_are_cut_off(workspace, language):
    server = workspace.server()
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "before"}))
    cuts = Cuts(workspace, server.port, 2)
    program = start(workspace, language, cuts.address)
    catches_up(server, program, language)
    expect(cuts.left == 0, f"{cuts.left} answers were not cut off")
    cuts.left = 1
    with server.client() as client:
        client.commit(add(1))
        client.commit(action("tasks/add", {"id": 2, "title": "behind"}))
    catches_up(server, program, language)
    expect(cuts.left == 0, "the answer to a wait was not cut off")


@every_language
def test_the_subscriber_of_the_page_begins_again_with_another_history(workspace, language):
    port = free_port()
    server = workspace.server(listen_also=f"127.0.0.1:{port}")
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "of the first history"}))
    program = start(workspace, language, f"localhost:{port}")
    catches_up(server, program, language)
    server.stop()
    server = workspace.server(listen_also=f"127.0.0.1:{port}")
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 2, "title": "of the second history"}))
    catches_up(server, program, language)


# What is true of the collection, with the program of the page before it.
TASKS = """
const tasks = db.collections.tasks
const print = (name: string, value: unknown) => console.log(JSON.stringify([name, value ?? null]))
print("kept", tasks.get("7"))
const refused = db.actions.addTask({ id: 8, title: 8 as any })
print("shown", tasks.get("8"))
await refused.isPersisted.promise.catch((error) => print("refused", error.message))
print("taken back", tasks.get("8"))
tasks.subscribeChanges((changes) => {
    for (const { type, key, value } of changes) print(type, value)
    if (changes.some(({ key }) => key === "9")) db.actions.addTask({ id: 10, title: "in return" })
})
"""


def test_the_collection_of_the_page_has_a_task_before_the_server_has_it(workspace):
    port = free_port()
    server = workspace.server(listen_also=f"127.0.0.1:{port}")
    cuts = Cuts(workspace, port, 1)
    program = start(workspace, "ts", cuts.address, block=1, further=TASKS)

    def printed(count):
        expect(program.process.poll() is None, "the program ended:", program.errors())
        lines = program.printed()
        return len(lines) >= count and lines

    shown, *lines = wait_until(lambda: printed(5), "the program has gone on", 30)
    expect_equal((shown["title"], shown["$synced"]), ("milk", False), "the task at once")
    expect_equal([name for name, _ in lines], ["kept", "shown", "refused", "taken back"], "what the program has printed")
    values = dict(lines)
    expect_equal((values["kept"]["title"], values["kept"]["$synced"]), ("milk", True), "the task of the server")
    expect_equal((values["shown"]["title"], values["taken back"]), (8, None), "a task that the server refuses")
    expect("/payload/title" in values["refused"], "the reason is missing:", values["refused"])
    server.restart()
    cuts.left = 1
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 9, "title": "of another client"}))
        wait_until(lambda: "10" in client.get("/v1/state/tasks/entities").json, "the program has added a task", 30)
    lines = wait_until(lambda: printed(7), "the program has the task of another client", 30)[5:]
    expect_equal(lines[0][1]["title"], "of another client", "the task of another client")
    expect_equal(lines[1][1]["title"], "in return", "the task that the program added")
    expect_equal(cuts.left, 0, "how many answers were not cut off")


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
