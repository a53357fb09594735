"""A document is changed where it is seen; an empty one says what to do first."""

import json
import subprocess

import pytest

from harness.accessibility import findings
from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until
from harness.tokens import make_token


def put(client, path, value, **others):
    return client.commit(action("document/set", {"path": path, "value": value}), **others)


def state(server, path=""):
    with server.client() as client:
        return client.get(f"/v1/state{path}").json


@pytest.fixture
def document(workspace):
    server = workspace.server(domain="document")
    with server.client() as client:
        put(client, "", {"users": {"ann": {"age": 30, "name": "Ann"}}, "list": ["a"], "large": 9007199254740993})
    return server


def edit(tab, path, kind="Edit"):
    tab.open("state", path=path)
    tab.button(kind).click()
    return tab.find("form.edit")


def test_a_value_is_previewed_and_saved_where_it_is_seen(document, open_tab):
    tab = open_tab(document)
    form = edit(tab, "/users/ann/age")
    form.locator("textarea").fill("31")

    tab.button("Preview").click()
    tab.expect_text("It would change")
    expect_equal(state(document, "/users/ann/age"), 30, "the value after a preview")
    tab.button("Save").click()

    tab.expect_text("Saved as version 2", "#notice")
    tab.expect_text("31", ".line.current")
    expect_equal(state(document, "/users/ann"), {"age": 31, "name": "Ann"}, "the value")


def test_a_text_is_saved_as_a_text_and_what_is_not_json_is_refused_at_the_field(document, open_tab):
    tab = open_tab(document)
    form = edit(tab, "/users/ann/name")
    form.locator("textarea").fill('"Ann"\n31')
    tab.button("Save").click()
    tab.expect_text("Saved as version 2", "#notice")
    expect_equal(state(document, "/users/ann/name"), '"Ann"\n31', "the text")

    form = edit(tab, "/users/ann/age")
    form.locator("textarea").fill("{31")
    tab.button("Save").click()

    tab.expect_text("This is not JSON")
    expect_equal(form.locator("textarea").get_attribute("aria-invalid"), "true", "the mark of the field")
    expect_equal(state(document, "/users/ann/age"), 30, "the value that was refused")


def test_what_is_json_stays_as_it_was_typed_when_json_is_chosen_after_it(workspace, open_tab):
    server = workspace.server(domain="document")
    tab = open_tab(server).open()
    form = tab.find("form.edit")
    written, value = form.get_by_label("Written as"), form.locator("textarea")
    for typed, as_json in [("milk", '"milk"'), ('a "b"', '"a \\"b\\""'), ("31", "31"), ('{"a": 1}\n', '{"a": 1}\n'), ("", '""')]:
        written.select_option("text")
        value.fill(typed)
        written.select_option("json")
        expect_equal(value.input_value(), as_json, f"{typed!r} as JSON")
    written.select_option("text")
    expect_equal(value.input_value(), "", "the empty text without its quotes")

    value.fill('[{"name": "milk"}]')
    written.select_option("json")
    tab.button("Add").click()

    tab.expect_text('[{name: "milk"}]', ".line.current")
    expect_equal(state(server), {"greeting": [{"name": "milk"}]}, "the document")


def test_enter_saves_a_number_and_begins_a_line_of_a_text(document, open_tab):
    tab = open_tab(document)
    edit(tab, "/users/ann/age").locator("textarea").fill("31")
    tab.page.keyboard.press("Enter")
    tab.expect_text("Saved as version 2", "#notice")
    form = edit(tab, "/users/ann/name")
    form.locator("textarea").fill("31")
    tab.page.keyboard.press("Enter")
    expect_equal(form.locator("textarea").input_value(), "31\n", "the text")


