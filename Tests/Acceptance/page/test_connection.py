"""A server that goes and comes back, another history, and many tabs at once."""

import time

from harness.actions import action, add
from harness.expectations import expect, expect_equal, wait_until


def restart(server):
    server.fixed_port = server.port
    server.kill()
    return lambda: server.start()


def test_the_page_says_that_the_server_is_gone_and_goes_on_when_it_is_back(server, open_tab):
    with server.client() as client:
        for _ in range(5):
            client.commit(add(1))
    tab = open_tab().open("live")
    tab.expect_text("5 commits")

    start = restart(server)

    tab.expect_text("The server does not answer", "#notice")
    start()
    with server.client() as client:
        for _ in range(7):
            client.commit(add(1))
    tab.expect_text("The server is back after", "#notice", seconds=30)
    tab.expect_text("12 commits")


def test_a_view_whose_file_has_not_come_opens_when_the_server_is_back(server, open_tab):
    tab = open_tab().open("live")
    tab.expect_text("No commit yet")
    start = restart(server)
    tab.expect_text("The server does not answer", "#notice")

    tab.link("Status").click()
    tab.expect_text("The view opens when it does.")
    tab.link("Bisect").click()
    tab.button("Keys").click()
    start()

    tab.expect_text("Find the commit", seconds=30)
    tab.expect_text("Keys", "#help")
    expect("Who waits where" not in tab.text(), "the view that was left is shown")


def test_an_action_that_is_sent_while_the_server_is_gone_is_committed_once(server, open_tab):
    tab = open_tab().open("dispatch", type="counter/add")
    tab.field("amount").fill("7")
    start = restart(server)

    tab.button("Dispatch").click()

    tab.expect_text("The action is kept and is sent again")
    start()
    tab.expect_text("Committed as version 1", seconds=30)
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter").json, {"value": 7}, "the counter")


def test_a_new_history_is_named_and_shown_from_its_beginning(workspace, open_tab):
    server = workspace.server(data="none")
    with server.client() as client:
        client.commit(add(1))
    tab = open_tab(server).open("live")
    tab.expect_text("1 commit")
    start = restart(server)

    start()

    tab.expect_text("The server has a new history", "#notice", seconds=30)
    tab.expect_text("No commit yet")


def test_eight_tabs_at_once_each_dispatch_and_each_see_all(server, open_tab):
    first = open_tab()
    tabs = [first] + [open_tab(beside=first) for _ in range(7)]
    for tab in tabs:
        tab.open("dispatch", type="counter/add")
    for number, tab in enumerate(tabs):
        tab.field("amount").fill(str(10**number))

    for tab in tabs:
        tab.button("Dispatch").click()
    for tab in tabs:
        tab.expect_text("Committed as version", seconds=30)

    for tab in tabs:
        tab.link("Live").click()
        tab.expect_text("8 commits")
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter/value").json, 11111111, "the sum")
        client.commit(add(1))
    for tab in tabs:
        tab.expect_text("9 commits")


def test_a_hidden_tab_holds_no_connection(server, open_tab):
    tab = open_tab().open("live")
    tab.expect_text("No commit yet")
    waits = lambda: [url for url in tab.requests if "wait=25" in url]
    wait_until(lambda: waits() or tab.page.wait_for_timeout(20), "the tab waits for commits")
    ended = []
    tab.page.on("requestfailed", lambda request: ended.append(request.url))

    tab.page.evaluate("""() => {
        Object.defineProperty(document, "hidden", { value: true, configurable: true })
        document.dispatchEvent(new Event("visibilitychange"))
    }""")

    wait_until(lambda: ended or tab.page.wait_for_timeout(20), "its wait ends")
    count = len(waits())
    with server.client() as client:
        client.commit(add(1))
    tab.page.wait_for_timeout(500)
    expect_equal(len(waits()), count, "the waits of a hidden tab")
    tab.page.evaluate("""() => {
        delete document.hidden
        document.dispatchEvent(new Event("visibilitychange"))
    }""")
    tab.expect_text("1 commit")


