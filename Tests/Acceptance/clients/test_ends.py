"""client.js where a server refuses, is gone, has another history, or the page wants no more."""

import socket
import subprocess

import pytest

from harness.actions import action, add, bulk
from harness.expectations import expect, expect_equal, paced, wait_until
from harness.javascript import ended, printed, start
from harness.programs import free_port
from harness.tokens import bearer, make_token, token_names

CATCH = """
const caught = async (name, work) => print(name, await work().then((value) => ({ value }), told))
"""
FOLLOW_ALL = CATCH + """
const first = async (loop) => { for await (const item of loop) print("item", item) }
const followed = caught("changes", () => first(store.changes({ since: "oldest" })))
const valued = caught("values", () => first(store.values("/counter/value")))
const subscribed = caught("subscribe", () => new Promise((_, fail) => store.subscribe("/counter", () => print("there"), fail)))
"""


def named(lines):
    return {name: rest[0] for name, *rest in lines if rest}


def test_a_refusal_is_a_problem_with_its_code(workspace):
    server = workspace.server()
    lines = named(ended(start(workspace, server.port, CATCH + """
const add = (id, options) => store.dispatch("tasks/add", { id, title: "a" }, options)
await caught("taken", () => add(1))
await caught("rejected", () => add(1))
await caught("wrong", () => add("1"))
await caught("unknown", () => store.dispatch("tasks/ad", {}))
await caught("unexpected", () => add(2, { expect: [{ path: "/tasks/ids", value: [7] }] }))
await caught("expected", () => add(2, { expect: [{ path: "/tasks/ids", value: [1] }], id: "mine", key: "of the page" }))
await caught("again", () => add(2, { expect: [{ path: "/tasks/ids", value: [1] }], id: "mine", key: "of the page" }))
await caught("reused", () => add(3, { key: "of the page" }))
await caught("bad key", () => add(3, { key: "\\n" }))
await caught("bad pointer", () => store.state("/tasks/~2"))
await caught("no path", () => store.state("tasks"))
await caught("no type", () => store.changes({ types: ["tasks/ad"] }).next())
await caught("no cursor", () => store.changes({ since: "yesterday" }).next())
await caught("bad subscription", () => new Promise((_, fail) => store.subscribe("/a~2", print, fail)))
await caught("the cause", () => add(1).catch(({ document, message, stack }) => [document.cursor.length, message, stack.length > 20]))
""")))
    expect_equal(
        {name: (line.get("status"), line.get("code")) for name, line in lines.items() if line and line.get("name") == "Problem"},
        {
            "rejected": (409, "tasks.duplicate"), "wrong": (422, "invalid-action"), "unknown": (422, "unknown-action"),
            "unexpected": (412, "precondition-failed"), "reused": (422, "idempotency-key-reused"),
            "bad pointer": (400, "bad-pointer"), "no type": (400, "unknown-action"), "no cursor": (400, "bad-cursor"),
            "bad subscription": (400, "bad-pointer"),
        },
        "the refusals",
    )
    expect_equal(lines["rejected"]["errors"][0]["pointer"], "/payload/id", "the place of a fault")
    expect_equal(lines["no path"]["name"], "TypeError", "what a path without a slash gives")
    expect_equal(lines["bad key"]["name"], "TypeError", "what a key with a line feed gives")
    receipts = [lines[name]["value"] for name in ("taken", "expected", "again")]
    expect_equal([receipt["version"] for receipt in receipts], [1, 2, 2], "the versions")
    expect_equal((receipts[1]["id"], receipts[2]), ("mine", receipts[1]), "the receipt of a repeated key")
    expect_equal(lines["the cause"]["value"], [18, "task 1 exists already", True], "the document of a problem")


