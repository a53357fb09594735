"""Every view by axe's rules, in light, dark and on a phone; by the keyboard alone; without motion that was not asked for."""

import pytest

from harness.accessibility import LOOKS, findings, judge_view
from harness.actions import action, add, bulk
from harness.expectations import expect, expect_equal
from harness.tabs import Tab
from harness.workspace import Workspace

VIEWS = {
    "live": ("live", {}, "commits"),
    "commit": ("live", {"id": "rename-1"}, "What it changed"),
    "state": ("state", {"path": "/tasks/entities/2/title"}, "Value"),
    "tree": ("state", {}, "The present"),
    "table": ("table", {"path": "/tasks/entities", "sort": "-/title"}, "of 29"),
    "pending": ("pending", {}, "Nothing is pending"),
    "dispatch": ("dispatch", {"type": "canvas/addObject"}, "Dispatch"),
    "forks": ("forks", {}, "Make a fork"),
    "bisect": ("bisect", {"path": "/navigation/route", "test": "repeats"}, "It holds since"),
    "docs": ("docs", {"page": "Reference/Contract/Contract.md", "q": "cursor"}, "Query parameters"),
    "operations": ("operations", {"id": "getState"}, "Problems"),
    "status": ("status", {}, "Who waits where"),
}


@pytest.fixture(scope="module")
def full(pytestconfig):
    """A server with something of everything."""
    workspace = Workspace(pytestconfig.storekeeper, pytestconfig.seed)
    server = workspace.server()
    with server.client() as client:
        bulk(client, [action("tasks/add", {"id": number, "title": f"Water plant {number}"}) for number in range(1, 30)])
        client.commit(action("tasks/rename", {"id": 2, "title": "Call Ada"}, id="rename-1"))
        client.commit(action("navigation/set", {"route": ["home", "list"]}))
        client.commit(action("navigation/push", {"segment": "home"}))
        client.commit(action("films/load"), Prefer="wait=5")
        bulk(client, [add(number) for number in range(30)])
    yield server
    workspace.close()


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_without_a_finding_of_axe_and_fits_its_width(full, browser, view, look):
    name, parameters, text = VIEWS[view]
    tab = Tab(browser, full, **LOOKS[look])
    tab.open(name, **parameters)
    tab.expect_text(text)
    tab.page.wait_for_timeout(300)
    judge_view(tab, f"{view}-{look}")


@pytest.mark.parametrize("look", LOOKS)
def test_the_forms_of_a_document_are_without_a_finding_and_fit_the_width(workspace, browser, look):
    server = workspace.server(domain="document", page_confirm="on")
    tab = Tab(browser, server, **LOOKS[look]).open()
    found = []

    def see(text, name):
        tab.expect_text(text)
        tab.page.wait_for_timeout(200)
        tab.keep(f"{name}-{look}")
        wide = tab.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        found.extend([f"{name}: {each}" for each in findings(tab) + [f"{wide} pixels wider than the window"] * (wide > 0)])

    see("This server keeps one JSON document", "welcome")
    tab.button("Add").click()
    tab.expect_text("Change the present?", "#confirm")
    tab.keep(f"confirm-{look}")
    found.extend(findings(tab))
    tab.button("Change it").click()
    tab.expect_text("hello", ".side")
    tab.button("Edit").click()
    tab.find("form.edit textarea").fill("good day")
    tab.button("Preview").click()
    see("It would change", "edit")
    with server.client() as client:
        client.commit(action("document/set", {"path": "/greeting", "value": "hi"}))
        client.commit(action("document/set", {"path": "/tea", "value": 1}, schedule={"after": 3600, "name": "tea"}))
    see("Another client has changed this meanwhile.", "told")
    tab.open("pending")
    see("in 59 minutes", "pending-one")
    tab.open("state", at=client_cursor(server, 1), path="/greeting")
    tab.expect_text("As it was at version 1", ".side")
    tab.button("Preview").click()
    see("It would change", "restore")
    tab.open("table", path="", filter="@.x = 1")
    see("equality is ==", "fault")

    expect(not found, "\n".join(found))
    tab.judge()
    tab.context.close()


