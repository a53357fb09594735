"""Texts that try to be markup, to turn the line around, or to be too long, are shown as text."""

import json

import pytest

from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until
from harness.tokens import make_token

MARKUP = "</script><img src=x onerror=window.broken=1><b>bold</b>"
TURNING = "abc\u202egnp.exe\u2066"
LONG = "x" * 1_000_000


def unbroken(tab):
    expect_equal(tab.page.evaluate("window.broken ?? null"), None, "what the text has run")
    expect_equal(tab.find("main b, main img, main script").count(), 0, "elements that a text has made")


def test_hostile_texts_in_state_actions_and_ids_are_shown_as_text(server, open_tab):
    with server.client() as client:
        for number, title in enumerate([MARKUP, TURNING, LONG], 1):
            client.commit(action("tasks/add", {"id": number, "title": title}, id=f"<i>{number}</i>", meta={MARKUP: TURNING}))
        client.commit(action("navigation/set", {"route": [MARKUP, TURNING, "\u0000\u0007", "<b>"]}))
    tab = open_tab().open("live")
    for line, shown in [(1, "</script><img src=x"), (2, "abc\\u202egnp.exe\\u2066"), (3, "(1,000,000 characters)")]:
        tab.find(f'.line[aria-posinset="{5 - line}"]').click()

        tab.expect_text(shown, ".side")

        tab.expect_text(f"<i>{line}</i>", ".side")
        unbroken(tab)
        expect("\u202e" not in tab.text("body"), "a mark turns the line around")
    for number, shown in [(1, "</script><img"), (2, "\\u202e"), (3, "(1,000,000 characters)")]:
        tab.open("state", path=f"/tasks/entities/{number}/title")
        tab.expect_text(shown, ".line.current")
        tab.expect_text(shown, ".side")
        unbroken(tab)
    length = tab.page.evaluate("document.body.innerText.length")
    expect(length < 50_000, f"the page has {length} characters of a text that it must cut")
    tab.open("state", path="/navigation/route/2")
    tab.expect_text("\\u0000\\u0007", ".side")


def test_hostile_addresses_and_inputs_are_shown_as_text(server, open_tab):
    tab = open_tab()
    for view, parameters in [
        ("live", {"types": MARKUP}), ("live", {"path": MARKUP}), ("live", {"by": MARKUP}), ("live", {"commit": MARKUP}), ("live", {"id": MARKUP}),
        ("state", {"path": "/" + MARKUP}), ("state", {"at": MARKUP}), ("state", {"path": "no/pointer"}), ("state", {"path": "/tasks/../counter"}),
        ("dispatch", {"type": MARKUP}), ("dispatch", {"type": "tasks/add", "payload": MARKUP}), ("compare", {"in": MARKUP}),
        ("bisect", {"path": MARKUP, "test": MARKUP}), (MARKUP, {}),
    ]:
        tab.open(view, **parameters)
        tab.page.wait_for_timeout(250)
        unbroken(tab)
        wait_until(lambda: tab.text("main").strip(), f"something is shown for {view} {parameters}")


NO_FORKS = ["..", ".", "%2e%2e", "..%2f", "../..", "f1/..", "f1/../..", "f1?", "f1#", "f1\n", " f1", "F1", "f", "f" + 14 * "1", "1", ""]


@pytest.mark.parametrize("view", ["dispatch", "live", "state", "compare", "forks"])
def test_a_name_that_no_fork_has_is_refused_before_anything_is_asked(server, open_tab, view):
    tab = open_tab().open("bisect")
    tab.expect_text("Find the commit")
    tab.requests.clear()
    for name in NO_FORKS:
        tab.open(view, **{"in": name}, type="counter/add", payload='{"amount":5}')
        tab.expect_text("There is no fork of this name.")
        expect("In fork" not in tab.text("header"), f"the header names the fork {name!r}")
        expect_equal(tab.button("Dispatch", exact=False).count(), 0, f"the buttons that dispatch, with the fork {name!r}")
        tab.open("bisect")
        tab.expect_text("Find the commit")
    asked = [url for url in tab.requests if "/v1" in url and "/changes" not in url]
    expect_equal(asked, [], "what was asked of the contract")
    tab.open("dispatch", **{"in": "f1"}, type="counter/add", payload='{"amount":5}')
    tab.expect_text("In a fork: the present is not touched.")
    tab.button("Dispatch in the fork").click()
    tab.expect_text("there is no fork of this name")
    with server.client() as client:
        expect_equal(client.get("/v1").json["version"], 0, "the version of the present")


@pytest.mark.parametrize("name", ["..", ".", "%2E%2e"])
def test_an_id_that_a_browser_would_fold_asks_no_other_route(server, open_tab, name):
    tab = open_tab()
    tab.open("live", id=name)
    tab.expect_text("no commit with this ID" if name.startswith("%") else "a browser cannot address", ".side")
    asked = {url.removeprefix(tab.origin) for url in tab.requests}
    expect(not asked & {"/v1/", "/v1/actions/"}, "it asks", asked)


def test_a_hostile_subject_is_shown_as_text(workspace, open_tab):
    data = workspace.path("subjects")
    token = make_token(workspace, data, "<b>\u202eops</b>", "--all")
    server = workspace.server(data=data)
    with server.client() as client:
        client.commit(action("counter/add", {"amount": 1}), Authorization=f"Bearer {token}")
    tab = open_tab(server).open()
    tab.field("Token").fill(token)
    tab.button("Open").click()

    tab.expect_text("<b>\\u202eops</b>")

    unbroken(tab)
    tab.find(".line").first.click()
    tab.expect_text("<b>\\u202eops</b>", ".side")
    tab.find(".side dd a", has_text="ops").click()
    tab.expect_text("1 commit")


def test_a_hostile_catalogue_is_shown_as_text(server, open_tab):
    tab = open_tab()
    schema = {"type": "object", "required": [MARKUP], "properties": {MARKUP: {"type": "string", "enum": [MARKUP, TURNING]}}}
    tab.page.route("**/v1/actions", lambda route: route.fulfill(json={"actions": [{"type": MARKUP, "payload": schema}]})
                   if route.request.method == "GET" else route.fulfill(
                       status=422, body=json.dumps({"code": MARKUP, "detail": MARKUP, "errors": [{"pointer": "/payload", "detail": TURNING}]})))
    tab.open("dispatch")

    tab.find(".types a").click()

    tab.expect_text(MARKUP, ".side h2")
    tab.button("Dispatch").click()
    tab.expect_text("Refused")
    unbroken(tab)
