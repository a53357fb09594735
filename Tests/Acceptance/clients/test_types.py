"""client.d.ts: the compiler takes right uses of a server's own types, and refuses each wrong one."""

import pathlib
import re

import pytest

from harness.expectations import expect, expect_equal
from harness.javascript import ended, start
from harness.tokens import bearer, make_token
from harness.tools import need
from harness.typescript import TEMPLATE, compile_strictly

BEGIN = 'import { connect, Problem, type Commit, type Reset } from "./client.mjs"\nconst store = connect("http://localhost:8080")\n;'
RIGHT = """
const all: number = (await store.state()).counter.value
const tasks = await store.state("/tasks")
const done: boolean | undefined = tasks.entities["1"]?.done
const value: number = await store.state("/counter/value")
const title: string | undefined = await store.state("/tasks/entities/7/title")
const first: string | number | undefined = await store.state("/tasks/ids/0")
const phase: "loggedOut" | "loggingIn" | "loggedIn" | "failed" = await store.state("/session/phase")
const user: string | undefined = await store.state("/session/user")
const x: number | undefined = await store.state("/canvas/blocks/3/frame/x")
const open: number[] = await store.state("view:tasks.open")
const deeper: unknown = await store.state("/session/extra/deeper")
const made: string = "/tasks/ids/" + value
const any: unknown = await store.state(made, { signal: new AbortController().signal, seconds: 5 })
const end: () => void = store.subscribe("/counter", ({ value }, cursor) => value.toFixed() + cursor.length, (error) => error)
const known: number | undefined = store.latest("/counter/value")
const ids: number[] | undefined = await store.view("tasks.open").value()
const page = await store.query("/tasks/entities", { filter: "@.done == false", sort: ["/title"], limit: 5, count: true }).value()
const titles: string[] = (page?.members ?? []).map(({ key, value }) => key + value.title)
for await (const { members, count } of store.query("/tasks/ids")) {
    const some: (string | number)[] = members.map(({ value }) => value)
    if (count !== undefined) some.length + count.toFixed().length
}
const stop: () => void = store.view("tasks.open").subscribe((value, cursor) => (value ?? []).length + cursor.length, (error) => error)
for await (const value of store.values("/counter/value")) value.toFixed()
for await (const item of store.changes({ since: "oldest", path: "/tasks", types: ["tasks/add"], by: "ci" })) {
    const each: Commit | Reset = item
    if (item.reset) item.state.counter.value.toFixed()
    else item.patch.map(({ op, path }) => op + path)
}
for await (const item of store.changes({ types: "tasks/*" })) item.cursor.length
const receipt = await store.dispatch("tasks/add", { id: 1, title: "a" }, { id: "mine", key: "k", expect: [{ path: "", value: 1 }] })
if (receipt.committed === undefined) receipt.version.toFixed() + receipt.cursor.length + receipt.id.length
const { version }: { version?: number } = receipt
await store.dispatch("tasks/complete", { id: 1, done: null })
await store.dispatch("session/succeed")
await store.dispatch("counter/reset", {}, { meta: { trace: version } })
await store.dispatch("canvas/updateObject", { id: 1, frame: null, label: "x" })
await store.dispatchAll([{ type: "counter/reset" }, { type: "tasks/add", payload: { id: 1, title: "a" }, id: "mine", schedule: { after: 5 } }], { key: "k" })
const { value: ids0, cursor }: { value: (string | number)[]; cursor: string } = await store.snapshot("/tasks/ids")
const counted: number = (await store.snapshot()).value.counter.value
const { status, json }: { status: number; json: unknown } = await store.request("/actions/mine")
connect(new URL("http://localhost"), { token: async () => "t", onConnection: (isThere, error) => isThere && error, parse: (text) => JSON.parse(text) })
try { store.close() } catch (error) { if (error instanceof Problem) error.code + error.errors[0].pointer + error.status.toFixed() }
"""
WRONG = """\
await store.state("/taskz")
await store.state("tasks")
await store.state("/tasks/entitys")
await store.state("/counter/value/deeper")
await store.state("view:tasks.opened")
const wrong: string = await store.state("/counter/value")
const wrong: string = await store.state("/tasks/entities/7/title")
const wrong: string = await store.state("/session/user")
(await store.state("/session/extra")).length
store.view("tasks.opened")
store.view("tasks.open", { owner: "ann" })
const wrong: string[] | undefined = await store.view("tasks.open").value()
store.query("/taskz")
store.query("/tasks/entities", { filters: "@.done" })
const wrong: number = (await store.query("/tasks/entities").value())!.members[0].value.title
await store.dispatch("tasks/ad", { id: 1, title: "a" })
await store.dispatch("tasks/add", { id: "1", title: "a" })
await store.dispatch("tasks/add", { id: 1 })
await store.dispatch("tasks/add", { id: 1, title: "a", more: 1 })
await store.dispatch("tasks/add")
await store.dispatch("tasks/add", { id: 1, title: "a" }, { idd: "mine" })
await store.dispatchAll({ type: "counter/reset" })
await store.dispatchAll([{ type: "counter/rest" }])
await store.dispatchAll([{ type: "counter/reset" }, { type: "tasks/add", payload: { id: "1", title: "a" } }])
await store.dispatchAll([{ type: "tasks/add", payload: { id: 1, title: "a", more: 1 } }])
await store.dispatchAll([{ type: "tasks/add" }])
await store.dispatchAll([{ type: "counter/reset" }], { expect: [] })
await store.snapshot("/taskz")
const wrong: string = (await store.snapshot("/counter/value")).value
store.subscribe("/counter", (value: string) => value)
store.subscribe("/nothing", () => {})
store.latest("/nothing")
for await (const value of store.values("/counter")) value.toFixed()
for await (const item of store.changes()) item.patch.length
const wrong: number = (await store.dispatch("session/succeed")).version
store.changes({ types: "tasks/ad" })
store.changes({ types: ["tasks/ad"] })
store.changes({ from: "oldest" })
connect("http://localhost:8080", { tokens: "t" })
"""


