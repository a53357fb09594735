"""Views with parameters and queries in client.js: the value now, each newer one, and as a loop."""

import pathlib
import random

from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until
from harness.javascript import ended, printed, start
from harness.messages import version_of
from harness.tokens import bearer, make_token

MODEL = pathlib.Path(__file__).parent.parent / "access/rows.js"
FOLLOW = """
const of = {
    "by ann": store.view("by", { owner: "ann", first: undefined }), "by ben": store.view("by", { first: 2, owner: "b e&n" }),
    "mine": store.view("mine"),
    "texts": store.query("/rows", { filter: "@.owner == 'ann'", sort: ["-/text"], fields: "/text", count: true }),
    "of a view": store.query("view:mine", { limit: 1 }),
}
for (const [name, live] of Object.entries(of)) live.subscribe((value, cursor) => print("value", name, cursor, value))
const again = store.view("by", { owner: "ann" })
"""


def put(client, key, owner, text, token):
    return client.commit(action("rows/put", {"id": key, "owner": owner, "text": text}), **bearer(token))["version"]


def expected(rows):
    """What each source has, of rows by key."""

    def of(owner):
        return sorted(key for key, row in rows.items() if row["owner"] == owner)

    texts = sorted(((rows[key]["text"], key) for key in of("ann")), key=lambda each: each[0], reverse=True)
    mine = {key: rows[key] for key in of("root")}
    return {
        "by ann": of("ann"),
        "by ben": of("b e&n")[:2],
        "mine": mine,
        "texts": {"members": [{"key": key, "value": {"text": text}} for text, key in texts], "count": len(texts)},
        "of a view": {"members": [{"key": key, "value": mine[key]} for key in list(mine)[:1]]},
    }


def test_each_value_is_that_of_its_cursor_and_the_last_one_comes(workspace):
    chance = random.Random(workspace.seed)
    data = workspace.path("data")
    token = make_token(workspace, data, "root", "--all")
    server = workspace.server(model=MODEL, data=data)
    script = start(workspace, server.port, FOLLOW, token=token)
    wait_until(lambda: len({name for name, *_ in printed(script, "value")}) == 5, "the first values")
    rows, states = {}, {0: {}}
    with server.client() as client:
        for number in range(40):
            row = {"owner": chance.choice(["ann", "b e&n", "root"]), "text": f"{chance.random()}"}
            rows[f"r{number:02}"] = row
            states[put(client, f"r{number:02}", row["owner"], row["text"], token)] = dict(rows)

        def last():
            found = {name: value for name, _, value in printed(script, "value")}
            # There are more of them behind the first one; where they go on, the server knows.
            found["of a view"].pop("next", None)
            return found

        wait_until(lambda: last() == expected(rows), "the last values")
        for name, cursor, value in printed(script, "value"):
            if name == "of a view":
                value.pop("next", None)
            expect_equal(value, expected(states[version_of(cursor)])[name], f"{name} at {cursor}")
        for name in last():
            values = [value for each, _, value in printed(script, "value") if each == name]
            expect(all(one != other for one, other in zip(values, values[1:])), f"a value of {name} came twice")


def test_a_value_now_a_loop_and_what_is_refused(workspace):
    server = workspace.server(model=MODEL, data="none")
    with server.client() as client:
        client.commit(action("rows/put", {"id": "a", "owner": "ann", "text": "x"}))
    lines = ended(start(workspace, server.port, """
const open = store.view("by", { owner: "ann" })
print("now", await open.value(), open.latest(), await store.query("/rows", { filter: "@.owner == 'ben'" }).value())
print("nowhere", await store.query("/rows/b").value())
const refused = async (live) => { try { await live.value() } catch (error) { return [error.status, error.code, error.document.parameter] } }
print("refused", await refused(store.view("by")), await refused(store.view("by", { owner: "a", wait: "x" })), await refused(store.query("/rows", { filter: "@ =" })))
let failure
store.view("by").subscribe(() => {}, (error) => { failure = error })
const values = []
for await (const value of open) {
    values.push(value)
    if (values.length === 1) await store.dispatch("rows/put", { id: "b", owner: "ann", text: "y" })
    else break
}
print("loop", values, failure?.code, open.latest())
try { store.query("//a") } catch (error) { print("odd", error.name) }
store.close()
"""))
    found = {name: rest for name, *rest in lines if name != "connection"}
    expect_equal(found["now"], [["a"], "undefined", {"members": []}], "the values now")
    expect_equal(found["nowhere"], ["undefined"], "a query on what is not there")
    expect_equal(
        found["refused"], [[400, "bad-parameter", "owner"], [400, "bad-parameter", None], [400, "invalid-query", "filter"]],
        "what is refused",
    )
    expect_equal(found["loop"], [[["a"], ["a", "b"]], "bad-parameter", "undefined"], "the values of the loop")
    expect_equal(found["odd"], ["TypeError"], "a pointer that a URL cannot hold")