def test_a_double_click_on_a_value_and_enter_edit_it(document, open_tab):
    tab = open_tab(document).open("state", path="/users/ann")
    value = tab.find('[id="line-/users/ann/name"]')
    value.dblclick()
    tab.find("form.edit textarea:focus").wait_for()
    tab.page.keyboard.press("Control+A")
    tab.page.keyboard.type("Anna")
    tab.page.keyboard.press("Control+Enter")
    tab.expect_text("Saved as version 2", "#notice")
    tab.page.keyboard.press("ArrowUp")
    tab.page.keyboard.press("Enter")
    tab.expect_text("/users/ann/age", ".side")
    tab.find("form.edit textarea:focus").wait_for()
    tab.page.keyboard.press("Control+A")
    tab.page.keyboard.type("31")
    tab.page.keyboard.press("Enter")
    tab.expect_text("Saved as version 3", "#notice")
    expect_equal(state(document, "/users/ann"), {"age": 31, "name": "Anna"}, "the value")
    tab.find('[id="line-/users"] .key').dblclick()
    expect_equal(tab.find("form.edit").count(), 0, "forms of an object")


def test_state_in_the_navigation_keeps_the_chosen_place(document, open_tab):
    tab = open_tab(document).open("state", path="/users/ann/age")
    tab.expect_text("30", ".line.current")
    state_link = tab.find("nav a", has_text="State")
    state_link.click()
    tab.expect_text("/users/ann/age", ".side h2")
    tab.find("nav a", has_text="Live").click()
    tab.expect_text("1 commit")
    state_link.click()
    tab.expect_text("/users/ann/age", ".side h2")
    tab.open("table", path="/users")
    tab.expect_text("1 to 1 of 1")
    tab.page.keyboard.press("2")
    tab.expect_text("/users", ".side h2")


SHAPES = {
    "objects of one shape": ([{"n": "a", "ok": True, "of": [1]}, {"ok": False, "n": "b", "of": []}], {"n": "", "ok": False, "of": []}),
    "a member of two kinds": ([{"n": 1}, {"n": "b"}], {"n": None}),
    "a number with many digits": ([{"n": 9007199254740993}], {"n": 0}),
    "texts": (["a", "b"], ""),
    "objects of two shapes": ([{"n": 1}, {"m": 1}], None),
    "empty objects": ([{}, {}], None),
    "none": ([], None),
    "numbers": ([1, 2], None),
}


@pytest.mark.parametrize("what", SHAPES)
def test_a_new_element_begins_in_the_shape_of_its_siblings(document, open_tab, what):
    siblings, expected = SHAPES[what]
    put_value = {f"m{index}": value for index, value in enumerate(siblings)}
    with document.client() as client:
        put(client, "/list", siblings)
        put(client, "/users", put_value)
    tab = open_tab(document)
    for path, kind in [("/list", "Add an element"), ("/users", "Add a member")]:
        form = edit(tab, path, kind)
        typed = form.locator("textarea").input_value()
        is_text = form.get_by_label("Written as").input_value() == "text"
        found = typed if is_text else json.loads(typed) if typed else None
        expect_equal((found, is_text), (expected, expected == ""), f"what the form of {path} begins with")


def test_a_member_and_an_element_that_come_have_a_line_of_their_own_in_their_place(document, open_tab):
    tab = open_tab(document).open("state", path="/list/0")
    tab.expect_text("a", ".line.current")
    with document.client() as client:
        put(client, "/zeta", 1)
        put(client, "/list/-", "b")
        put(client, "/users/bob", {})

    tab.expect_text("zeta", ".list")
    tab.find('[id="line-/users"] .twist').click()
    tab.expect_text("bob", ".list")
    # In the order of the document a screen reader reads them.
    keys = ["state", "large", "list", "0", "1", "users", "ann", "bob", "zeta"]
    expect_equal(tab.find(".line .key").all_inner_texts(), keys, "the lines")
    places = tab.page.eval_on_selector_all(".line", "lines => lines.map(line => Number(line.dataset.index))")
    expect_equal(places, list(range(len(keys))), "their places")
    with document.client() as client:
        client.commit(action("document/remove", {"path": "/list/0"}))
        client.commit(action("document/remove", {"path": "/zeta"}))
    tab.expect_text("b", ".line.current")
    expect_equal(tab.find(".line .key").all_inner_texts(), ["state", "large", "list", "0", "users", "ann", "bob"], "the lines left")


