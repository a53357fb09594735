"""What client.js gives to those who subscribe: the value that the state has at its cursor, over one connection."""

import json
import random

from harness.actions import action, batch
from harness.expectations import expect, expect_equal, paced, remains, wait_until
from harness.javascript import ended, printed, start
from harness.messages import version_of
from harness.programs import free_port
from harness.tokens import bearer, make_token

PATHS = [
    "", "/tasks", "/tasks/ids", "/tasks/ids/1", "/tasks/favourites/0", "/tasks/entities", "/tasks/entities/3",
    "/tasks/entities/3/title", "/counter/value", "/session", "/session/user", "/nowhere", "view:tasks.open", "view:count",
]
SUBSCRIBE = """
let reads = 0
const plainFetch = fetch
globalThis.fetch = (url, ...rest) => { reads += !url.includes("/changes"); return plainFetch(url, ...rest) }
for (const path of given) store.subscribe(path, (value, cursor) => print("value", path, cursor, value, reads))
"""


def change(chance, known):
    """An action at random on the tasks, the counter or the session; an array now and then."""
    kind = chance.random()
    if kind < 0.1:
        return batch(*(change_one(chance, known) for _ in range(3)))
    return change_one(chance, known)


def change_one(chance, known):
    kind = chance.random()
    if len(known) < 3 or kind < 0.3 and len(known) < 30:
        number = chance.choice([number for number in range(40) if number not in known])
        known.append(number)
        return action("tasks/add", {"id": number, "title": f"title {number}"})
    if kind < 0.4:
        return action("tasks/remove", {"id": known.pop(chance.randrange(len(known)))})
    if kind < 0.6:
        return action("tasks/move", {"id": chance.choice(known), "position": chance.randrange(len(known))})
    if kind < 0.7:
        return action("tasks/favourite", {"id": chance.choice(known), "favourite": chance.random() < 0.5})
    if kind < 0.8:
        return action("tasks/rename", {"id": chance.choice(known), "title": f"{chance.random()}"})
    if kind < 0.9:
        return action("counter/add", {"amount": chance.randint(-2, 2)})
    return action(*chance.choice([("session/login", {"user": "u"}), ("session/logout", {}), ("session/succeed", {})]))


def value_of(client, path, version=None):
    """A value as a script prints it."""
    route = f"/v1/views/{path[5:]}" if path.startswith("view:") else f"/v1/state{path}"
    answer = client.get(route if version is None else f"{route}?version={version}")
    return "undefined" if answer.status == 404 else answer.json


def test_each_value_is_the_one_of_its_cursor_and_the_last_one_comes(workspace, figures):
    server = workspace.server(listen_also=f"127.0.0.1:{(port := free_port())}")
    script = start(workspace, port, SUBSCRIBE, given=PATHS)
    chance, known = random.Random(workspace.seed), []
    wait_until(lambda: len(printed(script, "value")) >= len(PATHS), "the first values")

    with server.client() as client:
        # The commits come alone as well as several at once.
        for number in paced(range(400), lambda _: chance.choice([0, 0, 0.005, 0.03])):
            client.post(change(chance, known))
            if number == 200:
                client = server.restart().client()
        wait_until(lambda: last_values(script) == {path: value_of(client, path) for path in PATHS}, "the last values", 20)
        lines = printed(script, "value")
        for path, cursor, value, _ in lines:
            expect_equal(value, value_of(client, path, version_of(cursor)), f"{path} at {cursor}")
        for path in PATHS:
            versions = [version_of(cursor) for each, cursor, *_ in lines if each == path]
            expect_equal(versions, sorted(set(versions)), f"the versions at which {path} came")

    figures(f"{len(lines)} values of {len(PATHS)} paths, {lines[-1][3]} of them read")


def last_values(script):
    return {path: value for path, _, value, _ in printed(script, "value")}


def test_a_value_without_doubt_is_read_once_and_then_made_of_the_patches(workspace):
    server = workspace.server()
    script = start(workspace, server.port, SUBSCRIBE, given=["/tasks", "/counter/value"])
    wait_until(lambda: printed(script, "connection"), "the client follows")

    with server.client() as client:
        for number in range(20):
            client.commit(action("tasks/add", {"id": number, "title": "a"}))
        client.commit(action("tasks/remove", {"id": 3}))
        wait_until(lambda: last_values(script)["/tasks"] == client.get("/v1/state/tasks").json, "the last value")

    expect_equal(printed(script, "value")[-1][3], 2, "the reads of two values")