def test_a_revoked_token_ends_everything_with_a_problem(workspace):
    data = workspace.path("data")
    make_token(workspace, data, "all", "--all")
    token = make_token(workspace, data, "page", "--read", "/counter", "--dispatch", "counter/*")
    server = workspace.server(data=data)
    script = start(workspace, server.port, FOLLOW_ALL + """
await Promise.all([followed, valued, subscribed])
await caught("dispatch", () => store.dispatch("counter/add", { amount: 1 }))
await caught("state", () => store.state("/counter"))
""", token)
    wait_until(lambda: printed(script, "there") and printed(script, "connection"), "the client is there")
    name = token_names(data)["page"]
    subprocess.run([workspace.binary, "token", "revoke", name, "--data", data], check=True, capture_output=True)

    lines = named(ended(script))

    for name in ("changes", "values", "subscribe", "dispatch", "state"):
        expect_equal((lines[name]["name"], lines[name]["status"], lines[name]["code"]), ("Problem", 401, "unauthorized"), name)


def test_a_token_can_come_from_a_function(workspace):
    data = workspace.path("data")
    token = make_token(workspace, data, "all", "--all")
    server = workspace.server(data=data)
    lines = named(ended(start(workspace, server.port, CATCH + """
let count = 0
const mine = connect(url, { token: async () => { count += 1; return token } })
await caught("good", () => mine.state("/counter/value"))
await caught("again", () => mine.state("/counter/value"))
print("count", count)
await caught("bad", () => connect(url, { token: () => "other" }).state("/counter/value"))
""", token)))
    expect_equal((lines["good"], lines["again"], lines["count"]), ({"value": 0}, {"value": 0}, 2), "what comes of a function")
    expect_equal(lines["bad"]["code"], "unauthorized", "what comes of another token")


@pytest.mark.parametrize("tokens, code, sent", [("ab", None, "ab"), ("aa", "unauthorized", "aa"), ("acb", "unauthorized", "ac")])
def test_a_function_is_asked_once_more_for_a_token_that_is_refused(workspace, tokens, code, sent):
    lines = named(ended(start(workspace, 1, CATCH + """
const sent = [], left = [...given]
globalThis.fetch = async (_, { headers }) => {
    sent.push(headers.get("Authorization").at(-1))
    return sent.at(-1) === "b" ? new Response('"seen"') : new Response('{"code":"unauthorized"}', { status: 401 })
}
await caught("state", () => connect(url, { token: () => left.shift() }).state())
print("sent", sent.join(""))
""", given=tokens)))
    expect_equal((lines["state"].get("code"), lines["state"].get("value")), (code, None if code else "seen"), "the end")
    expect_equal(lines["sent"], sent, "the tokens that were sent")


def test_a_token_that_is_replaced_before_it_is_revoked_ends_nothing(workspace):
    data = workspace.path("data")
    tokens = [make_token(workspace, data, name, "--all") for name in ("old", "new")]
    server = workspace.server(data=data)
    script = start(workspace, server.port, """
let current = given[0]
process.once("SIGUSR1", () => { current = given[1]; print("replaced") })
const mine = connect(url, { token: () => current, onConnection: (isThere) => print("mine", isThere) })
const plainFetch = fetch
globalThis.fetch = (target, options) => {
    if (target.includes("wait=25")) print("waits")
    return plainFetch(target, options)
}
mine.subscribe("/counter/value", (value) => print("value", value))
for await (const { version } of mine.changes()) print("commit", version)
""", given=tokens)
    with server.client() as client:
        wait_until(lambda: printed(script, "waits"), "a request with the old token waits")
        script.process.send_signal(10)
        wait_until(lambda: printed(script, "replaced"), "the token is replaced")
        command = [workspace.binary, "token", "revoke", token_names(data)["old"], "--data", data]
        subprocess.run(command, check=True, capture_output=True)
        client.commit(add(1), **bearer(tokens[1]))
    wait_until(lambda: printed(script, "commit") == [[1]] and printed(script, "value") == [[0], [1]], "the commit")
    expect_equal(printed(script, "mine"), [[True]], "what is told of the connection")


