"""What is saved is taken back by one click, while the place is as it was saved."""

import json

import pytest

from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until

DOCUMENT = {"ann": {"age": 30, "big": 12345678901234567890}, "list": ["a", {"b": 1}, "c"], "name": "x"}


@pytest.fixture
def document(workspace):
    server = workspace.server(domain="document")
    put(server, "", DOCUMENT)
    return server


def put(server, path, value):
    with server.client() as client:
        client.commit(action("document/set", {"path": path, "value": value}))


def state(server, base="/v1"):
    with server.client() as client:
        return json.loads(client.get(f"{base}/state").body)


CHANGES = {
    "a number": ("/ann/age", "Edit", None, "31"),
    "a value with many digits": ("/ann", "Edit", None, '{"big": 1}'),
    "a text": ("/name", "Edit", None, '{"not": "JSON"}'),
    "a new member": ("/ann", "Add a member", "a/b~", "[0.1000, 1e300]"),
    "a new element": ("/list", "Add an element", None, '"d"'),
    "a removed member": ("/ann/big", "Remove", None, None),
    "a removed element": ("/list/1", "Remove", None, None),
    "the last element, removed": ("/list/2", "Remove", None, None),
}


def change(tab, path, kind, name, value):
    tab.open("state", path=path)
    tab.button(kind).click()
    form = tab.find("form.edit")
    if name:
        form.get_by_label("Name").fill(name)
    if value:
        form.locator("textarea").fill(value)
    form.locator("button.primary").click()
    tab.expect_text({"Edit": "Saved", "Remove": "Removed"}.get(kind, "Added"), "#notice")


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_taken_back(document, open_tab, what):
    tab = open_tab(document)
    change(tab, *CHANGES[what])
    expect(state(document) != DOCUMENT, "nothing has changed")

    tab.button("Undo").click()

    tab.expect_text("Undone with version 3.", "#notice")
    expect_equal(state(document), DOCUMENT, "the document")
    expect_equal(tab.button("Undo").count(), 0, "buttons to undo")
    expect_equal(tab.page.evaluate("document.activeElement.id"), "main", "what has the focus")


@pytest.mark.parametrize("what", ["a number", "a new element", "a removed member", "a removed element"])
def test_what_another_client_has_changed_since_is_not_undone(document, open_tab, what):
    tab = open_tab(document)
    change(tab, *CHANGES[what])
    path = {"a new element": "/list/3", "a removed element": "/list/1"}.get(what, CHANGES[what][0])
    put(document, path, "other")
    before = state(document)

    tab.button("Undo").click()

    tab.expect_text("Not undone: the place has changed since.", "#notice")
    expect_equal(state(document), before, "the document")


def see_without_a_name(document, open_tab):
    """A tab at the fork without a commit that has just renamed something."""
    with document.client() as client:
        client.commit(action("document/set", {"path": "/name", "value": "y"}, id="renamed"))
    tab = open_tab(document).open("live", id="renamed")
    tab.button("See it without this").click()
    tab.expect_text("1 difference")
    return tab


def test_a_fork_says_that_it_is_not_the_present_wherever_it_is_changed(document, open_tab):
    tab = see_without_a_name(document, open_tab)
    tab.link("Its state").click()
    fork = tab.find(".fork bdi").inner_text()
    tab.expect_text(f"Fork {fork}, version 1: not the present", ".column")
    tab.expect_text(f"In fork {fork}, not the present", "header")
    tab.find("nav a", has_text="State").click()
    tab.expect_text("of the fork", "#status")

    tab.find(".line", has_text="name").last.click()
    tab.button("Edit").click()
    tab.find("form.edit textarea").fill("z")
    tab.button("Save in the fork").click()

    tab.expect_text("Saved in the fork as version 2.", "#notice")
    expect_equal((state(document)["name"], state(document, f"/v1/forks/{fork}")["name"]), ("y", "z"), "present and fork")
    tab.button("Undo").click()
    tab.expect_text("Undone", "#notice")
    expect_equal(state(document, f"/v1/forks/{fork}")["name"], "x", "the name in the fork")
    tab.link("Dispatch").click()
    tab.link("document/remove").click()
    expect_equal(tab.button("Dispatch in the fork").count(), 1, "buttons")


def test_a_save_and_an_undo_are_of_the_fork_in_which_they_were_begun_also_when_it_is_left(document, open_tab):
    tab = see_without_a_name(document, open_tab)
    tab.link("Its state").click()
    fork = tab.find(".fork bdi").inner_text()
    base = f"/v1/forks/{fork}"
    held = []

    def leave_and_go_on():
        wait_until(lambda: held or tab.page.wait_for_timeout(20), "the request is held")
        tab.link("leave").click()
        tab.page.wait_for_function("() => document.querySelector('.fork') === null")
        for route in held:
            route.continue_()
        held.clear()
        tab.page.unroute_all()

    tab.find(".line", has_text="name").last.click()
    tab.button("Edit").click()
    tab.find("form.edit textarea").fill("y")
    tab.page.route(f"**{base}/actions", lambda route: held.append(route))
    tab.button("Save in the fork").click()
    leave_and_go_on()
    tab.expect_text("Saved in the fork as version 2.", "#notice")
    tab.button("Undo").click()
    tab.expect_text("Undone", "#notice")
    expect_equal((state(document)["name"], state(document, base)["name"]), ("y", "x"), "present and fork")

    with document.client() as client:
        for actions in ["/v1/actions", f"{base}/actions"]:
            cursor = client.post(action("document/set", {"path": "/name", "value": "same"}), actions).json["cursor"]
    tab.open("live", commit=cursor, **{"in": fork})
    tab.expect_text("What it changed")
    tab.page.route(f"**{base}/state/**", lambda route: held.append(route))
    tab.button("Undo this commit").click()
    leave_and_go_on()
    wait_until(lambda: state(document, base)["name"] == "x" or tab.page.wait_for_timeout(20), "it is undone in the fork")
    expect_equal(state(document)["name"], "same", "the name in the present")