def test_a_value_that_comes_back_beside_what_is_in_doubt_is_given_again(workspace):
    """The tag of the first value is no longer the one of what the client has."""
    server = workspace.server()
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 3, "title": "a"}))
        script = start(workspace, server.port, SUBSCRIBE, given=["/tasks/entities/3/title"])
        wait_until(lambda: printed(script, "connection"), "the client follows")
        for title, further in (("b", 1), ("a", 2)):
            rename = action("tasks/rename", {"id": 3, "title": title})
            client.commit(rename if title == "b" else batch(rename, action("tasks/add", {"id": further, "title": "x"})))
            wait_until(lambda: last_values(script)["/tasks/entities/3/title"] == title, f"the title is {title}")


def test_all_that_a_page_follows_takes_one_connection(workspace):
    server = workspace.server()
    script = start(workspace, server.port, SUBSCRIBE + """
for (let number = 0; number < 5; number++) {
    follow(number)
}
follow(5, { types: ["counter/add"] })
for await (const value of store.values("/counter/value")) print("iterated", value)
async function follow(number, options) {
    for await (const { version } of store.changes(options)) print("commit", number, version)
}
""", given=PATHS)
    with server.client() as client:
        wait_until(lambda: server.metric(client, "waiters") == 1, "one request waits")
        remains(lambda: server.metric(client, "waiters") == 1, "no other request waits", 0.5)
        client.commit(action("counter/add", {"amount": 3}))
        client.commit(action("tasks/add", {"id": 1, "title": "a"}))

    wait_until(lambda: len(printed(script, "commit")) == 11, "each loop has its commits")
    found = [[version for each, version in printed(script, "commit") if each == number] for number in range(6)]
    expect_equal(found, [[1, 2]] * 5 + [[1]], "the commits of each loop")
    expect_equal(printed(script, "iterated"), [[0], [3]], "the values of a loop")


def test_a_client_without_onConnection_waits_as_well(workspace):
    server = workspace.server()
    script = start(workspace, server.port, """
let requests = 0
const plainFetch = fetch
globalThis.fetch = (...request) => { requests += 1; return plainFetch(...request) }
const plain = connect(url)
plain.subscribe("/counter", () => {})
await pause(1000)
print("requests", requests)
plain.close()
""")
    ended(script)
    [(requests,)] = printed(script, "requests")
    # The value, where the commits are, and the wait; the value again where a commit may have come between these.
    expect(3 <= requests <= 4, f"a client that waits has sent {requests} requests")


def test_a_subscription_that_has_ended_costs_nothing(workspace):
    server = workspace.server()
    script = start(workspace, server.port, """
const ends = ["/counter", "/counter", "/tasks"].map((path) => store.subscribe(path, (value) => print("value", path, value)))
for await (const commit of store.changes({ since: "oldest" })) break
for (const end of ends) { end(); end() }
print("latest", store.latest("/counter"))
""")
    with server.client() as client:
        wait_until(lambda: printed(script, "value"), "the first value")
        client.commit(action("counter/add", {"amount": 1}))
        # Nothing keeps Node from its end.
        ended(script)
        wait_until(lambda: server.metric(client, "waiters") == 0, "nothing waits")
    expect_equal(printed(script, "latest"), [["undefined"]], "what is known of a path without a subscription")


def test_the_same_object_is_given_while_nothing_in_it_changes(workspace):
    server = workspace.server()
    script = start(workspace, server.port, """
await store.dispatch("tasks/add", { id: 1, title: "a" })
await store.dispatch("tasks/add", { id: 2, title: "b" })
const values = store.values("/tasks")
const { value: before } = await values.next()
await store.dispatch("tasks/rename", { id: 2, title: "c" })
const { value: after } = await values.next()
print("shared", before.entities[1] === after.entities[1], before.ids === after.ids)
print("changed", before !== after, before.entities[2], after.entities[2], store.latest("/tasks") === after)
store.close()
""")
    lines = dict((name, rest) for name, *rest in ended(script))
    expect_equal(lines["shared"], [True, True], "whether what is equal is the same object")
    expect_equal(
        lines["changed"], [True, {"title": "b", "done": False}, {"title": "c", "done": False}, True], "what has changed")


def test_functions_that_throw_do_not_keep_values_from_others(workspace):
    server = workspace.server()
    script = start(workspace, server.port, """
process.on("uncaughtException", (error) => print("uncaught", error.message))
store.subscribe("/counter/value", () => { throw new Error("of the page") })
store.subscribe("/counter/value", (value) => print("value", value))
const plain = connect(url, { onConnection: () => { throw new Error("of the page") } })
plain.subscribe("/counter/value", (value) => print("plain", value))
plain.subscribe("/a~2", print, () => { throw new Error("of the page") })
""")
    with server.client() as client:
        for name in ("value", "plain"):
            wait_until(lambda: printed(script, name) == [[0]], "the first value")
        client.commit(action("counter/add", {"amount": 1}))
    for name in ("value", "plain"):
        wait_until(lambda: printed(script, name) == [[0], [1]], "the second value")
    expect_equal(printed(script, "uncaught"), [["of the page"]] * 4, "what the functions have thrown")


