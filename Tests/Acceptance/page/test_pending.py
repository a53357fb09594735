"""What is pending, and the way back."""

import pytest

from harness.actions import action, add
from harness.expectations import expect, expect_equal, wait_until
from harness.tokens import bearer, make_token


def test_what_is_pending_has_a_countdown_and_is_taken_back(workspace, open_tab):
    server = workspace.server(domain="document")
    tab = open_tab(server).open("pending")
    tab.expect_text("Nothing is pending.")
    with server.client() as client:
        client.commit(action("document/set", {"path": "/tea", "value": "ready"}, schedule={"after": 3600, "name": "tea / 1"}))
        client.commit(action("document/set", {"path": "/code", "value": 1, "ttl": 7200}))
    tab.expect_text("tea / 1")
    tab.expect_text("in 59 minutes")
    tab.expect_text("in 1 hour, 59 minutes")
    tab.expect_text("/code expires")
    expect_equal(tab.page.get_by_role("button", name="Take it back").count(), 1, "buttons")

    tab.button("Take it back: tea / 1").click()

    tab.expect_text("tea / 1 is taken back, with version 3")
    with server.client() as client:
        expect_equal(client.get("/v1/schedule").json["count"], 1, "what is pending")


def test_what_is_another_clients_has_no_button_and_what_is_done_goes(workspace, open_tab):
    data = workspace.path("protected")
    ann, ops = make_token(workspace, data, "ann", "--all"), make_token(workspace, data, "ops", "--all")
    server = workspace.server(data=data, domain="document")
    with server.client() as client:
        for name, after, token in [("hers", 3600, ann), ("mine", 3600, ops), ("soon", 2, ann)]:
            body = action("document/set", {"path": f"/{name}", "value": 1}, schedule={"after": after, "name": name})
            client.commit(body, **bearer(token))
    tab = open_tab(server).open("pending")
    tab.field("Token").fill(ops)
    tab.button("Open").click()
    tab.expect_text("hers")
    expect_equal([each.get_attribute("aria-label") for each in tab.page.get_by_role("button", name="Take it back").all()],
                 ["Take it back: mine"], "the buttons")
    wait_until(lambda: "soon" not in tab.text() or tab.page.wait_for_timeout(50), "what is done is no longer pending")


@pytest.fixture
def counter(server):
    with server.client() as client:
        for amount in (1, 40, 2):
            client.commit(add(amount, id=f"add-{amount}"))
    return server


def value(server):
    with server.client() as client:
        return client.get("/v1/state/counter/value").json


def test_what_is_seen_without_an_action_becomes_the_present(counter, open_tab):
    tab = open_tab(counter).open("live", id="add-40")
    tab.button("See it without this").click()
    tab.expect_text("1 difference")
    expect(tab.button("Make this the present").is_disabled(), "nothing is restored unseen")

    tab.button("Preview").click()
    tab.expect_text("It would change")
    expect_equal(value(counter), 43, "the value after a preview")
    tab.button("Make this the present").click()

    tab.expect_text("It is the present now, with version 4", "#notice")
    expect_equal(value(counter), 3, "the value")


def test_a_present_that_has_gone_on_is_not_undone_unseen(counter, open_tab):
    tab = open_tab(counter).open("state")
    tab.expect_text("The present, version 3")
    tab.button("One version back").click()
    tab.expect_text("Make version 2 the present")
    tab.button("Preview").click()
    tab.expect_text("It would change")
    with counter.client() as client:
        client.commit(add(100))

    tab.button("Make this the present").click()
    tab.expect_text("Nothing is done: the present has changed since the preview.")
    expect_equal(value(counter), 143, "the value")
    # The new preview is there at once.
    tab.expect_text("The present has 2 commits since.")
    tab.button("Make this the present").click()
    tab.expect_text("It is the present now, with version 5", "#notice")
    expect_equal(value(counter), 41, "the value")


def test_who_has_not_the_grant_is_not_offered_the_way_back(workspace, open_tab):
    data = workspace.path("protected")
    token = make_token(workspace, data, "dev", "--read", "*", "--others", "--dispatch", "counter/*")
    server = workspace.server(data=data)
    with server.client() as client:
        for _ in range(2):
            client.commit(add(1), **bearer(token))
    tab = open_tab(server).open("state")
    tab.field("Token").fill(token)
    tab.button("Open").click()
    tab.expect_text("The present, version 2")
    tab.button("One version back").click()
    tab.expect_text("As it was at version 1")
    tab.page.wait_for_timeout(300)
    expect("the present" not in tab.text(".side"), "the way back is offered")


SCHEDULED = '{"type":"document/set","payload":{"path":"/tea","value":"ready"},"schedule":{"after":3600,"name":"tea"}}'


@pytest.mark.parametrize("text, names", [(SCHEDULED, ["tea"]), (f"[{SCHEDULED},{SCHEDULED.replace('tea', 'cake')}]", ["tea", "cake"])])
def test_an_action_that_is_scheduled_says_so_at_its_preview_its_receipt_and_its_commit(workspace, open_tab, text, names):
    server = workspace.server(domain="document")
    tab = open_tab(server).open("dispatch", type="document/set")
    tab.find("summary", has_text="The action as JSON").click()
    tab.page.get_by_label("The action as JSON", exact=True).fill(text)

    tab.button("Preview").click()
    tab.expect_text("It would be scheduled")
    tab.button("Dispatch").click()

    tab.expect_text("Committed as version 1.")
    for name in names:
        tab.expect_text(f"Scheduled as {name} for ", ".receipt")
    expect("the same as before" not in tab.text(".receipt"), "it says that nothing has changed")
    tab.page.get_by_role("link", name="1", exact=True).click()
    tab.expect_text("What is pending.", ".side")
    expect("the same as before" not in tab.text(".side"), "its commit says that nothing has changed")
