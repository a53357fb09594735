"""The state as a tree, now and as it was, and who changed what."""

from harness.actions import action, add, bulk
from harness.expectations import expect, expect_equal, wait_until
from harness.tokens import make_token


def test_the_tree_shows_the_present_and_marks_what_a_commit_has_changed(server, open_tab):
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "milk"}))
        client.commit(action("tasks/add", {"id": 2, "title": "bread"}))
        tab = open_tab().open("state", path="/tasks/entities/1")
        tab.expect_text("milk", ".line.current")

        client.commit(action("tasks/rename", {"id": 1, "title": "oat milk"}))

    tab.expect_text("oat milk", ".line.current")
    tab.expect_text("changed", ".line.current")
    expect("changed" not in tab.text('.line:has-text("bread")'), "another task is marked, too")
    tab.expect_text("oat milk", ".side")


def test_the_state_of_an_earlier_version_is_shown_and_the_present_stays(server, open_tab):
    with server.client() as client:
        for _ in range(10):
            client.commit(add(1))
    tab = open_tab().open("state", path="/counter/value")
    tab.expect_text("10", ".line.current")

    tab.find("#version").fill("4")
    tab.find("#version").press("Enter")

    tab.expect_text("As it was at version 4 of 10")
    tab.expect_text("4", ".line.current .value")
    tab.button("One version back").click()
    tab.expect_text("3", ".line.current .value")
    tab.button("Now").click()
    tab.expect_text("The present, version 10")
    tab.expect_text("10", ".line.current .value")


def test_a_place_of_the_tree_leads_to_the_commit_that_changed_it_last(server, open_tab):
    with server.client() as client:
        bulk(client, [action("tasks/add", {"id": number, "title": f"task {number}"}) for number in range(1, 40)])
        receipt = client.commit(action("tasks/rename", {"id": 7, "title": "found"}))
        bulk(client, [add(1)] * 500)
    tab = open_tab().open("state", path="/tasks/entities/7/title")

    tab.button("Who changed this last?").click()

    tab.expect_text(f"tasks/rename, version {receipt['version']}")
    tab.find(".found a").click()
    tab.expect_text('"found"', ".side .added")
    tab.expect_text('"task 7"', ".side .removed")
    # The value beside it was changed by another commit.
    tab.open("state", path="/tasks/entities/7/done")
    tab.button("Who changed this last?").click()
    tab.expect_text("tasks/add, version 7")


def test_only_the_entities_in_sight_are_fetched(server, open_tab):
    with server.client() as client:
        bulk(client, [action("tasks/add", {"id": number, "title": f"task {number}"}) for number in range(1, 5001)])
    tab = open_tab().open("state")
    tab.expect_text("tasks")
    tab.find(".line", has_text="tasks").click()

    tab.find(".line", has_text="entities").click()

    tab.expect_text("task 5", ".list")
    fetched = [url for url in tab.requests if "/v1/state/tasks/entities" in url and "as=keyed" not in url]
    expect(0 < len(fetched) < 100, f"{len(fetched)} entities were fetched")
    expect_equal([url for url in tab.requests if url.endswith("/v1/state")], [], "requests of the whole state")
    tab.find(".list").focus()
    tab.page.keyboard.press("End")
    tab.expect_text("films", ".list")
    tab.find(".list").evaluate("list => { list.scrollTop = 2500 * 28 }")
    tab.expect_text("task 2500", ".list")


def test_a_number_beyond_2_to_the_53_keeps_its_digits_also_where_a_commit_brings_it(server, open_tab):
    with server.client() as client:
        client.commit(add(9007199254740993))
        tab = open_tab().open("state", path="/counter/value")
        tab.expect_text("9007199254740993", ".line.current")

        client.commit(add(2))

    tab.expect_text("9007199254740995", ".line.current")
    tab.expect_text("9007199254740995", ".side")
    tab.open("live")
    tab.find(".line", has_text="counter/add").last.click()
    tab.expect_text('{"amount":9007199254740993}', ".side")
    tab.link("Edit and send again").click()
    tab.button("Dispatch").click()
    tab.expect_text("Committed as version 3")
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter").json, {"value": 18014398509481988}, "the state")


def test_go_to_takes_a_pointer_or_finds_keys_and_values(server, open_tab):
    with server.client() as client:
        for number, title in enumerate(["oat milk", "bread", "MILK"], 1):
            client.commit(action("tasks/add", {"id": number, "title": title}))
    tab = open_tab().open("state")
    tab.expect_text("The present, version 3")
    go_to = tab.page.get_by_role("searchbox", name="Go to")

    go_to.fill("milk")
    go_to.press("Enter")
    tab.expect_text("2 places with milk", ".side")
    tab.link("/tasks/entities/3/title").click()
    tab.expect_text("MILK", ".line.current")
    go_to.fill("favourites")
    tab.button("Go").click()
    tab.expect_text("1 place with favourites", ".side")
    go_to.fill("/tasks/entities/2")
    tab.button("Go").click()
    tab.expect_text("bread", ".line.current")
    go_to.fill("nowhere")
    tab.button("Go").click()
    tab.expect_text("No key and no value has this text.", ".side")