def test_a_client_reads_answers_with_the_function_that_it_is_given(workspace):
    server = workspace.server(domain="document")
    script = start(workspace, server.port, """
const texts = connect(url, { parse: (text) => JSON.parse(text.replace(/\\b\\d{17,}\\b/g, '"$&"')) })
texts.subscribe("/large", (value) => print("value", value))
""")
    for number in (12345678901234567890, 12345678901234567891):
        with server.client() as client:
            client.commit(action("document/set", {"path": "/large", "value": number}))
        wait_until(lambda: printed(script, "value")[-1:] == [[str(number)]], "all digits of the value")


def test_a_client_whose_numbers_are_BigInts_has_each_value_that_is_read_again(workspace):
    server = workspace.server(domain="document")
    with server.client() as client:
        client.commit(action("document/set", {"path": "/list", "value": [0]}))
        script = start(workspace, server.port, """
const parse = (text) => JSON.parse(text, (_, value) => typeof value === "number" ? BigInt(value) : value)
const large = connect(url, { parse, onConnection: (isThere) => print("large", isThere) })
large.subscribe("/list/0", (value) => print("value", `${value}`))
large.query("/list").subscribe(({ members }) => print("query", `${members[0].value}`))
""")
        for number in range(3):
            for name in ("value", "query"):
                wait_until(lambda: printed(script, name)[-1:] == [[str(number)]], f"the {name} {number}")
            client.commit(action("document/add", {"path": "/list/0", "value": number + 1}))
    for name in ("value", "query"):
        wait_until(lambda: printed(script, name) == [[str(number)] for number in range(4)], f"each {name}")
    expect_equal(printed(script, "large"), [[True]], "what is told of the connection")


def test_a_BigInt_is_sent_as_a_number_with_all_its_digits(workspace):
    server = workspace.server(domain="document")
    lines = ended(start(workspace, server.port, """
const parse = (text) => JSON.parse(text, (_, value, context) => typeof value === "number" && context?.source ? BigInt(context.source) : value)
const large = connect(url, { parse })
const set = (path, value, options) => large.dispatch("document/set", { path, value }, options)
await set("/n", 9007199254740993n)
await set("/deep", { list: [-123456789012345678901234567890n, { zero: 0n, text: "12n", quoted: '"1"' }], 7: 1.5 })
await large.dispatchAll([{ type: "document/set", payload: { path: "/both", value: 18446744073709551617n } }])
await set("/expected", true, { expect: [{ path: "/n", value: 9007199254740993n }] })
print("wrong", await set("/expected", false, { expect: [{ path: "/n", value: 9007199254740992n }] }).catch(({ code }) => code))
print("done")
"""))
    expect_equal([rest for name, *rest in lines if name == "wrong"], [["precondition-failed"]], "another number")
    with server.client() as client:
        found = client.get("/v1/state").body.decode()
    expect_equal(json.loads(found), {
        "n": 9007199254740993, "deep": {"list": [-123456789012345678901234567890, {"zero": 0, "text": "12n", "quoted": '"1"'}], "7": 1.5},
        "both": 18446744073709551617, "expected": True}, "the document")


def test_what_a_token_may_not_see_is_undefined(workspace):
    data = workspace.path("data")
    make_token(workspace, data, "all", "--all")
    token = make_token(workspace, data, "page", "--read", "/tasks", "--read", "actions:tasks/*", "--dispatch", "*")
    server = workspace.server(data=data)
    script = start(workspace, server.port, """
for (const path of ["", "/counter", "/tasks/ids", "view:count"]) {
    print("state", path, await store.state(path))
    store.subscribe(path, (value) => print("value", path, value))
}
(async () => { for await (const { action, patch } of store.changes({ since: "oldest" })) print("commit", action, patch.length) })()
await store.values("view:count").next()
await store.dispatch("counter/add", { amount: 1 })
await store.dispatch("tasks/add", { id: 1, title: "a" })
for await (const ids of store.values("/tasks/ids")) if (ids.length === 1) break
await pause(500)
store.close()
""", token)
    lines = ended(script)
    states = [line[1:] for line in lines if line[0] == "state"]
    expect_equal(states, [["", "undefined"], ["/counter", "undefined"], ["/tasks/ids", []], ["view:count", "undefined"]], "the state")
    values = [line[1:] for line in lines if line[0] == "value"]
    expect_equal(sorted(values), sorted([*states, ["/tasks/ids", [1]]]), "the values")
    commits = [line[1:] for line in lines if line[0] == "commit"]
    expect_equal(commits, [[None, 0], [{"type": "tasks/add", "payload": {"id": 1, "title": "a"}}, 2]], "the commits")