def client_cursor(server, version):
    with server.client() as client:
        return f"{client.get('/v1').json['epoch']}.{version}"


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_has_targets_of_44_pixels(full, browser, view):
    name, parameters, text = VIEWS[view]
    tab = Tab(browser, full, **LOOKS["phone"])
    tab.open(name, **parameters)
    tab.expect_text(text)
    tab.page.wait_for_timeout(200)

    small = tab.page.evaluate("""() => [...document.querySelectorAll(
        'button, .button, select, textarea, summary, input:not([type=checkbox]), nav a, .types a, .line, .twist, th > a')]
        .filter(each => each.checkVisibility() && (each.getBoundingClientRect().height < 43.9 || each.offsetWidth < 43.9))
        .map(each => `${each.outerHTML.slice(0, 90)} ${each.offsetWidth}x${each.offsetHeight}`)""")

    expect(not small, "\n".join(small[:5]))
    tab.context.close()


def test_a_phone_shows_every_name_of_a_view(full, browser):
    for look in ["phone", "narrow"]:
        tab = Tab(browser, full, **LOOKS[look]).open("state")
        tab.expect_text("The present")
        names = tab.find("nav a")
        hidden = names.evaluate_all("""names => names.filter(name => {
            const { left, right } = name.getBoundingClientRect()
            return left < 0 || right > innerWidth
        }).map(name => name.textContent)""")
        expect_equal((hidden, names.count()), ([], 9), f"names outside the window, and all ({look})")
        tab.context.close()


# The contrast of the text of an element with the background that it is on.
CONTRAST = """element => {
    const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true })
    const rgb = color => {
        pen.clearRect(0, 0, 1, 1)
        pen.fillStyle = color
        pen.fillRect(0, 0, 1, 1)
        return [...pen.getImageData(0, 0, 1, 1).data]
    }
    const light = color => rgb(color).slice(0, 3).map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0)
    const contrast = each => {
        let place = each
        while (place && rgb(getComputedStyle(place).backgroundColor)[3] < 255) place = place.parentElement
        const [low, high] = [getComputedStyle(each).color, place ? getComputedStyle(place).backgroundColor : "white"]
            .map(light).sort((one, other) => one - other)
        return (high + 0.05) / (low + 0.05)
    }
    const texts = [element, ...element.querySelectorAll("*")].filter(each =>
        [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
    return Math.min(...texts.map(contrast))
}"""


@pytest.mark.parametrize("look", ["light", "dark"])
def test_what_is_under_the_mouse_or_has_the_focus_is_readable(workspace, browser, look):
    server = workspace.server(domain="document")
    with server.client() as client:
        for value in range(3):
            client.commit(action("document/set", {"path": "/a", "value": {"b": value}}))
    tab = Tab(browser, server, reduced_motion="reduce", **LOOKS[look])
    seen, unreadable = set(), []
    for view, parameters, text in [
        ("state", {"path": "/a/b"}, "Value"),
        ("state", {"path": "/a/b", "at": client_cursor(server, 1)}, "Make version 1 the present"),
        ("live", {}, "Choose a commit"),
        ("dispatch", {"type": "document/set"}, "Dispatch"),
        ("table", {"path": ""}, "of 1"),
        ("forks", {}, "Make the fork"),
        ("docs", {}, "Docs"),
        ("operations", {"id": "getState"}, "Problems"),
        ("status", {}, "Who waits where"),
    ]:
        tab.open(view, **parameters)
        tab.expect_text(text, "body")
        if "at" not in parameters and view == "state":
            tab.button("Edit").click()
            tab.button("Save").wait_for()
        tab.page.wait_for_timeout(300)
        for element in tab.find(":is(header, main) :is(button, .button, a, summary, .line)").element_handles():
            kind = element.evaluate("each => [each.localName, ...each.classList, each.closest('[id]')?.id, each.getAttribute('aria-current'), each.disabled].join(' ')")
            if kind in seen or not element.is_visible() or element.is_disabled():
                continue
            seen.add(kind)
            element.hover(force=True)
            found = element.evaluate(CONTRAST)
            element.focus()
            found = min(found, element.evaluate(CONTRAST))
            if found < 4.5:
                unreadable.append(f"{view}: {kind} {element.inner_text()[:20]!r}: {found:.2f}")
    expect(len(seen) > 20, f"only {len(seen)} kinds were looked at")
    expect(not unreadable, "\n".join(unreadable))
    tab.context.close()


