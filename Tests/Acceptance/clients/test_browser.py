"""client.js in tabs of Chromium: each dispatches and sees each commit once; a hidden tab asks for nothing."""

import http.server
import threading
import time

import pytest

from harness.actions import add
from harness.expectations import expect, expect_equal, remains, wait_until
from harness.javascript import CLIENT
from harness.kills import kill_at_shares
from harness.programs import free_port
from harness.tools import find, need, need_module

TABS = 8
FOLLOW = """async (server) => {
    const { connect } = await import("/client.js")
    Object.assign(globalThis, { store: connect(server), versions: [], shown: undefined })
    store.subscribe("/counter/value", (value) => { shown = value })
    void (async () => { for await (const { version } of store.changes({ since: "oldest" })) versions.push(version) })()
}"""
DISPATCH = """async (count) => {
    const began = performance.now()
    for (let number = 0; number < count; number++) await store.dispatch("counter/add", { amount: 1 })
    return (performance.now() - began) / count
}"""
HIDE = """(isHidden) => {
    Object.defineProperty(document, "hidden", { value: isHidden, configurable: true })
    document.dispatchEvent(new Event("visibilitychange"))
}"""


class Site(http.server.BaseHTTPRequestHandler):
    """An empty page, and client.js beside it."""

    def do_GET(self):
        body, kind = (CLIENT.read_bytes(), "text/javascript") if self.path == "/client.js" else (b"<!doctype html>", "text/html")
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def browser(workspace):
    need("chromium")
    with need_module("playwright.sync_api").sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find("chromium"), args=["--no-sandbox"])
        yield browser.new_context()
        browser.close()


@pytest.fixture
def served(workspace):
    """A server that takes pages of a site, and the site."""
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    workspace.at_close.append(site.shutdown)
    origin = f"http://127.0.0.1:{site.server_port}"
    port = free_port()
    return workspace.server(listen_also=f"127.0.0.1:{port}", allowed_origins=origin), f"http://127.0.0.1:{port}", origin


def open_tab(browser, origin, address):
    page = browser.new_page()
    page.goto(origin)
    page.evaluate(FOLLOW, address)
    return page


def await_versions(page, count, seconds=20):
    wait_until(lambda: len(page.evaluate("versions")) >= count, f"a tab has {count} commits", seconds)
    expect_equal(page.evaluate("versions"), list(range(1, count + 1)), "the versions that a tab has seen")


def test_eight_tabs_dispatch_and_see_each_commit_once_through_a_kill(browser, served, figures):
    server, address, origin = served
    tabs = [open_tab(browser, origin, address) for _ in range(TABS)]
    time.sleep(1)

    pauses = [tab.evaluate(DISPATCH, 5) for tab in tabs]
    for tab in tabs:
        await_versions(tab, 5 * TABS)
    server.restart()
    pauses += [tab.evaluate(DISPATCH, 5) for tab in tabs]
    for tab in tabs:
        await_versions(tab, 10 * TABS)
        wait_until(lambda: tab.evaluate("shown") == 10 * TABS, "a tab shows the last value")

    with server.client() as client:
        expect_equal(client.get("/v1/state/counter/value").json, 10 * TABS, "the counter")
    expect(max(pauses) < 2000, f"a dispatch took {max(pauses):.0f} ms")
    figures(f"{TABS} tabs: a dispatch took {sorted(pauses)[TABS]:.0f} ms (median), {max(pauses):.0f} ms (longest of the means)")


@pytest.mark.rounds(2, long=20)
def test_a_tab_sees_each_commit_once_and_dispatches_each_action_once_through_kills(browser, served, rounds):
    server, address, origin = served
    count = (100 if rounds == 2 else 500) * rounds
    tab = open_tab(browser, origin, address)
    tab.evaluate(f"count => {{ globalThis.dispatched = ({DISPATCH})(count) }}", count)

    kill_at_shares(server, count, rounds)

    tab.evaluate("dispatched")
    await_versions(tab, count)
    wait_until(lambda: tab.evaluate("shown") == count, "the tab shows the last value")


def test_a_hidden_tab_asks_for_nothing_and_misses_nothing(browser, served):
    server, address, origin = served
    tab = open_tab(browser, origin, address)
    with server.client() as client:
        wait_until(lambda: server.metric(client, "waiters") == 1, "the tab waits")
        tab.evaluate(HIDE, True)
        wait_until(lambda: server.metric(client, "waiters") == 0, "the hidden tab does not wait")
        for _ in range(30):
            client.commit(add(1))
        remains(lambda: tab.evaluate("versions") == [], "the hidden tab has seen nothing", 0.5)
        tab.evaluate(DISPATCH, 1)
        tab.evaluate(HIDE, False)
        await_versions(tab, 31)
        wait_until(lambda: tab.evaluate("shown") == 31, "the tab shows the value")


def test_a_tab_knows_when_its_browser_is_offline_and_comes_back_at_once(browser, served):
    server, address, origin = served
    tab = open_tab(browser, origin, address)
    tab.evaluate("""async (server) => {
        const { connect } = await import("/client.js")
        Math.random = () => 0.999
        Object.assign(globalThis, { told: [], mine: connect(server, { onConnection: (isThere) => told.push(isThere) }) })
        mine.subscribe("/counter/value", (value) => { globalThis.mineShown = value })
    }""", address)
    wait_until(lambda: tab.evaluate("told.at(-1) === true && mineShown === 0"), "the tab is there")
    time.sleep(0.5)

    browser.set_offline(True)
    wait_until(lambda: tab.evaluate("told.at(-1)") is False, "the tab knows that it is offline", 3)
    with server.client() as client:
        client.commit(add(1))
    # Now it rests for 3 s and more.
    time.sleep(5)
    browser.set_offline(False)
    begin = time.monotonic()
    wait_until(lambda: tab.evaluate("mineShown") == 1, "the tab has what has come meanwhile")

    expect(time.monotonic() - begin < 1.5, f"the value came {time.monotonic() - begin:.1f} s late")
    expect_equal(tab.evaluate("told"), [True, False, True], "what is told of the connection")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirected_dispatch_is_an_error_in_a_browser_at_once(browser, served, status):
    server, address, origin = served
    tab = browser.new_page()
    seen = []

    def answer(route):
        seen.append(route.request.method)
        return route.fulfill(status=status, headers={"Location": f"{address}/v1/actions", "Access-Control-Allow-Origin": origin})

    tab.route("**/moved/**", answer)
    tab.goto(origin)
    problem = tab.evaluate("""async () => {
        const { connect } = await import("/client.js")
        return connect(location.origin + "/moved").dispatch("counter/add", { amount: 1 })
            .then((value) => ({ value }), ({ name, code, status, isPassing }) => ({ name, code, status, isPassing }))
    }""")

    expect_equal(problem, {"name": "Problem", "code": "redirected", "status": 0, "isPassing": False}, "what is thrown")
    expect_equal(seen, ["POST"], "what was asked")
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter/value").json, 0, "the counter")