def test_a_token_that_sees_a_view_alone_has_its_values(workspace):
    data = workspace.path("data")
    token = make_token(workspace, data, "all", "--all")
    seeing = make_token(workspace, data, "page", "--read", "view:tasks.open")
    server = workspace.server(data=data)
    script = start(workspace, server.port, """
for await (const value of store.values("view:tasks.open")) print("value", value)
""", seeing)
    wait_until(lambda: printed(script, "connection"), "the client follows")
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 3, "title": "a"}), **bearer(token))
    wait_until(lambda: printed(script, "value") == [[[]], [[3]]], "the new value")


def test_hostile_strings_come_back_as_they_were_sent(workspace):
    hostile = ["</script><img src=x onerror=alert(1)>", "\u202eright to left\u202c", "\u2028\u2029\u0000\ufeff", "\U0001f600", "__proto__",
               "\\\"\n\r\t", "{{constructor}}", "${1}", "x" * 1_000_000]
    server = workspace.server()
    script = start(workspace, server.port, """
const titles = given
const ids = titles.map((_, index) => `</script>"\\u202e ${index}`)
for (const [index, title] of titles.entries()) await store.dispatch("tasks/add", { id: index, title }, { id: ids[index] })
for (const [index, title] of titles.entries()) {
    print("title", index, await store.state(`/tasks/entities/${index}/title`) === title)
}
let index = 0
for await (const { id, action } of store.changes({ since: "oldest" })) {
    print("commit", index, id === ids[index] && action.payload.title === titles[index])
    if (++index === titles.length) break
}
store.subscribe("/tasks/entities", (value) => {
    print("value", Object.keys(value).length, titles.every((title, index) => value[index].title === title))
    store.close()
})
""", given=hostile)
    lines = ended(script)
    for name in ("title", "commit"):
        found = [rest for each, *rest in lines if each == name]
        expect_equal(found, [[index, True] for index in range(len(hostile))], f"each {name}")
    expect_equal([rest for each, *rest in lines if each == "value"], [[len(hostile), True]], "the value")
    with server.client() as client:
        expect(json.loads(client.get("/v1/state/tasks/entities/1/title").body) == hostile[1], "a title of the server")


def test_a_snapshot_is_where_the_changes_go_on_and_an_array_is_one_commit(workspace):
    server = workspace.server()
    lines = ended(start(workspace, server.port, """
const { fetch } = globalThis, keys = []
globalThis.fetch = async (url, options) => {
    const answer = await fetch(url, options)
    if (options.method !== "POST") return answer
    keys.push(options.headers.get("Idempotency-Key"))
    if (keys.length === 1) throw new TypeError("the answer is lost")
    return answer
}
const nothing = await store.snapshot("/tasks/entities/1")
const task = (id, members) => ({ type: "tasks/add", payload: { id, title: "a" }, ...members })
const { version, changed } = await store.dispatchAll([task(1, { id: "mine" }), task(2)])
const { value, cursor } = await store.snapshot("/tasks/ids")
print("array", version, changed, value, keys.length, new Set(keys).size)
for (const actions of [[task(3), task(1)], [task(3), task(4, { expect: [{ path: "/tasks/ids", value: [] }] })], []]) {
    print("refused", await store.dispatchAll(actions).catch(({ code, errors }) => [code, errors.map(({ pointer }) => pointer)]))
}
const later = store.dispatchAll([task(5), task(6, { schedule: { after: 60, name: "six" } })]), last = store.dispatch("tasks/remove", { id: 5 })
print("later", (await later).scheduled.map(({ name }) => name), (await last).version)
async function next(since) { for await (const item of store.changes({ since, path: "/tasks" })) return item.version }
print("nothing", nothing.value, (await store.snapshot()).value.tasks.ids, await next(nothing.cursor), await next(cursor))
store.close()
"""))
    expect_equal(
        [line for line in lines if line[0] != "connection"],
        [["array", 1, True, [1, 2], 2, 1], ["refused", ["tasks.duplicate", ["/1/payload/id"]]],
         ["refused", ["precondition-failed", []]], ["refused", ["empty-batch", []]], ["later", ["six"], 3],
         ["nothing", "undefined", [1, 2], 1, 2]], "what the script has printed")