def test_an_action_that_a_full_disk_delays_says_why_until_it_is_committed(workspace, open_tab):
    server = workspace.server(domain="document")
    with server.client() as client:
        client.commit(action("document/set", {"path": "/a", "value": 1}))
    tab = open_tab(server).open("state", path="/a")
    is_full = True

    def answer(route):
        if is_full and route.request.method == "POST":
            return route.fulfill(status=503, json={"code": "not-durable", "detail": "the disk is full"})
        return route.continue_()

    tab.page.route("**/v1/actions", answer)
    tab.button("Edit").click()
    tab.find("form.edit textarea").fill("2")
    tab.button("Save").click()
    tab.expect_text("Not yet: the disk is full. The action is kept and is sent again", "form.edit")
    is_full = False
    tab.expect_text("Saved as version 2.", "#notice", seconds=20)

    is_full = True
    tab.button("Undo").click()
    tab.expect_text("Not yet: the disk is full.", "#notice")
    is_full = False
    tab.expect_text("Undone with version 3.", "#notice", seconds=20)

    is_full = True
    tab.open("dispatch", type="document/remove")
    tab.field("path").fill("/a")
    tab.button("Dispatch").click()
    tab.expect_text("Not yet: the disk is full.", ".outcome")
    tab.button("Give up").click()
    tab.expect_text("Given up.")


def test_a_view_that_is_left_before_it_is_there_does_not_cover_the_next_one(server, open_tab):
    tab = open_tab().open("live")
    tab.expect_text("No commit yet")
    held = []
    tab.page.route("**/v1/openapi.json", lambda route: held.append(route))
    tab.link("API").click()
    wait_until(lambda: held or tab.page.wait_for_timeout(20), "the document is asked for")

    tab.link("Live").click()
    tab.expect_text("No commit yet")
    with tab.page.expect_response("**/v1/openapi.json"):
        held.pop().continue_()
    with server.client() as client:
        client.commit(add(1))

    tab.expect_text("1 commit")
    expect("Find an operation" not in tab.text(), "the view that was left is shown")


def test_what_failed_once_is_asked_for_again(server, open_tab):
    tab = open_tab()
    tab.page.route("**/v1/actions", lambda route: route.fulfill(status=500, json={"code": "internal", "detail": "a fault"}))
    tab.open("dispatch", type="counter/add")
    tab.expect_text("a fault")
    tab.page.unroute_all()

    tab.button("Try again").click()

    tab.expect_text("counter/add", ".action h2")


def test_a_server_that_is_busy_is_not_gone(server, open_tab):
    tab = open_tab()
    busy = {"status": 503, "json": {"code": "too-many-waiters", "detail": "too many requests wait"}}
    tab.page.route("**/v1/changes*wait=25*", lambda route: route.fulfill(**busy))

    tab.open("live")

    tab.expect_text("too many requests wait. The page asks again.", "#notice")
    expect_equal(tab.text("#status"), "Version 0", "the status")


def test_following_goes_on_after_an_answer_that_ends_it(server, open_tab):
    tab = open_tab().open("live")
    tab.expect_text("No commit yet")
    tab.page.route("**/v1/changes*", lambda route: route.fulfill(status=404, json={"code": "status-404", "detail": "of a proxy"}))

    with server.client() as client:
        client.commit(add(1))
    tab.expect_text("Not followed: the page asks again", "#status", seconds=40)
    tab.page.unroute_all()

    tab.expect_text("Version 1", "#status", seconds=20)
    tab.expect_text("1 commit")


def test_the_status_is_not_ready_while_nothing_answers(server, open_tab):
    tab = open_tab().open("status")
    tab.expect_text("Ready.")

    start = restart(server)

    tab.expect_text("Not known: the server does not answer.")
    expect("Ready." not in tab.text(), "the status is ready")
    start()
    tab.expect_text("Ready.", seconds=30)


def test_the_first_answer_after_a_restart_brings_what_the_page_follows(server, open_tab):
    with server.client() as client:
        client.commit(add(1))
    tab = open_tab()
    # The longest pauses.
    tab.page.add_init_script("Math.random = () => 0.999")
    tab.open("live")
    tab.expect_text("1 commit")
    tab.page.wait_for_timeout(500)
    start = restart(server)
    tab.expect_text("The server does not answer.", "#notice", seconds=20)
    tab.page.wait_for_timeout(5000)
    start()
    with server.client() as client:
        client.commit(add(1))
    tab.page.evaluate("import('/page/api.js').then(({ request }) => request('/v1'))")
    begin = time.monotonic()

    tab.expect_text("2 commits")

    expect(time.monotonic() - begin < 1.2, f"the commit came {time.monotonic() - begin:.1f} s late")
