"""What a stranger stumbled over, who had only the screen and the keyboard."""

from harness.actions import action, add
from harness.expectations import expect, expect_equal


def test_the_link_to_the_content_moves_the_focus_and_keeps_the_view(server, open_tab):
    tab = open_tab()
    tab.open("bisect", path="/counter/value")
    tab.expect_text("When did this happen")
    address = tab.page.url
    tab.page.locator(".skip").focus()
    tab.page.keyboard.press("Enter")
    expect_equal(tab.page.url, address, "the address")
    expect_equal(tab.page.evaluate("document.activeElement.id"), "main", "what has the focus")
    tab.expect_text("When did this happen")


def test_an_action_is_chosen_and_refused_by_the_keyboard_alone(server, open_tab):
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 7, "title": "there"}))
    tab = open_tab()
    tab.open("dispatch")
    page = tab.page
    page.get_by_label("Find an action").focus()
    page.keyboard.type("tasks/ad")
    page.keyboard.press("ArrowDown")
    expect("tasks/add" in page.evaluate("document.activeElement.textContent"), "the first action has the focus")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.closest('form.action') !== null")
    page.keyboard.type("7")
    page.keyboard.press("Control+Enter")
    tab.expect_text("Refused: nothing was changed.")
    page.wait_for_function("() => document.activeElement.closest('form.action') !== null")
    page.keyboard.type("8")
    expect("Refused" not in tab.text("main"), "the answer is of what was there before")
    # The way between views keeps the focus where it is.
    page.locator("nav a", has_text="State").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.textContent === 'State'")


def test_a_browser_without_storage_has_keys_and_their_switch(server, open_tab):
    tab = open_tab()
    tab.page.add_init_script("""for (const name of ["localStorage", "sessionStorage"]) {
        Object.defineProperty(window, name, { get() { throw new DOMException("not allowed", "SecurityError") } })
    }""")
    tab.open("live")
    tab.expect_text("No commit yet")
    tab.page.keyboard.press("2")
    tab.expect_text("The present")
    tab.page.keyboard.press("?")
    tab.field("Keys without Ctrl work").uncheck()
    tab.button("Close").click()

    tab.page.keyboard.press("1")

    expect_equal(tab.page.evaluate("location.hash.slice(0, 7)"), "#/state", "the view in the address")


def test_since_when_a_value_is_what_it_is_takes_one_click(server, open_tab):
    with server.client() as client:
        for _ in range(9):
            client.commit(add(1))
        cursor = client.get("/v1").json["cursor"].partition(".")[0]
    tab = open_tab()
    tab.open("state", path="/counter/value", at=f"{cursor}.5")
    tab.expect_text("As it was at version 5.")
    tab.page.get_by_text("When did this happen").click()
    tab.expect_text("It holds since version 5")
    for test, value, version in (("minimum", "3.5", 4), ("maximum", "9", None)):
        tab.open("bisect", path="/counter/value", test=test, value=value)
        tab.expect_text(f"It holds since version {version}" if version else "It holds at the first version already")
    tab.open("bisect", path="/counter/value", test="value", value="4")
    tab.expect_text("Where it did once, give a version at which it held as To version.")