@pytest.fixture
def check(workspace):
    """Compiles texts beside the types of a client; returns the texts that the compiler refuses, and what it says."""
    need("tsc")

    def check(types, texts):
        directory = pathlib.Path(workspace.path(f"types{workspace.count()}"))
        directory.mkdir()
        (directory / "client.d.mts").write_text(types)
        for number, text in enumerate(texts):
            (directory / f"use{number}.mts").write_text(BEGIN + text)
        code, said = compile_strictly(*sorted(directory.glob("use*.mts")))
        refused = {int(number) for number in re.findall(r"use(\d+)\.mts\(", said)}
        expect_equal((code != 0), bool(refused), "whether the compiler has refused a text: " + said)
        return {text for number, text in enumerate(texts) if number in refused}, said

    return check


def test_right_uses_compile_and_each_wrong_one_is_refused(workspace, check):
    with workspace.server(data="none").client() as client:
        types = client.get("/v1/client.d.ts").body.decode()
    wrong = WRONG.splitlines()

    refused, said = check(types, [RIGHT, *wrong])

    expect_equal([text for text in wrong if text not in refused], [], "the wrong uses that compile")
    expect(RIGHT not in refused, "a right use is refused:", said)


def test_the_parameters_of_a_view_have_types(workspace, check):
    model = pathlib.Path(__file__).parent.parent / "access/rows.js"
    with workspace.server(data="none", model=model).client() as client:
        types = client.get("/v1/client.d.ts").body.decode()
        listed = {view["name"]: view for view in client.get("/v1/views").json["views"]}
        paths = client.get("/v1/openapi.json").json["paths"]
    right = """
store.view("by", { owner: "ann" })
store.view("by", { owner: "ann", first: 5 })
store.view("mine")
const any: unknown = await store.view("count", { text: "x" }).value()
"""
    wrong = [
        'store.view("by")', 'store.view("by", {})', 'store.view("by", { owner: 1 })', 'store.view("by", { owner: "a", firs: 1 })',
        'store.view("mine", { owner: "a" })', 'store.view("by", { owner: "a", first: "5" })',
    ]

    refused, said = check(types, [right, *wrong])

    expect_equal([text for text in wrong if text not in refused], [], "the wrong uses that compile")
    expect(right not in refused, "a right use is refused:", said)
    expect_equal(sorted(listed["by"]["parameters"]["properties"]), ["first", "owner"], "the list of views")
    expect_equal([name for name in listed if listed[name].get("subject")], ["count", "mine"], "the views of the subject")
    own = {each["name"]: each["required"] for each in paths["/v1/views/by"]["get"]["parameters"] if "name" in each}
    expect_equal(own, {"first": False, "owner": True}, "the parameters in the OpenAPI document")


def test_a_token_has_the_types_of_the_actions_and_views_that_it_sees(workspace, check):
    data = workspace.path("data")
    make_token(workspace, data, "all", "--all")
    token = make_token(
        workspace, data, "page", "--read", "/tasks", "--read", "/session/user", "--dispatch", "tasks/*"
    )
    with workspace.server(data=data).client() as client:
        types = client.get("/v1/client.d.ts", **bearer(token)).body.decode()
        expect_equal(client.get("/v1/client.d.ts").status, 401, "the status without a token")
    right = """
await store.dispatch("tasks/remove", { id: 1 })
const user: string | undefined = await store.state("/session/user")
const ids: (string | number)[] = await store.state("/tasks/ids")
const tasks: { ids: unknown } = await store.state("/tasks")
const whole: { tasks: { ids: unknown } } | undefined = await store.state()
for await (const item of store.changes()) if (item.reset) item.state.tasks.ids
"""
    hidden = [
        'const whole: object = await store.state()', 'store.subscribe("", (value) => value.tasks)', '(await store.state("/session")).user',
        'await store.dispatch("counter/reset")', 'await store.state("view:count")', 'await store.state("/counter")',
        'await store.state("/session/phase")', 'const user: string = await store.state("/session/user")',
    ]

    refused, said = check(types, [right, *hidden])

    expect_equal([text for text in hidden if text not in refused], [], "the uses of what is hidden that compile")
    expect(right not in refused, "a right use is refused:", said)
    expect("counter" not in types.removeprefix(TEMPLATE.read_text()), "the types name what is hidden")


def test_the_types_name_what_the_module_has(workspace):
    [(_, store, module)] = ended(start(workspace, 1, """
print("names", Object.keys(store), Object.keys(await import("./client.mjs")))
store.close()
"""))
    text = TEMPLATE.read_text()
    members = re.search(r"^export interface Store \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)[1]
    expect_equal(sorted(set(re.findall(r"^    (\w+)[<(]", members, re.MULTILINE))), sorted(store), "the members of a store")
    expect_equal(
        sorted(re.findall(r"^export declare (?:class|function) (\w+)", text, re.MULTILINE)), sorted(module), "the exports")