def test_an_error_of_a_function_of_the_program_ends_what_has_called_it(workspace):
    lines = named(ended(start(workspace, 1, CATCH + """
let requests = 0
globalThis.fetch = async () => { requests += 1; return new Response("{}") }
const fail = () => { throw new RangeError("of the program") }
for (const [name, options] of [["token", { token: async () => fail() }], ["header", { token: () => "\\u2028" }], ["parse", { parse: fail }]]) {
    const mine = connect(url, options)
    await caught(`${name} state`, () => mine.state())
    await caught(`${name} dispatch`, () => mine.dispatch("counter/reset"))
    await caught(`${name} changes`, () => mine.changes().next())
    await caught(`${name} subscribe`, () => new Promise((_, failed) => mine.subscribe("", print, failed)))
}
print("requests", requests)
const late = connect(url, { token: () => new Promise(() => {}) })
await caught("late", () => late.state("", { seconds: 0.1 }))
const waiting = caught("closed", () => late.state())
late.close()
await waiting
""")))
    expect_equal(lines.pop("requests"), 4, "the requests, all of them with a function that reads")
    expect_equal(lines.pop("late")["code"], "no-answer", "a token that does not come")
    expect_equal(lines.pop("closed")["name"], "AbortError", "a token that has not come when the store is closed")
    names = {name: line["name"] for name, line in lines.items()}
    expect_equal(
        names, {f"{each} {use}": "TypeError" if each == "header" else "RangeError"
                for each in ("token", "header", "parse") for use in ("state", "dispatch", "changes", "subscribe")}, "the errors")


def test_a_server_that_is_gone_and_comes_back_is_awaited(workspace):
    server = workspace.server(listen_also=f"127.0.0.1:{(port := free_port())}")
    script = start(workspace, port, FOLLOW_ALL + """
await pause(500)
const gone = new Promise((resume) => process.once("SIGUSR1", resume))
print("ready")
await gone
await caught("impatient", () => store.dispatch("counter/add", { amount: 100 }, { seconds: 1 }))
await caught("dispatch", () => store.dispatch("counter/add", { amount: 1 }))
""")
    wait_until(lambda: ["ready"] in script.printed(), "the client is there")
    server.kill()
    script.process.send_signal(10)
    wait_until(lambda: printed(script, "impatient"), "a dispatch with a limit has ended")
    expect(not printed(script, "dispatch"), "a dispatch was answered by nobody")
    server.start()
    wait_until(lambda: printed(script, "dispatch"), "the dispatch is answered", 20)
    wait_until(lambda: [1] in printed(script, "item"), "the value has come", 20)

    impatient, = printed(script, "impatient")[0]
    expect_equal((impatient["name"], impatient["status"], impatient["code"]), ("Problem", 0, "no-answer"), "the limit")
    expect_equal(printed(script, "connection"), [[True], [False], [True]], "what is told of the connection")
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter/value").json, 1, "the counter")
        expect_equal(client.get("/v1").json["version"], 1, "the commits")


def test_a_limit_holds_where_a_server_says_nothing(workspace):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        lines = named(ended(start(workspace, silent.getsockname()[1], CATCH + """
await caught("dispatch", () => store.dispatch("counter/add", { amount: 1 }, { seconds: 0.5 }))
await caught("state", () => store.state("/counter", { seconds: 0.5 }))
"""), seconds=10))
    for name in ("dispatch", "state"):
        expect_equal((lines[name]["name"], lines[name]["code"]), ("Problem", "no-answer"), name)


def test_a_limit_is_for_the_head_of_an_answer_and_for_each_piece_of_it(workspace):
    lines = named(ended(start(workspace, 1, CATCH + """
const { setTimeout } = globalThis
globalThis.setTimeout = (work, milliseconds) => {
    limits.push(milliseconds / 1000)
    return setTimeout(work, milliseconds)
}
let limits = [], pieces, last
globalThis.fetch = async (_, { signal }) => new Response(new ReadableStream({
    start(body) { signal.addEventListener("abort", () => body.error(signal.reason)) },
    pull(body) { pieces.length > 0 ? body.enqueue(new TextEncoder().encode(pieces.shift())) : last(body) },
}))
pieces = ["[1,", "2", "]"]
last = (body) => body.close()
await caught("whole", () => store.state())
print("whole limits", limits)
pieces = ["[1,"]
last = () => {}
await caught("silent", () => store.state("", { seconds: 0.01 }))
limits = []
pieces = ["{}"]
last = (body) => body.close()
await store.request("/actions", { method: "POST", body: "x".repeat(4 << 20), seconds: Infinity })
print("long", limits[0])
""")))
    expect_equal((lines["whole"], lines["silent"]["code"]), ({"value": [1, 2]}, "no-answer"), "the answers")
    expect_equal(lines["whole limits"], [60] * 5, "a limit for the head, one for each of three pieces, and one for the end")
    expect_equal(lines["long"], 84, "the limit of a request with 4 MiB")


