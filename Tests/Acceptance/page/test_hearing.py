"""The page as a person hears it who cannot see it: headings, announcements, and where the focus is."""

import pytest

from harness.actions import action, add
from harness.expectations import expect, expect_equal, wait_until

# Every text that a screen reader says by itself, since the page was opened.
LISTEN = """window.spoken = []
new MutationObserver(changes => {
    const live = new Set(changes.map(({ target }) => (target.closest ? target : target.parentElement)
        ?.closest('[role=status], [role=alert], [aria-live]')))
    for (const region of live) if (region?.innerText.trim()) window.spoken.push(region.innerText.trim())
}).observe(document, { childList: true, characterData: true, subtree: true })"""

FOCUS = """() => { const { localName, innerText, id } = document.activeElement
    return [localName, document.activeElement.getAttribute('aria-label') || (innerText ?? '').split('\\n')[0] || id] }"""

VIEWS = {
    "live": ({}, "3 commits"), "state": ({"path": "/users/ann/age"}, "30"), "table": ({"path": "/users"}, "1 to 2 of 2"),
    "dispatch": ({"type": "document/set"}, "Dispatch"), "pending": ({}, "in 59 minutes"), "forks": ({}, "Make the fork"),
    "bisect": ({"path": "/users", "test": "exists"}, "It holds since"), "status": ({}, "Who waits where"),
    "docs": ({"page": "Guides/Page.md"}, "The page"), "operations": ({"id": "getState"}, "Problems"),
}


@pytest.fixture
def document(workspace):
    server = workspace.server(domain="document")
    with server.client() as client:
        client.commit(action("document/set", {"path": "/users", "value": {"ann": {"age": 30}, "bob": {"age": 31}}}))
        client.commit(action("document/set", {"path": "/list", "value": ["a"]}))
        client.commit(action("document/set", {"path": "/tea", "value": 1}, schedule={"after": 3600, "name": "tea"}))
    return server


@pytest.fixture
def tab(document, open_tab):
    tab = open_tab(document)
    tab.page.add_init_script(LISTEN)
    return tab


def focus(tab):
    return tuple(tab.page.evaluate(FOCUS))


def expect_focus(tab, name, text):
    wait_until(lambda: focus(tab) == (name, text) or tab.page.wait_for_timeout(20),
               f"the focus is at {(name, text)}; it is at {focus(tab)}")


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_headings_in_order_says_nothing_twice_and_lets_the_focus_go(tab, view):
    parameters, text = VIEWS[view]
    tab.open(view, **parameters)
    tab.expect_text(text)
    tab.page.wait_for_timeout(500)

    levels = tab.page.evaluate("""() => [...document.querySelectorAll('h1, h2, h3, h4, h5')]
        .filter(each => each.checkVisibility()).map(each => [Number(each.localName[1]), each.innerText])""")
    expect_equal(levels[0][0], 1, "the first heading")
    for (before, _), (level, title) in zip(levels, levels[1:]):
        expect(level <= before + 1, f"{title!r} of level {level} is behind one of level {before}")
    expect(any(level == 2 for level, _ in levels), "the view has no heading")

    tab.page.evaluate("window.spoken.length = 0")
    tab.page.wait_for_timeout(4500)
    expect_equal(tab.page.evaluate("window.spoken"), [], "what is said while nothing happens")

    reached = set()
    for _ in range(400):
        tab.page.keyboard.press("Tab")
        # A browser's own controls take their turn behind the last element.
        if reached and tab.page.evaluate("document.activeElement.matches('body, .skip')"):
            break
        reached.add(tab.page.evaluate("document.activeElement.outerHTML.slice(0, 300)"))
    else:
        raise AssertionError("Tab never leaves the page")
    expect(len(reached) > 8, "what Tab reaches:", reached)


def test_a_change_of_the_chosen_value_is_said_once(document, tab):
    tab.open("state", path="/users/ann/age")
    tab.expect_text("30", ".line.current")
    with document.client() as client:
        client.commit(action("document/set", {"path": "/users/bob/age", "value": 50}))
        tab.expect_text("Version 4", "#status")
        client.commit(action("document/set", {"path": "/users/ann/age", "value": 31}))
    tab.expect_text("31", ".line.current")
    tab.page.wait_for_timeout(1500)
    expect_equal(tab.page.evaluate("window.spoken"), ["/users/ann/age is now 31"], "what is said")

    with document.client() as client:
        for age in range(40, 60):
            client.commit(action("document/set", {"path": "/users/ann/age", "value": age}))
        client.commit(action("document/remove", {"path": "/users/ann"}))
    tab.expect_text("Nothing is here now", ".side")
    tab.page.wait_for_timeout(1500)
    spoken = tab.page.evaluate("window.spoken")
    expect(len(spoken) <= 4 and spoken[-1] == "/users/ann/age is no longer there", spoken)


