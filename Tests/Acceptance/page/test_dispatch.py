"""An action by a form: tried first, sent once, refused at the field that is at fault."""

import json

import pytest

from harness.actions import action, add
from harness.expectations import expect, expect_equal, wait_until


def refusals(tab):
    """The sentences at the fields, by the label of the field."""
    return tab.page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('[aria-invalid=true]')].map(control =>
            [document.querySelector(`label[for=${control.id}]`).firstChild.textContent,
             document.getElementById(control.getAttribute('aria-describedby')).textContent]))"""
    )


def test_a_rejection_stands_at_the_field_that_is_at_fault(server, open_tab):
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 5, "title": "milk"}))
    tab = open_tab().open("dispatch", type="tasks/add")
    tab.field("id whole number").fill("5")
    tab.field("title text").fill("bread")

    tab.button("Dispatch").click()

    tab.expect_text("Refused: nothing was changed.")
    expect_equal(refusals(tab), {"id": "task 5 exists already"}, "the refusals")
    expect_equal(tab.page.evaluate("document.activeElement.value"), "5", "the value of the field with the focus")
    tab.field("id whole number").fill("6")
    tab.field("title text").fill(" ")
    tab.button("Dispatch").click()
    tab.expect_text("a title needs a visible character")
    expect_equal(refusals(tab), {"title": "a title needs a visible character"}, "the refusals")
    tab.field("title text").fill("bread")
    tab.button("Dispatch").click()
    tab.expect_text("Committed as version 2")
    expect_equal(refusals(tab), {}, "the refusals")


def test_a_number_that_is_none_is_refused_at_its_field_inside_a_frame(server, open_tab):
    tab = open_tab().open("dispatch", type="canvas/addBlock")
    tab.field("id whole number").fill("1")
    for name in ["x", "y", "width"]:
        tab.field(f"{name} number").fill("1.5")
    tab.field("height number").fill("tall")

    tab.button("Dispatch").click()

    tab.expect_text("Refused")
    expect_equal(list(refusals(tab)), ["height"], "the fields at fault")
    tab.field("height number").fill("2")
    tab.button("Dispatch").click()
    tab.expect_text("Committed as version 1")


def test_what_is_typed_stays_with_its_action_until_it_is_dispatched(server, open_tab):
    tab = open_tab().open("dispatch", type="tasks/add")
    tab.field("id whole number").fill("7")
    tab.field("title text").fill("milk")
    tab.link("State").click()
    tab.expect_text("counter")
    tab.link("Dispatch").click()
    tab.link("counter/add").click()
    tab.link("tasks/add").click()
    expect_equal(tab.field("title text").input_value(), "milk", "the title")
    tab.button("Dispatch").click()
    tab.expect_text("Committed as version 1")
    tab.link("counter/add").click()
    tab.link("tasks/add").click()
    expect_equal(tab.field("title text").input_value(), "", "the title of the next action")


def test_an_action_is_of_the_store_of_its_form_also_where_the_way_back_has_led_to_another(workspace, open_tab):
    server = workspace.server(page_confirm="on")
    with server.client() as client:
        client.commit(add(1))
        fork = client.post(b"{}", "/v1/forks").json["name"]
    tab = open_tab(server).open("dispatch", type="counter/add", **{"in": fork})
    tab.expect_text("In a fork")
    tab.open("dispatch", type="counter/add")
    wait_until(lambda: tab.find(".fork").count() == 0 or tab.page.wait_for_timeout(20), "the fork is left")
    tab.field("amount").fill("5")
    tab.button("Dispatch").click()

    tab.page.go_back()
    tab.find(".fork").wait_for()
    tab.button("Change it").click()

    def counter(base):
        with server.client() as client:
            return client.get(f"{base}/state/counter/value").json

    wait_until(lambda: counter("/v1") == 6 or tab.page.wait_for_timeout(20), "it is committed in the present")
    expect_equal(counter(f"/v1/forks/{fork}"), 1, "the counter in the fork")
    expect(f"in={fork}" in tab.page.url, f"the address of the other form is {tab.page.url}")


def test_a_preview_shows_the_patch_and_commits_nothing(server, open_tab):
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "milk"}))
    tab = open_tab().open("dispatch", type="tasks/rename")
    tab.field("id whole number").fill("1")
    tab.field("title text").fill("bread")

    tab.button("Preview").click()

    tab.expect_text("It would change")
    tab.expect_text('"milk"', ".outcome .removed")
    tab.expect_text('"bread"', ".outcome .added")
    with server.client() as client:
        expect_equal(client.get("/v1").json["version"], 1, "the version")
    tab.button("Dispatch").click()
    tab.expect_text("Committed as version 2")


def test_the_receipt_shows_the_cascade(server, open_tab):
    tab = open_tab().open("dispatch", type="films/load")

    tab.button("Dispatch").click()

    tab.expect_text("It caused 1 commit")
    tab.expect_text("films/fail", ".receipt")


KINDS = {
    "type": "object",
    "required": ["colour", "many", "names", "byName", "exact", "choice"],
    "properties": {
        "colour": {"type": "string", "enum": ["red", "green"]},
        "many": {"type": "array", "items": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}},
        "names": {"type": "array", "items": {"type": "string"}},
        "byName": {"type": "object", "additionalProperties": {"type": "integer"}},
        "exact": {"type": "integer"},
        "choice": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        "free": {},
        "maybe": {"type": ["boolean", "null"]},
        "note": {"type": "string"},
    },
}


def test_a_form_has_enums_lists_maps_and_members_that_may_be_left_out(server, open_tab):
    tab = open_tab()
    catalogue = {"actions": [{"type": "all/kinds", "payload": KINDS}]}
    sent = []

    def answer(route):
        if route.request.method == "POST":
            sent.append(route.request.post_data)
            problem = {"status": 422, "code": "invalid-action", "detail": "no", "errors": [
                {"pointer": "/payload/many/0/n", "detail": "is odd"}, {"pointer": "/payload/byName/two", "detail": "is even"}]}
            return route.fulfill(status=422, content_type="application/problem+json", body=json.dumps(problem))
        return route.fulfill(json=catalogue)

    tab.page.route("**/v1/actions", answer)
    tab.open("dispatch", type="all/kinds")
    tab.field("colour").select_option("green")
    tab.page.get_by_role("group", name="many").get_by_role("button", name="Add an element").click()
    tab.field("n whole number").fill("3")
    names = tab.page.get_by_role("group", name="names")
    for number, name in enumerate(["a", "b", "c"]):
        names.get_by_role("button", name="Add an element").click()
        names.get_by_role("textbox").nth(number).fill(name)
    names.get_by_role("button", name="Remove this element").nth(1).click()
    by_name = tab.page.get_by_role("group", name="byName")
    by_name.get_by_role("button", name="Add a member").click()
    by_name.get_by_label("Key").fill("two")
    by_name.get_by_label("Value").fill("2")
    tab.field("exact whole number").fill("9007199254740993")
    tab.field("Kind of choice").select_option("integer")
    tab.field("choice whole number").fill("7")
    tab.field("free JSON").fill('{"deep":[1]}')
    tab.field("Whether maybe is given").select_option("null")

    tab.button("Dispatch").click()

    tab.expect_text("Refused")
    expect_equal(
        sent,
        ['{"type":"all/kinds","payload":{"colour":"green","many":[{"n":3}],"names":["a","c"],"byName":{"two":2},'
         '"exact":9007199254740993,"choice":7,"free":{"deep":[1]},"maybe":null}}'],
        "the bodies sent",
    )
    expect_equal(refusals(tab), {"n": "is odd", "Value": "is even"}, "the refusals")
    expect("note" in tab.text(), "the member that was left out has no field")
    # Left and come back to, the form is as it was, also what was removed last and what is of a second kind.
    names.get_by_role("button", name="Remove this element").nth(0).click()
    tab.link("State").click()
    tab.expect_text("counter")
    tab.link("Dispatch").click()
    tab.link("all/kinds").click()
    tab.button("Dispatch").click()
    tab.expect_text("Refused")
    expect_equal(sent[1:], [sent[0].replace('["a","c"]', '["c"]')], "the body sent again")


def test_an_action_under_way_goes_on_when_the_view_is_left_and_keeps_its_key(server, open_tab):
    tab = open_tab()
    keys, is_full = [], True

    def answer(route):
        if route.request.method == "GET":
            return route.continue_()
        keys.append(route.request.headers["idempotency-key"])
        return route.fulfill(status=503, json={"code": "not-durable", "detail": "the disk is full"}) if is_full else route.continue_()

    tab.page.route("**/v1/actions", answer)
    tab.open("dispatch", type="counter/add")
    tab.field("amount").fill("7")
    tab.button("Dispatch").click()
    tab.expect_text("Not yet: the disk is full.")

    tab.link("counter/reset").click()
    tab.link("Live").click()
    tab.expect_text("No commit yet")
    tab.link("Dispatch").click()
    tab.link("counter/add").click()
    tab.expect_text("Not yet: the disk is full.")
    tab.link("Live").click()
    tab.expect_text("No commit yet")
    is_full = False

    tab.expect_text("counter/add: Committed as version 1.", "#notice", seconds=20)
    expect_equal(len(set(keys)), 1, "the keys")
    tab.link("Dispatch").click()
    tab.link("counter/add").click()
    expect_equal(tab.field("amount").input_value(), "", "the field of an action that is committed")


def test_the_text_of_the_action_is_what_is_sent_once_it_is_changed(server, open_tab):
    tab = open_tab().open("dispatch", type="counter/add")
    tab.field("amount").fill("7")
    tab.find("summary", has_text="The action as JSON").click()
    raw = tab.page.get_by_label("The action as JSON", exact=True)
    tab.field("amount").fill("8")
    expect_equal(raw.input_value(), '{"type":"counter/add","payload":{"amount":8}}', "the text of the form")

    raw.fill('{"type":"counter/add","payload":{"amount":5},"schedule":{"after":3600}}')
    tab.button("Take it into the form").click()
    tab.expect_text("The form cannot hold all of this.")
    expect_equal(tab.field("amount").input_value(), "8", "the field")
    raw.fill('{"type":"counter/add","payload":{"amount":5}}')
    raw.press("Control+Enter")

    tab.expect_text("Committed as version 1")
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter/value").json, 5, "the counter")
    tab.button("Take it into the form").click()
    expect_equal(tab.field("amount").input_value(), "5", "the field of a text that it can hold")


DOCUMENT = {"tasks": {"t1": {"title": "call"}}, "list": [1, 2]}


@pytest.fixture
def document(workspace):
    server = workspace.server(domain="document")
    with server.client() as client:
        client.commit(action("document/set", {"path": "", "value": DOCUMENT}))
    return server


def state(server, base="/v1"):
    with server.client() as client:
        return client.get(f"{base}/state").json


@pytest.mark.parametrize("typed", ["", " ", "\n", '{"a":1', "'a'", "call Bob", "1 2"])
@pytest.mark.parametrize("kind", ["document/set", "document/add", "document/merge"])
def test_what_is_not_JSON_is_an_error_at_its_field_and_nothing_is_sent(document, open_tab, kind, typed):
    tab = open_tab(document).open("dispatch", type=kind)
    if kind != "document/merge":
        tab.field("path text").fill("/tasks")
    tab.field("value JSON").fill(typed)

    for name in ["Preview", "Dispatch"]:
        tab.button(name).click()
        sentence = "A value is missing." if typed.strip() == "" else "This is not JSON"
        wait_until(lambda: sentence in refusals(tab).get("value", "") or tab.page.wait_for_timeout(20), "the refusal at the field")
    expect("Committed" not in tab.text() and "It would" not in tab.text(), "something was sent")
    expect_equal(state(document), DOCUMENT, "the document")
    # Left and come back to, the field is as it was, and not "" as JSON.
    tab.link("Live").click()
    tab.expect_text("1 commit")
    tab.link("Dispatch").click()
    tab.link(kind).click()
    expect_equal(tab.field("value JSON").input_value(), typed, "the field")
    tab.field("value JSON").fill('{"title":"x"}')
    tab.button("Dispatch").click()
    tab.expect_text("Committed as version 2.")


def test_the_empty_form_changes_nothing(document, open_tab):
    tab = open_tab(document).open("dispatch", type="document/set")

    tab.button("Dispatch").click()
    tab.page.keyboard.press("Control+Enter")

    tab.expect_text("A value is missing.")
    expect_equal(state(document), DOCUMENT, "the document")


WHOLE = {
    "the form of set": ("document/set", None, "7"),
    "the form of add": ("document/add", None, "[]"),
    "the form of merge": ("document/merge", None, '{"tasks":null}'),
    "the action as JSON": ("document/set", '{"type":"document/set","payload":{"path":"","value":7}}', None),
    "a patch": ("document/set", '{"type":"document/patch","payload":{"patch":[{"op":"replace","path":"","value":7}]}}', None),
    "an array": ("document/set", '[{"type":"document/set","payload":{"path":"/a","value":1}},{"type":"document/set","payload":{"path":"","value":7}}]', None),
}


@pytest.mark.parametrize("what", WHOLE)
def test_the_whole_document_needs_a_second_click_and_is_undone_at_the_receipt(document, open_tab, what):
    kind, raw, value = WHOLE[what]
    tab = open_tab(document).open("dispatch", type=kind)
    if raw:
        tab.find("summary", has_text="The action as JSON").click()
        tab.page.get_by_label("The action as JSON", exact=True).fill(raw)
    else:
        tab.field("value JSON").fill(value)
        if kind == "document/merge":
            tab.field("Whether path is given").select_option("given")

    tab.button("Dispatch").click()
    tab.expect_text("the whole document", "#confirm")
    expect_equal(state(document), DOCUMENT, "the document after one click")
    tab.button("Not now").click()
    tab.expect_text("Nothing was sent.")
    expect_equal(state(document), DOCUMENT, "the document after a no")
    tab.button("Dispatch").click()
    tab.button("Change the whole document").click()

    tab.expect_text("Committed as version 2.")
    expect(state(document) != DOCUMENT, "nothing has changed")
    tab.button("Undo").click()
    tab.expect_text("Undone with version 3.", "#notice")
    expect_equal(state(document), DOCUMENT, "the document after the undo")
    expect_equal(tab.find("#confirm[open]").count(), 0, "questions about the undo")


def test_the_editor_of_the_whole_document_asks_as_well(document, open_tab):
    tab = open_tab(document).open("state")
    tab.find(".line").first.click()
    tab.button("Edit").click()
    tab.find("form.edit textarea").fill("{}")

    tab.button("Save").click()
    tab.expect_text("the whole document", "#confirm")
    expect_equal(state(document), DOCUMENT, "the document after one click")
    tab.button("Change the whole document").click()

    tab.expect_text("Saved as version 2.", "#notice")
    expect_equal(state(document), {}, "the document")
    tab.button("Undo").click()
    tab.expect_text("Undone with version 3.", "#notice")
    expect_equal(state(document), DOCUMENT, "the document after the undo")


def test_a_place_in_the_document_asks_nothing_and_is_undone_unless_it_has_changed_since(document, open_tab):
    tab = open_tab(document).open("dispatch", type="document/set")
    tab.field("path text").fill("/tasks/t1")
    tab.field("value JSON").fill('{"title":"mine"}')
    tab.button("Dispatch").click()
    tab.expect_text("Committed as version 2.")
    with document.client() as client:
        client.commit(action("document/set", {"path": "/tasks/t1", "value": "theirs"}))

    tab.button("Undo").click()

    tab.expect_text("Not undone: the place has changed since.", "#notice")
    expect_equal(state(document)["tasks"]["t1"], "theirs", "the place")


def test_a_domain_without_patches_has_no_undo_at_its_receipt_and_an_address_fills_no_field_with_undefined(server, open_tab):
    tab = open_tab().open("dispatch", type="tasks/add", payload="{}")
    expect_equal([tab.field(name).input_value() for name in ("id whole number", "title text")], ["", ""], "the fields")
    tab.field("id whole number").fill("5")
    tab.field("title text").fill("milk")

    tab.button("Dispatch").click()

    tab.expect_text("Committed as version 1")
    expect_equal(tab.button("Undo").count(), 0, "buttons")


def test_an_answer_of_something_else_is_not_told_as_a_commit(server, open_tab):
    tab = open_tab()
    answers = [{"status": 200, "json": {"ok": True}}, {"status": 200, "json": None}, {"status": 204}]
    tab.page.route("**/v1/actions", lambda route: route.fulfill(**answers.pop(0)) if route.request.method == "POST" and answers
                   else route.continue_())
    tab.open("dispatch", type="counter/add")
    tab.field("amount").fill("7")

    tab.button("Dispatch").click()

    tab.expect_text("The action is kept and is sent again with the same key")
    tab.expect_text("Committed as version 1.", seconds=20)