def test_another_history_is_told_with_its_state(workspace):
    port = free_port()
    server = workspace.server(data="none", listen_also=f"127.0.0.1:{port}")
    script = start(workspace, port, FOLLOW_ALL)
    with server.client() as client:
        wait_until(lambda: printed(script, "connection") and [0] in printed(script, "item"), "the client is there")
        client.commit(add(3))
    wait_until(lambda: [3] in printed(script, "item"), "the value has come")
    server.restart()
    with server.client() as client:
        cursor = client.get("/v1").json["cursor"]
        state = client.get("/v1/state").json
        wait_until(lambda: [0] == printed(script, "item")[-1] or len(printed(script, "item")) >= 5, "the new value", 20)
        wait_until(lambda: any(is_reset(item) for item, in printed(script, "item")), "the loop knows", 20)
        commit = client.commit(add(5))
        wait_until(lambda: [5] in printed(script, "item"), "the next value", 20)
    items = [item for item, in printed(script, "item") if isinstance(item, dict)]
    wait_until(lambda: printed(script, "item")[-1] != [5] or items[-1].get("cursor") == commit["cursor"], "the commit", 10)
    items = [item for item, in printed(script, "item") if isinstance(item, dict)]
    expect_equal(items[1], {"reset": True, "reason": "cursor-lost", "state": state, "cursor": cursor}, "what is told")
    expect_equal([item.get("version") for item in items], [1, None, 1], "the versions")


def is_reset(item):
    return isinstance(item, dict) and "reset" in item


def test_a_signal_ends_what_it_belongs_to_and_close_ends_everything(workspace):
    server = workspace.server()
    script = start(workspace, server.port, CATCH + """
const controller = new AbortController(), { signal } = controller
const drain = async (loop) => { for await (const item of loop) print("item", item) }
const ends = [
    caught("changes", () => drain(store.changes({ signal }))), caught("values", () => drain(store.values("/counter", { signal }))),
]
const other = caught("other", () => drain(store.changes()))
await pause(300)
controller.abort()
await Promise.all(ends)
await caught("late", () => store.state("", { signal }))
await caught("late loop", () => store.changes({ signal }).next())
store.close()
await other
await caught("closed", () => store.state(""))
await caught("closed loop", () => drain(store.changes()))
""")
    lines = named(ended(script))
    for name in ("changes", "values", "late", "late loop", "closed"):
        expect_equal(lines[name].get("name"), "AbortError", f"the end of {name}")
    for name in ("other", "closed loop"):
        expect_equal(lines[name], {}, f"the end of {name}")
    with server.client() as client:
        wait_until(lambda: server.metric(client, "waiters") == 0, "nothing waits any more")


def test_a_slow_loop_has_each_commit_although_its_queue_is_bounded(workspace):
    server = workspace.server()
    script = start(workspace, server.port, """
let count = 0, last = 0, pages = 0, followed = 0
const plainFetch = fetch
globalThis.fetch = async (target, options) => {
    const isPage = target.includes("limit=1000&on-lost") && !target.includes("wait=")
    pages += isPage
    const response = await plainFetch(target, options)
    if (isPage) print("page", pages)
    else if (target.includes("/changes?")) followed = Number((await response.clone().json()).next.split(".")[1])
    return response
}
for await (const { version } of store.changes({ since: "oldest" })) {
    if (version !== last + 1) throw new Error(`${version} behind ${last}`)
    last = version
    if (count++ === 0) while (followed < 12000) await pause(100)
    if (version === 12000) break
}
print("count", count, pages)
""")
    wait_until(lambda: printed(script, "page"), "the loop has had its first page, which is empty")
    with server.client() as client:
        for _ in range(12):
            bulk(client, [add(1)] * 1000)
    ended(script, 60)
    [(count, pages)] = printed(script, "count")
    expect_equal(count, 12000, "the commits")
    # The first page was empty. At most 6,000 commits were in the queue, and a page has 1,000.
    expect(pages >= 7, f"the loop has asked for {pages} pages of its own")