def test_the_answer_to_an_action_is_said_and_its_button_keeps_the_focus(document, tab):
    tab.open("state", path="/users/ann/age")
    tab.button("Edit").click()
    expect_equal(focus(tab)[0], "textarea", "the focus in a form that opens")
    tab.page.keyboard.type("7")
    tab.button("Preview").focus()
    tab.page.keyboard.press("Enter")
    tab.expect_text("It would change", "form.edit")
    expect_focus(tab, "button", "Preview")
    expect(any(text.startswith("It would change") for text in tab.page.evaluate("window.spoken")), tab.page.evaluate("window.spoken"))
    tab.button("Save").focus()
    tab.page.keyboard.press("Enter")
    tab.expect_text("Saved as version 4.", "#notice")
    expect_focus(tab, "div", "State")
    expect("Saved as version 4." in tab.page.evaluate("window.spoken"), tab.page.evaluate("window.spoken"))
    wait_until(lambda: tab.text(".side pre.json") != "30" or tab.page.wait_for_timeout(20), "the new value is shown")
    tab.button("Who changed this last?").focus()
    tab.page.keyboard.press("Enter")
    tab.expect_text("Last changed by")
    expect_focus(tab, "button", "Who changed this last?")


def test_what_is_taken_away_gives_the_focus_to_what_is_said(document, tab):
    tab.open("pending")
    tab.button("Take it back: tea").focus()
    tab.page.keyboard.press("Enter")
    tab.expect_text("tea is taken back")
    expect_focus(tab, "div", "tea is taken back, with version 4.")
    tab.open("forks")
    tab.button("Insert an action").click()
    tab.button("Remove").focus()
    tab.page.keyboard.press("Enter")
    expect_focus(tab, "button", "Insert an action")
    tab.field("To version").fill("1")
    tab.button("Make the fork").click()
    tab.expect_text("Fork ")
    tab.open("forks")
    end = tab.page.get_by_role("button", name="End it")
    end.focus()
    tab.page.wait_for_timeout(6000)
    expect(focus(tab)[1].startswith("End it"), "a list that is read again takes the focus away", focus(tab))
    tab.page.keyboard.press("Enter")
    tab.expect_text("There is no fork yet.")
    wait_until(lambda: focus(tab)[0] == "div" or tab.page.wait_for_timeout(20), "the list has the focus")


def test_a_link_into_another_view_takes_the_focus_to_its_heading(tab):
    tab.open("state", path="/users/ann/age")
    for name, heading in [("All commits of it", "Commits"), ("State", "State"), ("When did this happen?", "When did this happen?")]:
        tab.expect_text(name, "body")
        tab.link(name).focus()
        tab.page.keyboard.press("Enter")
        # A link of the head stays where it is; one of the view before is gone.
        expect_focus(tab, "a" if name == "State" else "h2", heading)
        if name == "State":
            tab.find('.line[aria-level="2"]', has_text="list").click()


def test_a_commit_that_is_opened_is_named(tab):
    tab.open("live")
    tab.expect_text("3 commits")
    tab.find(".list").focus()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    tab.expect_text("What it changed", ".side")
    expect_focus(tab, "div", "Commits, newest first")
    tab.page.wait_for_timeout(1200)
    expect_equal(tab.page.evaluate("window.spoken"), ["Commit 2 is shown: document/set"], "what is said")
    expect_equal(tab.find('[aria-current="true"][role="option"]').count(), 1, "lines that are the shown one")


def test_a_part_of_the_tree_is_numbered_among_its_siblings(tab):
    tab.open("state", path="/users/bob")
    tab.expect_text("bob", ".line.current")
    line = tab.find(".line.current")
    expect_equal([line.get_attribute(f"aria-{name}") for name in ["level", "posinset", "setsize"]], ["3", "2", "2"], "its place")


def test_on_a_phone_the_focus_goes_with_what_is_shown(document, open_tab):
    tab = open_tab(document, viewport={"width": 390, "height": 844}).open("state")
    tab.expect_text("users", ".list")
    tab.find('.line[aria-level="2"]', has_text="users").click()
    tab.expect_text("As a table")
    expect(tab.page.evaluate("document.activeElement.closest('.side') !== null"), "the focus is not in the place:", focus(tab))
    tab.button("← State").click()
    expect_focus(tab, "div", "State")


def test_commits_that_come_are_not_said_in_a_list_or_a_table(document, tab):
    tab.open("table", path="/users")
    tab.expect_text("1 to 2 of 2")
    tab.page.wait_for_timeout(1500)
    tab.page.evaluate("window.spoken.length = 0")
    with document.client() as client:
        client.commit(action("document/set", {"path": "/users/eve", "value": {"age": 32}}))
        tab.expect_text("1 to 3 of 3")
        tab.page.wait_for_timeout(1500)
        expect_equal(tab.page.evaluate("window.spoken"), [], "what is said of a row that comes")

        tab.open("live")
        tab.expect_text("4 commits")
        tab.find(".list").focus()
        client.commit(action("document/set", {"path": "/users/eve/age", "value": 33}))
        tab.expect_text("5 commits")
    expect_equal(tab.find(".list").get_attribute("aria-activedescendant"), "line-4", "the line that has the focus")