def test_the_refused_form_the_compared_fork_the_token_and_the_keys_are_without_a_finding(full, workspace, open_tab):
    tab = open_tab(full).open("dispatch", type="tasks/add")
    tab.field("id whole number").fill("2")
    tab.field("title text").fill("again")
    tab.button("Dispatch").click()
    tab.expect_text("Refused")
    tab.keep("refused")
    expect_equal(findings(tab), [], "the findings at a refused form")
    tab.open("live", id="rename-1")
    tab.button("See it without this").click()
    tab.expect_text("1 difference")
    tab.keep("compare")
    expect_equal(findings(tab), [], "the findings at a fork")
    tab.button("Keys").click()
    expect_equal(findings(tab), [], "the findings at the keys")
    protected = workspace.server(access="tokens")
    tab = open_tab(protected).open()
    tab.expect_text("This server asks for a token")
    tab.keep("token")
    expect_equal(findings(tab), [], "the findings at the question for a token")


def test_everything_can_be_done_by_the_keyboard(server, open_tab):
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "milk"}))
        client.commit(action("tasks/add", {"id": 2, "title": "bread"}))
    tab = open_tab().open("live")
    tab.expect_text("2 commits")
    press = tab.page.keyboard.press

    def tab_to(text):
        for _ in range(60):
            press("Tab")
            focus = tab.page.evaluate("[document.activeElement.innerText, document.activeElement.getAttribute('aria-label'), document.activeElement.id].join(' ')")
            if text in focus:
                return
        raise AssertionError(f"Tab never reaches {text}")

    tab_to("Commits, newest first")
    press("ArrowDown")
    press("Enter")
    tab.expect_text("milk", ".side")
    press("2")
    tab.expect_text("The present")
    tab_to("State")
    for key in ["ArrowDown"] * 4 + ["ArrowRight"]:
        press(key)
    tab.expect_text("favourites")
    for key in ["ArrowRight", "ArrowRight"]:
        press(key)
        tab.page.wait_for_timeout(200)
    tab.expect_text("bread")
    press("ArrowRight")
    press("w")
    tab.expect_text("tasks/add, version 1")
    press("3")
    tab.expect_text("Choose the action")
    tab_to("counter/add")
    press("Enter")
    tab.field("amount").focus()
    tab.page.keyboard.type("5")
    press("Control+Enter")
    tab.expect_text("Committed as version 3")


def test_the_focus_is_visible_and_nothing_moves_when_motion_is_not_wanted(server, open_tab):
    tab = open_tab(reduced_motion="reduce").open("live")
    tab.expect_text("No commit yet")

    tab.page.keyboard.press("Tab")
    tab.page.keyboard.press("Tab")

    outline = tab.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    expect_equal(outline, "solid", "the outline of what has the focus")
    moving = tab.page.evaluate("""() => [...document.querySelectorAll('*')].filter(element => {
        const style = getComputedStyle(element)
        return style.transitionDuration !== '0s' || style.animationName !== 'none'
    }).length""")
    expect_equal(moving, 0, "elements that move")


def test_the_layout_does_not_jump_while_commits_come(server, open_tab):
    tab = open_tab()
    tab.page.add_init_script("""window.shifts = 0
        new PerformanceObserver(list => { for (const entry of list.getEntries()) window.shifts += entry.value })
            .observe({ type: "layout-shift", buffered: true })""")
    tab.open("live")
    tab.expect_text("No commit yet")
    with server.client() as client:
        for _ in range(50):
            client.commit(add(1))
    tab.expect_text("50 commits")

    tab.find(".list").evaluate("list => { list.scrollTop = 600 }")
    tab.page.wait_for_timeout(100)
    before = tab.page.evaluate("document.elementFromPoint(200, 500).closest('.line').querySelector('.version').textContent")
    with server.client() as client:
        for _ in range(50):
            client.commit(add(1))
    tab.expect_text("100 commits")

    after = tab.page.evaluate("document.elementFromPoint(200, 500).closest('.line').querySelector('.version').textContent")
    expect_equal(after, before, "the version in the middle of the list")
    shifts = tab.page.evaluate("window.shifts")
    expect(shifts < 0.1, f"the layout has shifted by {shifts:.3f}")