def test_loops_that_begin_amid_commits_have_each_of_them_once(workspace):
    server = workspace.server()
    script = start(workspace, server.port, """
const follow = async (number) => {
    const versions = []
    for await (const { version } of store.changes({ since: "oldest" })) if (versions.push(version) && version >= 3000) break
    print("loop", number, versions.length, versions.every((version, index) => version === index + 1))
}
for (let number = 0; number < 40; number++) void follow(number), await pause(25)
""")
    with server.client() as client:
        for _ in paced(range(300), 0.004):
            bulk(client, [add(1)] * 10)
    ended(script, 60)
    found = sorted(printed(script, "loop"))
    expect_equal(found, [[number, 3000, True] for number in range(40)], "what each loop has seen")


@pytest.mark.parametrize("status, field, least", [(503, "1", 1.0), (429, "1", 1.0), (502, None, 0.0), (409, "1", None)])
def test_a_busy_server_is_asked_again_when_it_says_so(workspace, status, field, least):
    server = workspace.server()
    script = start(workspace, server.port, CATCH + """
const plainFetch = fetch
let times = []
globalThis.fetch = (target, options) => {
    times.push([Date.now(), options.headers.get("Idempotency-Key")])
    if (times.length > 1) return plainFetch(target, options)
    const headers = given.field ? { "Retry-After": given.field } : {}
    return Promise.resolve(new Response("<html>", { status: given.status, headers }))
}
await caught("dispatch", () => store.dispatch("counter/add", { amount: 1 }))
print("times", times.map(([time]) => time), new Set(times.map(([, key]) => key)).size)
""", given={"status": status, "field": field})
    lines = ended(script)
    [(times, keys)] = printed(script, "times")
    if least is None:
        expect_equal((named(lines)["dispatch"]["code"], len(times)), ("status-409", 1), "a refusal")
        return
    expect_equal((len(times), keys), (2, 1), "the attempts, and their keys")
    waited = (times[1] - times[0]) / 1000
    expect(least - 0.01 <= waited < least + 2, f"the second attempt came after {waited} s")
    expect_equal(named(lines)["dispatch"]["value"]["version"], 1, "the version")


def test_keys_of_dispatches_differ(workspace):
    script = start(workspace, 1, """
const keys = new Set()
globalThis.fetch = async (_, { headers }) => { keys.add(headers.get("Idempotency-Key")); return new Response('{"committed":false}') }
for (let number = 0; number < 5000; number++) await store.dispatch("counter/reset")
print("keys", keys.size, [...keys].every((key) => /^"[ -~]{10,200}"$/.test(key)))
""")
    ended(script)
    expect_equal(printed(script, "keys"), [[5000, True]], "the keys")


def test_an_action_that_is_given_up_does_not_keep_back_those_behind_it(workspace):
    server = workspace.server(listen_also=f"127.0.0.1:{(port := free_port())}")
    server.kill()
    script = start(workspace, port, CATCH + """
const leaving = new AbortController(), gone = new AbortController()
const add = (amount, options) => caught(String(amount), () => store.dispatch("counter/add", { amount }, options))
const all = [add(1, { seconds: 0 }), add(10, { seconds: 1 }), add(100, { signal: leaving.signal }), add(1000), add(10000, { seconds: 0.5 }),
    add(100000, { signal: gone.signal }), add(1000000, { seconds: Infinity })]
gone.abort()
print("called")
setTimeout(() => leaving.abort(), 1500)
await Promise.all(all)
""")
    wait_until(lambda: sum(len(printed(script, name)) for name in ["1", "10", "100", "10000", "100000"]) == 5, "five are given up while it is away", 10)
    server.start()
    lines = named(ended(script, 60))
    given_up = {name: line["code"] if line["name"] == "Problem" else line["name"] for name, line in lines.items() if "value" not in line}
    expect_equal(
        given_up, {"1": "no-answer", "10": "no-answer", "100": "AbortError", "10000": "no-answer", "100000": "AbortError"}, "those given up")
    expect_equal([lines[name]["value"]["version"] for name in ["1000", "1000000"]], [1, 2], "the others, in their order")
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter/value").json, 1001000, "the counter")


