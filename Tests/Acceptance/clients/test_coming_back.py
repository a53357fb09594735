"""A token that is new, a browser that is offline, and a server that is back: no client gives up, or comes late."""

import time

import pytest

from harness import javascript, python
from harness.actions import add
from harness.expectations import expect, expect_equal, wait_until
from harness.javascript import ended, printed
from harness.programs import free_port
from harness.tokens import bearer, make_token

CLIENTS = pytest.mark.parametrize("client", [javascript, python], ids=["client.js", "client.py"])
# Who answers as a server that does not know a token at first.
REFUSE_FIRST = {
    javascript: """
let sent = []
const end = Date.now() + given.milliseconds
globalThis.fetch = async (target, { headers }) => {
    sent.push(headers.get("Authorization"))
    return Date.now() < end ? new Response('{"code":"unauthorized","detail":"no"}', { status: 401 })
        : new Response(target.includes("/changes") ? '{"changes":[],"next":"e.0","more":false}' : '"seen"', { headers: { "State-Cursor": "e.0" } })
}
const times = { one: () => connect(url, { token: "a" }), function: () => connect(url, { token: () => "a" }), none: () => connect(url) }[given.kind]
const began = Date.now()
await times().state().then((value) => print("it", value), ({ code }) => print("it", code))
print("sent", sent.length, Date.now() - began)
""",
    python: """
import http.client, storekeeper
sent, end = [], time.monotonic() + given["milliseconds"] / 1000
def send(method, path, headers, body, seconds):
    sent.append(headers)
    status, text = (401, b'{"code":"unauthorized","detail":"no"}') if time.monotonic() < end else (200, b'"seen"')
    return storekeeper.Answer(status, http.client.HTTPMessage(), text)
storekeeper.Store._send = lambda _, *request: send(*request)
mine = {"one": lambda: connect(url, token="a"), "function": lambda: connect(url, token=lambda: "a"), "none": lambda: connect(url)}[given["kind"]]()
began = time.monotonic()
try: show("it", mine.state())
except Problem as problem: show("it", problem.code)
show("sent", len(sent), 1000 * (time.monotonic() - began))
""",
}


@CLIENTS
@pytest.mark.parametrize("kind, milliseconds, end, count", [
    ("one", 700, "seen", 2), ("function", 700, "seen", 2), ("one", 5000, "unauthorized", 2), ("function", 5000, "unauthorized", 2),
    ("none", 700, "unauthorized", 1)])
def test_a_token_that_counts_a_moment_later_is_asked_once_more(workspace, client, kind, milliseconds, end, count):
    lines = ended(client.start(workspace, 1, REFUSE_FIRST[client], given={"kind": kind, "milliseconds": milliseconds}))

    found = {name: rest for name, *rest in lines}
    expect_equal(found["it"], [end], "the end")
    expect_equal(found["sent"][0], count, "the requests")
    expect(found["sent"][1] < 2500, f"the end came after {found['sent'][1]:.0f} ms")


# A server that ends waits, and the tokens with them: after so many milliseconds each, and then it answers.
END_EACH = {
    javascript: """
let made = 0
const sent = [], left = [...given]
globalThis.fetch = async (target, { headers }) => {
    sent.push(headers.get("Authorization"))
    if (left.length === 0) return new Response('"seen"', { headers: { "State-Cursor": "e.0" } })
    await pause(left.shift())
    return new Response('{"code":"unauthorized","detail":"no"}', { status: 401 })
}
await connect(url, { token: () => `${++made}` }).state().then((value) => print("it", value), ({ code }) => print("it", code))
print("sent", sent.length, new Set(sent).size)
""",
    python: """
import http.client, itertools, storekeeper
sent, left, made = [], list(given), itertools.count()
def send(method, path, headers, body, seconds):
    sent.append(headers["Authorization"])
    if left: time.sleep(left.pop(0) / 1000)
    else: return storekeeper.Answer(200, http.client.HTTPMessage(), b'"seen"')
    return storekeeper.Answer(401, http.client.HTTPMessage(), b'{"code":"unauthorized","detail":"no"}')
storekeeper.Store._send = lambda _, *request: send(*request)
try: show("it", connect(url, token=lambda: str(next(made))).state())
except Problem as problem: show("it", problem.code)
show("sent", len(sent), len(set(sent)))
""",
}


@CLIENTS
@pytest.mark.parametrize("milliseconds, end, count", [
    ([1100, 1100, 1100], "seen", 4), ([1100, 0], "unauthorized", 2), ([0, 1100, 0], "unauthorized", 3), ([0, 0], "unauthorized", 2)])