def test_a_change_of_another_client_meanwhile_is_told_and_not_overwritten(document, open_tab):
    tab = open_tab(document)
    form = edit(tab, "/users/ann/age")
    form.locator("textarea").fill("31")
    with document.client() as client:
        put(client, "/users/bob", {})
        put(client, "/users/ann/age", 40)

    tab.expect_text("Another client has changed this meanwhile. Now it is:", "form.edit")
    expect_equal(form.locator("textarea").input_value(), "31", "what was typed")
    tab.button("Save").click()
    tab.expect_text("Nothing is changed: the value is not the one that you have seen.", "form.edit")
    expect_equal(state(document, "/users/ann/age"), 40, "the value of the other client")
    tab.button("Edit the newer value").click()
    expect_equal(form.locator("textarea").input_value(), "40", "the newer value")
    form.locator("textarea").fill("41")
    tab.button("Save").click()
    tab.expect_text("Saved as version 4", "#notice")


def test_a_change_that_the_page_has_not_learned_of_is_told_when_it_is_saved(document, open_tab):
    tab = open_tab(document)
    tab.page.route("**/v1/changes*", lambda route: None)
    form = edit(tab, "/users/ann/age")
    form.locator("textarea").fill("31")
    with document.client() as client:
        client.commit(action("document/remove", {"path": "/users/ann/age"}))

    tab.button("Save").click()

    tab.expect_text("Another client has removed this meanwhile.", "form.edit")
    expect_equal(state(document, "/users/ann"), {"name": "Ann"}, "the state")
    tab.button("Keep mine").click()
    tab.button("Save").click()
    tab.expect_text("Saved as version 3", "#notice")
    expect_equal(state(document, "/users/ann/age"), 31, "the value")


def test_members_are_added_and_removed_and_a_name_that_is_taken_is_refused(document, open_tab):
    tab = open_tab(document)
    form = edit(tab, "/users", "Add a member")
    form.get_by_label("Name").fill("ann")
    form.locator("textarea").fill("1")
    tab.button("Add").click()
    tab.expect_text("There is a member of this name already")
    form.get_by_label("Name").fill("a/b~ ü")
    form.locator("textarea").fill('{"age":[]}')
    tab.button("Add").click()
    tab.expect_text("Added /users/a~1b~0 ü in version 2.", "#notice")
    expect_equal(state(document, "/users/a~1b~0%20%C3%BC"), {"age": []}, "the new member")

    form = edit(tab, "/list", "Add an element")
    form.locator("select").select_option("text")
    form.locator("textarea").fill("b")
    tab.button("Add").click()
    tab.expect_text("Added /list/1 in version 3.", "#notice")
    expect_equal(state(document, "/list"), ["a", "b"], "the list")

    tab.open("state", path="/users/ann")
    tab.button("Remove").click()
    tab.button("Remove").click()
    tab.expect_text("Removed /users/ann in version 4.", "#notice")
    expect_equal(list(state(document, "/users")), ["a/b~ ü"], "the users")


def test_a_number_beyond_2_to_the_53_keeps_its_digits_in_the_form(document, open_tab):
    tab = open_tab(document)
    form = edit(tab, "/large")
    expect_equal(form.locator("textarea").input_value(), "9007199254740993", "the number")
    form.locator("textarea").fill("9007199254740995")
    tab.button("Save").click()
    tab.expect_text("Saved as version 2", "#notice")
    expect_equal(state(document, "/large"), 9007199254740995, "the number")


def test_an_element_comes_behind_the_last_one_that_was_seen(document, open_tab):
    tab = open_tab(document)
    form = edit(tab, "/list", "Add an element")
    form.locator("textarea").fill("mine")
    with document.client() as client:
        put(client, "/list/0", "A")
        put(client, "/list/-", "theirs")

    tab.expect_text("Another client has changed this meanwhile. Now it is:", "form.edit")
    tab.button("Add").click()
    tab.expect_text("Nothing is changed: the list is not the one that you have seen.", "form.edit")
    expect_equal(state(document, "/list"), ["A", "theirs"], "the list")
    tab.button("Add it all the same").click()
    tab.expect_text("Nothing is saved yet: press Add.", "form.edit")
    tab.button("Add").click()
    tab.expect_text("Added /list/2 in version 4.", "#notice")
    expect_equal(state(document, "/list"), ["A", "theirs", "mine"], "the list")


