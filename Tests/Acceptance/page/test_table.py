"""Many members of one shape as a table: filtered, sorted, in pages, and live."""

import urllib.parse

import pytest

from harness.actions import action, bulk
from harness.expectations import expect, expect_equal, wait_until


@pytest.fixture
def full(workspace):
    server = workspace.server(domain="document")
    tasks = {
        f"t{number}": {"title": f"task {number}", "owner": ["ann", "bob"][number % 2], "done": number > 100}
        | ({"size": number * 10} if number % 3 else {})
        for number in range(1, 121)
    }
    with server.client() as client:
        client.commit(action("document/set", {"path": "", "value": {"tasks": tasks, "one": {"a": 1}}}))
    return server


def cells(tab, row):
    return tab.find("tbody tr").nth(row).locator("th, td").all_inner_texts()


def test_a_place_with_many_members_of_one_shape_is_a_table(full, open_tab):
    tab = open_tab(full).open("state", path="/one")
    tab.expect_text("Value")
    expect_equal(tab.link("As a table").count(), 0, "tables of one member")
    tab.open("state", path="/tasks")
    tab.link("As a table").click()

    tab.expect_text("1 to 50 of 120")
    expect_equal(tab.find("thead th").all_inner_texts(), ["Key", "done", "owner", "size", "title"], "the columns")
    expect_equal(cells(tab, 2), ["t100", "false", "ann", "1000", "task 100"], "the third row")
    tab.link("t100").click()
    tab.expect_text("/tasks/t100", ".side")


def test_the_address_and_the_curl_line_hold_the_filter_the_order_and_the_page(full, open_tab):
    tab = open_tab(full).open("table", path="/tasks")
    tab.field("Filter").first.fill("@.done == false")
    tab.expect_text("1 to 50 of 100")
    tab.button("size").click()
    tab.expect_text("size\u00a0▲")
    expect_equal(cells(tab, 0)[0], "t1", "the first row, upwards")
    tab.find("button.head", has_text="size").click()
    tab.expect_text("size\u00a0▼")
    expect_equal(cells(tab, 0)[:4], ["t100", "false", "ann", "1000"], "the first row, downwards")
    expect_equal(tab.find("th[aria-sort=descending]").inner_text(), "size\u00a0▼", "the column that is sorted")
    tab.button("Next page").click()
    tab.expect_text("51 to 100 of 100")

    parameters = dict(urllib.parse.parse_qsl(tab.page.url.partition("?")[2]))
    expect_equal(parameters, {"path": "/tasks", "filter": "@.done == false", "sort": "-/size", "page": "2"}, "the address")
    tab.expect_text("'filter=@.done == false'", ".copyable")
    tab.expect_text("'offset=50'", ".copyable")
    colleague = open_tab(full)
    colleague.page.goto(tab.page.url)
    colleague.expect_text("51 to 100 of 100")
    expect_equal(cells(colleague, 0), cells(tab, 0), "what a colleague sees")
    colleague.open("table", path="/tasks", page=9)
    colleague.expect_text("This page is behind the end.")


def test_a_fault_of_the_filter_is_shown_at_its_place(full, open_tab):
    tab = open_tab(full).open("table", path="/tasks", filter="@.done = false")

    tab.expect_text("equality is ==")
    expect_equal(tab.find("mark").inner_text(), "=", "what is marked")
    expect_equal(tab.text("[role=alert] pre"), "@.done = false", "the filter with its mark")
    expect_equal(tab.field("Filter").first.get_attribute("aria-invalid"), "true", "the mark of the field")
    tab.field("Filter").first.fill("@.owner == 'nobody'")
    tab.field("Filter").first.press("Enter")
    tab.expect_text("The filter lets no member through.")
    expect("equality" not in tab.text(), "the fault is still shown")
    tab.button("Show all members").click()
    tab.expect_text("1 to 50 of 120")


def test_a_table_follows_the_commits_and_only_those_that_change_it(full, open_tab):
    tab = open_tab(full).open("table", path="/tasks", filter="@.owner == 'ann' && @.done == true")
    tab.expect_text("1 to 10 of 10")
    waits = lambda: [url for url in tab.requests if "state/tasks?" in url and "wait=25" in url]
    wait_until(lambda: waits() or tab.page.wait_for_timeout(20), "the table waits")
    with full.client() as client:
        for number in range(20):
            client.commit(action("document/set", {"path": "/tasks/t1/title", "value": f"title {number}"}))
        tab.page.wait_for_timeout(500)
        expect_equal(len(waits()), 1, "waits while nothing of it changes")
        client.commit(action("document/set", {"path": "/tasks/t101/owner", "value": "ann"}))

    tab.expect_text("1 to 11 of 11")
    tab.expect_text("task 101")


def test_a_table_of_entities_comes_from_its_place_and_says_when_there_is_none(server, open_tab):
    with server.client() as client:
        bulk(client, [action("tasks/add", {"id": number, "title": f"task {number}"}) for number in range(1, 4)])
        tab = open_tab().open("state", path="/tasks/entities")
        tab.link("As a table").click()
        tab.expect_text("1 to 3 of 3")
        tab.open("table", path="/tasks/entities/9")
        tab.expect_text("There is nothing at this place now.")
        client.commit(action("tasks/add", {"id": 9, "title": "late"}))
        tab.expect_text("late")


def test_a_double_click_on_a_cell_edits_it_and_the_way_back_leads_to_the_table(workspace, open_tab):
    server = workspace.server(domain="document")
    with server.client() as client:
        client.commit(action("document/set", {"path": "/a~0b", "value": {"x/y": {"n~": 1, "t": "one"}, "z": {"n~": 2, "t": "two"}}}))
    tab = open_tab(server).open("table", path="/a~0b")
    tab.find("td", has_text="2").dblclick()
    tab.find("form.edit textarea:focus").wait_for()
    tab.page.keyboard.press("Control+A")
    tab.page.keyboard.type("3")
    tab.page.keyboard.press("Enter")
    tab.expect_text("Saved as version 2", "#notice")
    expect("edit" not in tab.page.url, "a reload would edit again")

    tab.page.go_back()

    tab.expect_text("1 to 2 of 2")
    tab.find("td", has_text="one").dblclick()
    tab.expect_text("/a~0b/x~1y/t", ".side h2")
    with server.client() as client:
        expect_equal(client.get("/v1/state/a~0b/z/n~0").json, 3, "the value")


@pytest.mark.parametrize("width", [390, 700, 1000, 1280, 1600])
def test_the_explanation_of_a_filter_is_in_lines_of_words(full, open_tab, width):
    tab = open_tab(full, viewport={"width": width, "height": 800}).open("table", path="/tasks")
    tab.find("summary", has_text="How a filter is written").click()

    narrow = tab.page.eval_on_selector_all("details dd", "all => all.map(each => [each.clientWidth, each.innerText])")

    expect(narrow and all(each > 200 for each, _ in narrow), narrow)