def test_one_token_after_the_other_can_end_during_the_waits_of_a_loop(workspace, client, milliseconds, end, count):
    lines = ended(client.start(workspace, 1, END_EACH[client], given=milliseconds))

    found = {name: rest for name, *rest in lines}
    expect_equal((found["it"], found["sent"]), ([end], [count, count]), "the end, and the requests with their tokens")


NEW = {
    javascript: """
const mine = connect(url, { token: given })
const end = mine.subscribe("/counter/value", (value) => print("value", value), ({ code }) => print("failed", code))
for await (const { version } of mine.changes()) print("commit", version)
""",
    python: """
mine = connect(url, token=given)
aside(lambda: [show("value", value) for value in mine.subscribe("/counter/value")])
for commit in mine.changes(): show("commit", commit["version"])
""",
}


@CLIENTS
def test_subscriptions_with_a_token_that_was_made_a_moment_ago_stay(workspace, client):
    data = workspace.path("data")
    operator = make_token(workspace, data, "all", "--all")
    server = workspace.server(data=data)
    with server.client() as asking:
        expect_equal(asking.get("/v1/state/counter/value", **bearer(operator)).status, 200, "the status of a known token")
        scripts = [client.start(workspace, server.port, NEW[client], given=make_token(workspace, data, f"page{number}", "--all"))
                   for number in range(3)]
        for script in scripts:
            wait_until(lambda: printed(script, "value") == [[0]], "the value has come")
        time.sleep(1.5)
        asking.commit(add(1), **bearer(operator))
    for script in scripts:
        wait_until(lambda: printed(script, "value") == [[0], [1]] and printed(script, "commit") == [[1]], "the commit has come")
        expect_equal(printed(script, "failed"), [], "what has ended")


def test_a_list_comes_at_once_when_a_dispatch_shows_that_the_server_is_back(workspace):
    server = workspace.server(listen_also=f"127.0.0.1:{(port := free_port())}")
    script = javascript.start(workspace, port, """
Math.random = () => 0.999
store.subscribe("/counter/value", (value) => print("value", value))
await pause(500)
print("ready")
await new Promise((resume) => process.once("SIGUSR1", resume))
await store.dispatch("counter/add", { amount: 1 })
print("dispatched")
""")
    wait_until(lambda: printed(script, "ready"), "the client is there")
    server.kill()
    wait_until(lambda: printed(script, "connection")[-1:] == [[False]], "the client knows")
    # Now it rests: with this random number for 1 to 2 seconds from here on, and then for longer.
    time.sleep(4)
    server.start()
    script.process.send_signal(10)

    wait_until(lambda: printed(script, "dispatched"), "the dispatch is answered")
    begin = time.monotonic()
    wait_until(lambda: printed(script, "value")[-1:] == [[1]], "the value has come")
    expect(time.monotonic() - begin < 0.7, f"the value came {time.monotonic() - begin:.1f} s late")


def test_a_client_is_not_away_for_much_longer_than_its_server(workspace):
    lines = ended(javascript.start(workspace, 1, """
const began = performance.now(), { setTimeout } = globalThis
let away = 0, worst = 0
Math.random = () => 0.999
globalThis.setTimeout = (work, milliseconds) => {
    if (milliseconds < 60000 && milliseconds > 10) {
        worst = Math.max(worst, milliseconds / 1000 - (0.5 + away / 2))
        if (milliseconds < 9000) away += milliseconds / 1000
    }
    return setTimeout(work, milliseconds < 60000 ? 0 : milliseconds)
}
let count = 0
globalThis.fetch = async () => { if (++count === 12) store.close(); throw new TypeError("no network") }
await store.state("", { seconds: Infinity }).catch(() => {})
print("worst", worst, count)
"""))
    [[worst, count]] = [rest for name, *rest in lines if name == "worst"]
    expect(worst < 0.01, f"a pause is {worst} s longer than half a second and half of the time before")
    expect_equal(count, 12, "the attempts")


def test_a_loop_that_begins_without_a_server_tells_so_and_when_it_is_there(workspace):
    server = workspace.server(listen_also=f"127.0.0.1:{(port := free_port())}")
    server.kill()
    script = javascript.start(workspace, port, """
for await (const { version } of store.changes({ since: "oldest" })) print("commit", version)
""")
    wait_until(lambda: printed(script, "connection") == [[False]], "the client says that the server is away")
    server.start()
    with server.client() as client:
        client.commit(add(1))
    wait_until(lambda: printed(script, "commit") == [[1]], "the commit has come")
    wait_until(lambda: printed(script, "connection") == [[False], [True]], "the client says that the server is there")