def test_a_change_before_the_last_element_does_not_hold_up_a_new_one(workspace, open_tab):
    server = workspace.server(domain="document")
    with server.client() as client:
        put(client, "/long", ["x" * 1000] * 2000)
    tab = open_tab(server)
    form = edit(tab, "/long", "Add an element")
    form.locator("textarea").fill("1")
    with server.client() as client:
        put(client, "/long/7", "y")
    tab.expect_text("Version 2", "#status")
    tab.button("Add").click()
    tab.expect_text("Added /long/2000 in version 3.", "#notice")
    with server.client() as client:
        put(client, "/long", [])
    tab.expect_text("[]", ".line.current")
    tab.button("Add an element").click()
    form.locator("textarea").fill("2")
    with server.client() as client:
        client.commit(action("document/remove", {"path": "/long"}))
    tab.expect_text("Another client has removed this meanwhile.", "form.edit")
    tab.button("Add").click()
    tab.expect_text("Nothing is changed", "form.edit")
    expect_equal(state(server), {}, "the document")


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_member_is_added_to_an_object_that_is_there_and_has_none_of_its_name(document, open_tab, is_followed):
    tab = open_tab(document)
    if not is_followed:
        tab.page.route("**/v1/changes*", lambda route: None)
    form = edit(tab, "/users", "Add a member")
    form.get_by_label("Name").fill("bob")
    form.locator("textarea").fill("1")
    with document.client() as client:
        put(client, "/users/bob", 2)
    if is_followed:
        tab.expect_text("There is a member of this name now. It is:\n\n2", "form.edit")
    tab.button("Add").click()
    tab.expect_text("There is a member of this name already.", "form.edit")
    expect_equal(state(document, "/users/bob"), 2, "the member of the other client")

    with document.client() as client:
        client.commit(action("document/remove", {"path": "/users"}))
    if is_followed:
        tab.expect_text("Another client has removed this meanwhile.", "form.edit")
    tab.button("Add").click()
    tab.expect_text("Another client has removed this meanwhile.", "form.edit")
    expect("users" not in state(document), "the object has come back")


def test_what_is_no_number_of_seconds_is_refused_at_the_field(document, open_tab):
    tab = open_tab(document)
    form = edit(tab, "/users/ann/age")
    seconds = tab.field("Expires after")
    for text in ["10s", "-1", "0", "1e999", "soon"]:
        seconds.fill(text)
        tab.button("Save").click()
        tab.expect_text("write a number of seconds", "form.edit")
        expect_equal(seconds.get_attribute("aria-invalid"), "true", f"the mark of the field with {text}")
    expect_equal(tab.page.evaluate("document.activeElement.matches('[inputmode=decimal]')"), True, "the field has the focus")
    seconds.fill(" 3600 ")
    form.locator("textarea").fill("31")
    tab.button("Save").click()
    tab.expect_text("Saved as version 2", "#notice")
    with document.client() as client:
        expect_equal([entry["place"] for entry in client.get("/v1/schedule").json["schedule"]], ["/users/ann/age"], "what expires")


NUMBERS = '"large":12345678901234567890,"mixed":9007199254740993.5,"part":0.1234567890123456789,"tiny":-1.5e-07'


@pytest.mark.parametrize("is_followed", [False, True])
def test_what_is_not_edited_keeps_its_bytes(document, open_tab, is_followed):
    body = ('{"type":"document/set","payload":{"path":"/numbers","value":{%s,"name":"x"}}}' % NUMBERS).encode()
    with document.client() as client:
        if not is_followed:
            client.commit(body)
        tab = open_tab(document).open("state", path="/numbers")
        tab.expect_text("Pointer", ".side")
        if is_followed:
            client.commit(body)
        tab.expect_text("0.1234567890123456789", ".side")
        tab.expect_text("numbers", '.list [id="line-/numbers"]')
        tab.button("Edit").click()
        area = tab.find("form.edit textarea")
        typed = area.input_value()
        area.fill(typed.replace('"x"', "1e400"))
        tab.button("Save").click()
        tab.expect_text("out of the range of 64-bit floating point", "form.edit")
        area.fill(typed.replace('"x"', '"another"'))
        tab.button("Save").click()
        tab.expect_text("Saved as version 3", "#notice")
        kept = client.get("/v1/state/numbers").body.decode()
    for member in NUMBERS.split(","):
        expect(member in kept, f"{member} is not in {kept}")
    expect('"another"' in kept, kept)