def test_an_action_without_time_does_not_wait_for_the_one_before(workspace):
    lines = named(ended(start(workspace, 1, CATCH + """
globalThis.fetch = (_, { signal }) => new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason)))
const before = caught("before", () => store.dispatch("counter/reset"))
await caught("behind", () => store.dispatch("counter/reset", {}, { seconds: 0 }))
store.close()
await before
""")))
    expect_equal((lines["behind"]["code"], lines["before"]["name"]), ("no-answer", "AbortError"), "the ends")


def test_types_can_be_one_text_also_beside_other_loops(workspace):
    lines = ended(start(workspace, 1, """
globalThis.fetch = async (target) => {
    const { searchParams } = new URL(target)
    if (searchParams.get("wait") === "25") {
        print("types", searchParams.get("types"))
        store.close()
    }
    return new Response('{"changes":[],"next":"e.0","more":false}')
}
for (const types of ["counter/add", ["tasks/add", "tasks/move"]]) void store.changes({ types }).next()
"""))
    expect_equal([line[1:] for line in lines if line[0] == "types"], [["counter/add,tasks/add,tasks/move"]], "the filter")


@pytest.mark.parametrize("text", ["<html>", "", "{"])
def test_an_answer_that_is_not_JSON_is_of_a_proxy(workspace, text):
    lines = named(ended(start(workspace, 1, CATCH + """
const keys = []
globalThis.fetch = async (_, { headers }) => {
    keys.push(headers.get("Idempotency-Key"))
    return new Response(keys.length > 1 ? '{"cursor":"a.7","version":7,"id":"a.7","changed":true}' : given.text)
}
await caught("dispatch", async () => (await store.dispatch("counter/reset")).version)
print("keys", [keys.length, new Set(keys).size])
keys.length = 0
await caught("once", () => store.state("", { seconds: 0 }))
await caught("HEAD", () => store.request("/state", { method: "HEAD" }).then(({ status }) => status))
""", given={"text": text})))
    expect_equal((lines["dispatch"], lines["keys"]), ({"value": 7}, [2, 1]), "the second attempt")
    expect_equal(lines["once"]["code"], "no-answer", "one attempt")
    expect_equal(lines["HEAD"], {"value": 200}, "an answer without content")


def test_a_name_that_a_url_would_fold_asks_no_other_route(workspace):
    server = workspace.server()
    lines = named(ended(start(workspace, server.port, CATCH + """
for (const name of [".", ".."]) {
    await caught(`view ${name}`, () => store.state(`view:${name}`))
    await caught(`subscription ${name}`, async () => store.subscribe(`view:${name}`, print))
}
for (const path of ["/actions/..", "/actions/%2e%2E/changes", "/state/./counter", "/../v1?x=1"]) await caught(path, () => store.request(path))
await caught("query", () => store.request("/actions/x?name=/../y"))
""")))
    expect_equal(lines.pop("query").get("code"), "unknown-parameter", "the code for what stands in a query")
    expect_equal({line.get("name") for line in lines.values()}, {"TypeError"}, "the errors")


def test_a_request_says_each_problem_after_which_it_is_sent_again(workspace):
    lines = ended(start(workspace, 1, """
const answers = [() => { throw new TypeError("no network") }, () => new Response('{"code":"not-durable","detail":"the disk is full"}',
    { status: 503 }), () => new Response('{"cursor":"a.1"}')]
globalThis.fetch = async () => answers.shift()()
const onRetry = ({ status, code, detail }) => print("again", status, code, detail)
print("answer", (await store.request("/actions", { method: "POST", body: "{}", onRetry })).json)
"""))
    expect_equal([line[:3] for line in lines], [["again", 0, "no-answer"], ["again", 503, "not-durable"], ["answer", {"cursor": "a.1"}]], "lines")
    expect_equal(lines[1][3], "the disk is full", "why")