def test_a_fork_that_has_become_the_present_is_left(document, open_tab):
    tab = see_without_a_name(document, open_tab)
    tab.button("Preview").click()
    tab.expect_text("It would change")

    tab.button("Make this the present").click()

    tab.expect_text("It is the present now, with version 3.", "#notice")
    tab.expect_text("The present, version 3", ".column")
    expect("fork" not in tab.page.url and "fork" not in tab.text("header"), "the page is still in the fork")
    change(tab, "/ann", "Add a member", "zeta", "1")
    expect_equal(state(document)["ann"]["zeta"], 1, "the new member of the present")


def test_what_is_said_is_in_sight_on_a_phone_and_covers_no_button(document, open_tab):
    tab = open_tab(document, viewport={"width": 390, "height": 844}, has_touch=True)
    put(document, "/name", "y")
    tab.open("state", path="/name", at=f"{cursor(document).split('.')[0]}.1")
    tab.button("Preview").click()
    tab.expect_text("It would change")
    tab.button("Make this the present").click()

    tab.expect_text("It is the present now, with version 3.", "#notice")

    inside = """() => {
        const { top, bottom } = document.getElementById("notice").getBoundingClientRect()
        return [top >= document.getElementById("main").getBoundingClientRect().bottom, bottom <= innerHeight]
    }"""
    expect_equal(tab.page.evaluate(inside), [True, True], "the notice is below the content, and in the window")
    tab.expect_text("/name", ".side h2")
    expect_equal(state(document), DOCUMENT, "the present")


def cursor(server):
    with server.client() as client:
        return client.get("/v1").json["cursor"]


COMMITS = {
    "a removed member": ("remove", {"path": "/ann"}),
    "a replaced number with many digits": ("set", {"path": "/ann/big", "value": 1}),
    "a new member": ("set", {"path": "/a~1b", "value": {}}),
    "a removed element": ("remove", {"path": "/list/0"}),
    "an element in the middle": ("patch", {"patch": [{"op": "add", "path": "/list/1", "value": 0}]}),
    "the whole document": ("set", {"path": "", "value": {"0": {"1": 2}}}),
    "several places": ("patch", {"patch": [
        {"op": "remove", "path": "/list/0"}, {"op": "replace", "path": "/list/0/b", "value": 2}, {"op": "remove", "path": "/name"},
        {"op": "add", "path": "/ann/2", "value": "object, not list"}, {"op": "move", "from": "/ann/age", "path": "/age"}]}),
}


@pytest.mark.parametrize("what", COMMITS)
def test_a_commit_is_undone_after_a_reload(document, open_tab, what):
    type, payload = COMMITS[what]
    with document.client() as client:
        cursor = client.commit(action(f"document/{type}", payload))["cursor"]
    expect(state(document) != DOCUMENT, "nothing has changed")
    put(document, "/other", 1)
    tab = open_tab(document).open("live", commit=cursor)

    if what == "the whole document":
        with document.client() as client:
            client.commit(action("document/remove", {"path": "/other"}))
    tab.button("Undo this commit").click()

    tab.expect_text("Undone with version", "#notice")
    expect_equal({key: value for key, value in state(document).items() if key != "other"}, DOCUMENT, "the document")
    tab.button("Undo this commit").click()
    tab.expect_text("Not undone: the place has changed since.", "#notice")


@pytest.mark.parametrize("what", [name for name in COMMITS if name != "the whole document"])
def test_a_commit_is_not_undone_where_somebody_has_changed_its_place_since(document, open_tab, what):
    type, payload = COMMITS[what]
    with document.client() as client:
        cursor = client.commit(action(f"document/{type}", payload))["cursor"]
    place = {"path": "/list", **payload}["path"]
    put(document, "/list/-" if place.startswith("/list") else place, "theirs")
    before = state(document)
    tab = open_tab(document).open("live", commit=cursor)

    tab.button("Undo this commit").click()

    tab.expect_text("Not undone: the place has changed since.", "#notice")
    expect_equal(state(document), before, "the document")


def test_another_domain_has_no_button_to_undo_a_commit_and_the_author_is_not_named_where_there_are_no_tokens(server, open_tab):
    with server.client() as client:
        cursor = client.commit(action("counter/add", {"amount": 1}))["cursor"]
    tab = open_tab(server).open("live", commit=cursor)
    tab.expect_text("no author is recorded: the server has no tokens", ".side")
    expect_equal(tab.button("Undo this commit").count(), 0, "buttons")
    tab.open("state", path="/counter/value")
    tab.button("Who changed this last?").click()
    tab.expect_text("no author is recorded: the server has no tokens.", ".side")


def test_a_version_that_cannot_be_the_present_as_previewed_gets_a_new_preview(document, open_tab):
    put(document, "/name", "y")
    with document.client() as client:
        cursor = client.get("/v1").json["cursor"]
    put(document, "/name", "z")
    tab = open_tab(document).open("state", at=cursor)
    tab.button("Preview").click()
    tab.expect_text("It would change")
    put(document, "/name", "what nobody has seen")

    tab.button("Make this the present").click()

    tab.expect_text("Nothing is done: the present has changed since the preview.", ".restore")
    tab.expect_text('"what nobody has seen"', ".restore .removed")
    tab.button("Make this the present").click()
    tab.expect_text("It is the present now, with version 5.", "#notice")
    expect_equal(state(document)["name"], "y", "the name")