def test_a_place_that_is_fetched_while_it_changes_shows_the_newer_value(document, open_tab):
    tab = open_tab(document)
    held = []

    def hold(route):
        held.append((route, route.fetch())) if not held else route.continue_()

    tab.page.route("**/v1/state", lambda route: hold(route) if route.request.method == "GET" else route.continue_())
    tab.open("state", path="/users/ann/age")
    wait_until(lambda: held or tab.page.wait_for_timeout(20), "the state is fetched")
    with document.client() as client:
        put(client, "/users/ann/age", 77)
    tab.expect_text("Version 2", "#status")
    route, answer = held[0]
    expect_equal(answer.json()["users"]["ann"]["age"], 30, "the value in the answer that is late")

    route.fulfill(response=answer)

    tab.expect_text("77", ".line.current")
    tab.expect_text("77", ".side pre.json")


def test_the_keys_e_and_a_open_the_forms_and_escape_leaves_them(document, open_tab):
    tab = open_tab(document).open("state", path="/users/ann/age")
    tab.expect_text("30", ".line.current")
    tab.find(".list").focus()
    tab.page.keyboard.press("e")
    tab.page.keyboard.press("Control+A")
    tab.page.keyboard.type("32")
    tab.page.keyboard.press("Control+Enter")
    tab.expect_text("Saved as version 2", "#notice")
    tab.page.keyboard.press("Delete")
    tab.expect_text("The history keeps it.", "form.edit")
    tab.page.keyboard.press("Escape")
    expect_equal(tab.find("form.edit").count(), 0, "forms")
    expect_equal(state(document, "/users/ann/age"), 32, "the value")


def test_what_a_token_may_not_dispatch_or_is_past_has_no_button(workspace, open_tab):
    data = workspace.path("protected")
    token = make_token(workspace, data, "bot", "--read", "*", "--others", "--dispatch", "document/merge")
    ops = make_token(workspace, data, "ops", "--all")
    server = workspace.server(data=data, domain="document")
    with server.client() as client:
        put(client, "/a", 1, Authorization=f"Bearer {ops}")
        put(client, "/a", 2, Authorization=f"Bearer {ops}")
    tab = open_tab(server).open("state", path="/a")
    for each, buttons in [(token, 0), (ops, 1)]:
        tab.field("Token").fill(each)
        tab.button("Open").click()
        tab.expect_text("Value")
        expect_equal(tab.button("Edit").count(), buttons, "buttons to edit")
        if each == token:
            tab.button("Sign out", exact=False).click()
    tab.button("One version back").click()
    tab.expect_text("As it was at version 1")
    expect_equal(tab.button("Edit").count(), 0, "buttons to edit the past")


def test_an_empty_document_says_what_it_is_and_takes_its_first_member(workspace, open_tab):
    server = workspace.server(domain="document", name="staging <b>")
    tab = open_tab(server).open()
    tab.expect_text("This server keeps one JSON document")
    expect_equal(tab.text("#place").split("\n")[0], "staging <b>", "the name")
    expect(f":{server.port}" in tab.text("#place"), "the head has the address")

    tab.button("Preview").click()
    tab.expect_text("It would change")
    tab.button("Add").click()

    tab.expect_text("hello", ".line.current")
    expect_equal(state(server), {"greeting": "hello"}, "the document")
    tab.open("live")
    tab.expect_text("1 commit")
    expect("This server keeps" not in tab.text(), "the first words are gone")


def test_the_first_words_of_another_server_lead_to_its_actions(server, open_tab):
    tab = open_tab().open()
    tab.expect_text("Nothing has happened yet. Begin with a first action")
    tab.link("Choose an action").click()
    tab.expect_text("Choose the action to dispatch.")


def test_dispatching_to_the_present_asks_once_a_session_where_the_installation_says_so(workspace, open_tab):
    server = workspace.server(domain="document", page_confirm="on", name="production")
    tab = open_tab(server).open()
    tab.expect_text("This server keeps one JSON document")

    tab.button("Add").click()
    tab.expect_text("This is production at", "#confirm")
    tab.button("Not now").click()
    expect_equal(state(server), {}, "the document")
    tab.button("Add").click()
    tab.button("Change it").click()

    tab.expect_text("hello", ".line.current")
    tab.page.reload()
    form = edit(tab, "/greeting")
    form.locator("textarea").fill("again")
    tab.button("Save").click()
    tab.expect_text("Saved as version 2", "#notice")
    with server.client() as client:
        identity = client.get("/v1").json
    expect_equal((identity["name"], identity["page_confirm"]), ("production", True), "what GET /v1 says")