def test_what_is_read_beside_a_busy_place_stays_while_its_value_changes(workspace, open_tab):
    server = workspace.server(domain="document")
    set_to = lambda client, value: client.commit(action("document/set", {"path": "/busy", "value": {"n": value}}))
    with server.client() as client:
        set_to(client, 0)
        tab = open_tab(server).open("state", path="/busy")
        tab.button("Who changed this last?").click()
        tab.expect_text("Last changed", ".side")
        tab.expect_text("Wait for its next change", ".side")
        tab.page.evaluate("document.querySelector('.side pre.json').isKept = true")
        before = tab.find(".side .facts code").inner_text()
        for value in range(1, 30):
            set_to(client, value)
    tab.expect_text("29", ".side pre.json")

    expect(tab.page.evaluate("document.querySelector('.side pre.json').isKept"), "the value is drawn as another element")
    expect("Last changed" in tab.text(".side"), "the answer is gone")
    wait_until(lambda: tab.find(".side .facts code").inner_text() != before or tab.page.wait_for_timeout(20), "the newer tag")


def test_an_emptied_version_leaves_the_version_as_it_is(server, open_tab):
    with server.client() as client:
        for _ in range(3):
            client.commit(add(1))
    tab = open_tab().open("state")
    tab.expect_text("The present, version 3")
    field = tab.find("#version")

    field.fill("")
    field.press("Enter")

    expect_equal(field.input_value(), "3", "the field")
    tab.expect_text("The present, version 3")


def test_the_views_stand_beside_the_state_with_their_values(server, open_tab):
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "call"}))
    tab = open_tab().open("state")
    tab.expect_text("Views: canvas.summary, count, tasks.open")

    tab.link("tasks.open").click()

    tab.expect_text("[1]", ".side pre")
    tab.expect_text("/v1/views/tasks.open", ".side")
    expect("view=tasks.open" in tab.page.url, f"the address is {tab.page.url}")
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 2, "title": "second"}))
    tab.button("Read again").click()
    tab.expect_text("[1, 2]", ".side pre")
    tab.page.reload()
    tab.expect_text("[1, 2]", ".side pre")
    tab.find(".line", has_text="counter").first.click()
    tab.expect_text("/counter", ".side h2")


def test_who_may_only_see_views_sees_them(workspace, open_tab):
    data = workspace.path("data")
    token = make_token(workspace, data, "guest", "--read", "view:tasks.open")
    tab = open_tab(workspace.server(data=data)).open("state")
    tab.field("Token").fill(token)
    tab.button("Open").click()

    tab.expect_text("Views: tasks.open")
    expect("count" not in tab.text(".column"), "another view is named")
    expect("Sign out guest" in tab.text("#tools"), f"the button is {tab.text('#tools')!r}")
    tab.link("tasks.open").click()
    tab.expect_text("[]", ".side pre")


MODEL = """
import { createSlice } from '@reduxjs/toolkit'
import { view } from 'storekeeper'
createSlice({ name: 'tasks', initialState: {}, reducers: { add(state, { payload }) { state[payload.id] = payload } } })
view('open', (state, { owner, first = 20 }) => Object.values(state.tasks).filter((task) => task.owner === owner).slice(0, first), {
  parameters: { type: 'object', required: ['owner'], additionalProperties: false,
    properties: { owner: { type: 'string' }, first: { type: 'integer', minimum: 1 } } } })
"""


def test_a_view_with_parameters_has_a_form(workspace, open_tab):
    with open(workspace.path("model.js"), "w") as file:
        file.write(MODEL)
    server = workspace.server(model=workspace.path("model.js"))
    with server.client() as client:
        for number, owner in enumerate(["ann & co", "ann & co", "bob"]):
            client.commit(action("tasks/add", {"id": number, "owner": owner}))
    tab = open_tab(server).open("state")
    tab.link("open").click()
    tab.field("owner text").fill("ann & co")
    tab.button("Show").click()
    tab.expect_text('"id":1', ".side pre")
    expect("bob" not in tab.text(".side pre"), "the view has another owner")

    tab.field("first whole number").fill("1")
    tab.button("Show").click()
    wait_until(lambda: '"id":1' not in tab.text(".side pre") or tab.page.wait_for_timeout(20), "one is shown")
    tab.field("first whole number").fill("0")
    tab.button("Show").click()
    tab.expect_text("first", ".outcome .error")