def test_who_has_changed_the_value_meanwhile_is_named_and_mine_is_not_saved_yet(workspace, open_tab):
    data = workspace.path("named")
    tokens = {name: make_token(workspace, data, name, "--all") for name in ["ann", "bob"]}
    server = workspace.server(data=data, domain="document")

    def write(name, value):
        with server.client() as client:
            put(client, "/a", value, Authorization=f"Bearer {tokens[name]}")

    write("ann", 1)
    tab = open_tab(server).open("state", path="/a")
    tab.field("Token").fill(tokens["ann"])
    tab.button("Open").click()
    form = edit(tab, "/a")
    form.locator("textarea").fill("2")
    tab.button("Save").click()
    tab.expect_text("Saved as version 2.", "#notice")
    form = edit(tab, "/a")
    expect_equal(tab.text("#notice"), "", "what is said of the edit before")
    form.locator("textarea").fill("4")

    write("bob", 3)

    tab.expect_text("bob has changed this meanwhile. Now it is:", "form.edit")
    expect_equal(findings(tab), [], "the findings at the warning")
    tab.button("Keep mine").click()
    tab.expect_text("Nothing is saved yet: press Save.", "form.edit")
    with server.client() as client:
        expect_equal(client.get("/v1/state/a", Authorization=f"Bearer {tokens['ann']}").json, 3, "the value before Save")
        tab.button("Save").click()
        tab.expect_text("Saved as version 4.", "#notice")
        expect_equal(client.get("/v1/state/a", Authorization=f"Bearer {tokens['ann']}").json, 4, "the value after it")


def test_what_is_typed_stays_with_its_place_until_it_is_saved_or_given_up(document, open_tab):
    tab = open_tab(document)
    form = edit(tab, "/users/ann/age")
    typed = lambda: form.locator("textarea").input_value()
    form.locator("textarea").fill("31")
    tab.find('[id="line-/users/ann/name"]').click()
    tab.expect_text("/users/ann/name", ".side h2")
    tab.expect_text("Not saved yet: what you have typed at /users/ann/age stays there.", "#notice")
    expect_equal(form.count(), 0, "forms of another place")
    tab.find('[id="line-/users/ann/age"]').click()
    expect_equal(typed(), "31", "what was typed, after the way back")
    tab.field("Go to").fill("Ann")
    tab.button("Go").click()
    tab.expect_text("/users/ann/age stays there.", "#notice")
    tab.find(".places a", has_text="/users/ann/name").click()
    tab.find('[id="line-/users/ann/age"]').click()
    expect_equal(typed(), "31", "what was typed, after a search")

    # Neither an earlier version nor another view takes it, and a key does not begin the form again.
    tab.button("One version back").click()
    tab.expect_text("As it was at version 0")
    expect_equal(form.count(), 0, "forms of the past")
    tab.button("Now").click()
    expect_equal(typed(), "31", "what was typed, after a look at the past")
    tab.find("nav a", has_text="Live").click()
    tab.expect_text("1 commit")
    with document.client() as client:
        put(client, "/users/ann/age", 40)
    tab.expect_text("2 commits")
    tab.find("nav a", has_text="State").click()
    tab.expect_text("Another client has changed this meanwhile. Now it is:", "form.edit")
    tab.find(".list").focus()
    tab.page.keyboard.press("e")
    expect_equal(typed(), "31", "what was typed, after another view")
    asked = []
    tab.page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    tab.page.evaluate("location.reload()")
    wait_until(lambda: asked or tab.page.wait_for_timeout(20), "the browser asks before a reload")
    expect_equal((asked, typed()), (["beforeunload"], "31"), "what is asked, and what was typed")

    tab.button("Keep mine").click()
    tab.button("Save").click()
    tab.expect_text("Saved as version 3", "#notice")
    expect_equal(state(document, "/users/ann/age"), 31, "the value")
    tab.button("Edit").click()
    form.locator("textarea").fill("32")
    tab.button("Cancel").click()
    tab.find('[id="line-/users/ann/name"]').click()
    tab.find('[id="line-/users/ann/age"]').click()
    tab.expect_text("/users/ann/age", ".side h2")
    expect_equal((form.count(), tab.text("#notice")), (0, ""), "forms that were given up, and what is said of them")


@pytest.mark.parametrize("typed", ['{"a": 1}', "[]", "31", "true", "null", '"quoted"'])
def test_json_that_is_typed_as_text_is_named_and_one_click_makes_it_json(workspace, open_tab, typed):
    server = workspace.server(domain="document")
    tab = open_tab(server).open()
    form = tab.find("form.edit")
    expect_equal(form.get_by_label("Written as").input_value(), "text", "how the first form begins")
    form.locator("textarea").fill("hello {")
    expect("looks like JSON" not in form.inner_text(), "a text is taken for JSON")

    form.locator("textarea").fill(typed)

    tab.expect_text("This looks like JSON. As Text it becomes a string.", "form.edit")
    expect_equal(findings(tab), [], "the findings at the hint")
    tab.button("Use JSON").click()
    expect("looks like JSON" not in form.inner_text(), "the hint is still there")
    tab.button("Add").click()
    tab.expect_text("Added /greeting in version 1.", "#notice")
    expect_equal(state(server), {"greeting": json.loads(typed)}, "the document")


def test_the_lines_to_copy_are_of_the_present_while_an_edit_is_open(document, open_tab):
    tab = open_tab(document)
    edit(tab, "/users/ann/age").locator("textarea").fill("31")
    for path, value in [("/users/ann/name", "Anna"), ("/users/ann/age", 40)]:
        with document.client() as client:
            cursor = put(client, path, value)["cursor"]
            tag = client.get("/v1/state/users/ann/age").fields["etag"]
        tab.expect_text(cursor, ".side")
        tab.expect_text(f"If-None-Match: {tag}", ".side")


def test_a_line_to_copy_waits_for_the_next_change_of_the_value(document, open_tab):
    tab = open_tab(document).open("state", path="/users/ann/name")
    tab.expect_text("Wait for its next change", ".side")
    line = tab.find(".copyable", has_text="Wait for its next change").locator("code").inner_text()
    process = subprocess.Popen(["bash", "-c", line + " -sS"], stdout=subprocess.PIPE, text=True)
    with document.client() as client:
        put(client, "/users/ann/age", 31)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        put(client, "/users/ann/name", "Anna")

    expect_equal(json.loads(process.communicate(timeout=10)[0]), "Anna", f"the answer to {line}")
    tab.open("state", path="/users/ann/name", at=f"{cursor_of(document).partition('.')[0]}.1")
    tab.expect_text("As it was at version 1.", ".side")
    expect("Wait for" not in tab.text(".side"), "the past changes")


def cursor_of(server):
    with server.client() as client:
        return client.get("/v1").json["cursor"]


def test_cancel_ends_what_is_under_way_and_a_removal_outlives_the_choice_of_another_place(document, open_tab):
    tab = open_tab(document)
    held = []
    tab.page.route("**/v1/actions", lambda route: held.append(route) if route.request.method == "POST" else route.continue_())
    form = edit(tab, "/users/ann/age")
    ended = []
    tab.page.on("requestfailed", lambda request: ended.append(request.url))
    form.locator("textarea").fill("31")
    tab.button("Save").click()
    wait_until(lambda: held or tab.page.wait_for_timeout(20), "the action is sent")

    tab.button("Cancel").click()

    tab.expect_text("Given up. Whether it was committed is shown by the commits.", "#notice")
    wait_until(lambda: [url for url in ended if url.endswith("/v1/actions")] or tab.page.wait_for_timeout(20), "the request ends")
    held.clear()
    tab.button("Remove").click()
    form.locator("button.primary").click()
    wait_until(lambda: held or tab.page.wait_for_timeout(20), "the removal is sent")
    tab.find('[id="line-/users/ann/name"]').click()
    tab.expect_text("Not removed yet: the form at /users/ann/age stays there.", "#notice")
    held.pop().continue_()
    tab.expect_text("Removed /users/ann/age", "#notice")
