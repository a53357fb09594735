"""The page with a token: it shows nothing before, only what the token may see after, and keeps it for the tab."""

import os
import subprocess

import pytest

from harness.actions import action, add, bulk
from harness.expectations import expect, expect_equal, wait_until
from harness.tokens import make_token, token_names


@pytest.fixture
def tokens(workspace):
    data = workspace.path("protected")
    tokens = {
        "all": make_token(workspace, data, "ops", "--all"),
        "slice": make_token(workspace, data, "ci", "--read", "/tasks", "--read", "actions:tasks/*", "--dispatch", "tasks/*", "--others"),
        "part": make_token(workspace, data, "bot", "--read", "/tasks/favourites"),
    }
    return tokens | {"server": workspace.server(data=data)}


def sign_in(tab, token):
    tab.field("Token").fill(token)
    tab.button("Open").click()
    return tab


def test_the_page_shows_nothing_before_it_has_a_token_that_the_server_knows(tokens, open_tab):
    tab = open_tab(tokens["server"]).open()
    tab.expect_text("This server asks for a token")
    expect_equal(tab.text("nav"), "", "the views that are named")
    asked = {url.removeprefix(tab.origin) for url in tab.requests}
    expect_equal({path for path in asked if path.startswith("/v1")}, {"/v1", "/v1/client.js"}, "what was asked of the contract")

    sign_in(tab, "sk_wrong")

    tab.expect_text("The server does not know this token.")
    sign_in(tab, tokens["all"])
    tab.expect_text("No commit yet")
    expect_equal(tab.text("nav").split(), ["Live", "State", "Dispatch", "Pending", "Forks", "Bisect", "Status", "Docs", "API"], "the views")


def test_the_token_is_kept_for_the_tab_only(tokens, open_tab):
    tab = sign_in(open_tab(tokens["server"]).open(), tokens["all"])
    tab.expect_text("No commit yet")

    tab.page.reload()

    tab.expect_text("No commit yet")
    beside = open_tab(tokens["server"], beside=tab).open()
    beside.expect_text("This server asks for a token")
    expect(tokens["all"] not in tab.page.content() + tab.page.url, "the token stands in the page")
    tab.button("Sign out ops").click()
    tab.expect_text("This server asks for a token")
    tab.page.reload()
    tab.expect_text("This server asks for a token")


def test_what_is_typed_is_not_in_the_address_and_what_a_link_brings_is_not_for_the_next_subject(tokens, open_tab):
    tab = sign_in(open_tab(tokens["server"]).open("dispatch", type="tasks/add"), tokens["all"])
    title = tab.field("title text")
    tab.field("id whole number").fill("1")
    title.fill("secret")
    for name, answer in [("Preview", "It would change"), ("Dispatch", "Committed as version 1")]:
        tab.button(name).click()
        tab.expect_text(answer)
        expect("secret" not in tab.page.url, f"the address has what is typed: {tab.page.url}")
    tab.open("dispatch", type="tasks/add", payload='{"id":2,"title":"linked"}')
    wait_until(lambda: title.input_value() == "linked" or tab.page.wait_for_timeout(20), "the form of the link")

    tab.button("Sign out ops").click()

    sign_in(tab, tokens["slice"])
    tab.button("Sign out ci").wait_for()
    expect_equal(title.input_value(), "", "the form of the next subject")


def test_what_is_under_way_at_a_sign_out_is_not_sent_for_the_next_subject(workspace, open_tab):
    data = workspace.path("document")
    ann, ben = make_token(workspace, data, "ann", "--all"), make_token(workspace, data, "ben", "--all")
    server = workspace.server(data=data, domain="document")
    with server.client() as client:
        client.commit(action("document/set", {"path": "/a", "value": 1}), Authorization=f"Bearer {ann}")
    tab = open_tab(server)
    tab.page.clock.install()
    sign_in(tab.open("state", path="/a"), ann)
    tab.button("Edit").click()
    tab.find("form.edit textarea").fill("2")
    tab.button("Save").click()
    tab.expect_text("Saved as version 2.", "#notice")
    sent, is_away = [], True

    def answer(route):
        if route.request.method == "GET":
            return route.continue_()
        sent.append(route.request.headers["authorization"])
        return route.fulfill(status=503, json={"code": "not-durable", "detail": "the disk"}) if is_away else route.continue_()

    tab.page.route("**/v1/actions", answer)
    tab.button("Undo").click()
    wait_until(lambda: sent or tab.page.wait_for_timeout(20), "the action is sent")

    tab.button("Sign out ann").click()

    sign_in(tab, ben)
    tab.button("Sign out ben").wait_for()
    before, is_away = len(sent), False
    # Longer than each pause before an action is sent again.
    tab.page.clock.run_for(15_000)
    tab.button("Edit").click()
    tab.find("form.edit textarea").fill("3")
    tab.button("Save").click()
    tab.expect_text("Saved as version 3.", "#notice")
    expect_equal(sent[before:], [f"Bearer {ben}"], "who has sent an action since")


def test_with_a_grant_of_one_slice_the_page_shows_one_slice(tokens, open_tab):
    with tokens["server"].client() as client:
        fields = {"Authorization": f"Bearer {tokens['all']}"}
        client.commit(action("tasks/add", {"id": 1, "title": "milk"}), **fields)
        client.commit(add(5), **fields)
        client.commit(action("session/login", {"user": "secret-user"}), **fields)
    tab = sign_in(open_tab(tokens["server"]).open(), tokens["slice"])
    tab.expect_text("3 commits")
    seen = tab.text("body")
    tab.find(".line", has_text="not visible").first.click()
    tab.expect_text("not visible to this token", ".side")
    seen += tab.text("body")

    for view in ["State", "Dispatch"]:
        tab.link(view).click()
        tab.expect_text("tasks")
        tab.page.wait_for_timeout(300)
        seen += tab.text("body")

    expect_equal(tab.text("nav").split(), ["Live", "State", "Dispatch", "Pending", "Docs", "API"], "the views")
    for word in ["counter", "session", "canvas", "films", "navigation", "secret-user"]:
        expect(word not in seen, f"the page names {word}")
        expect(not any(word in url for url in tab.requests), f"the page asks for {word}")
    for path in ["operations", "forks", "bisect", "backup"]:
        expect(not any(path in url for url in tab.requests if "/v1/" in url), f"the page asks for {path}")
    tab.open("state", path="/tasks/entities/1")
    tab.expect_text("milk")


def expect_total(tab, text):
    wait_until(lambda: tab.text('.total') == text or tab.page.wait_for_timeout(20), f'the total {text}; it is {tab.text(".total")}')


def test_commits_of_which_a_token_sees_nothing_can_be_hidden(tokens, open_tab):
    with tokens["server"].client() as client:
        fields = {"Authorization": f"Bearer {tokens['all']}"}
        bulk(client, [add(1)] * 1500 + [action("tasks/add", {"id": 1, "title": "milk"})] + [add(1)] * 1500, **fields)
        tab = sign_in(open_tab(tokens["server"]).open(), tokens["slice"])
        expect_total(tab, "3,001 commits")
        tab.expect_text("not visible")

        tab.field("Hide what is not visible").check()

        expect_total(tab, "1 commit")
        expect("tasks/add" in tab.lines()[0], tab.lines())
        for body in [add(1), action("tasks/rename", {"id": 1, "title": "bread"}), add(1)]:
            client.commit(body, **fields)
        expect_total(tab, "2 commits")
        expect("tasks/rename" in tab.lines()[0], tab.lines())
    tab.page.reload()
    expect_total(tab, "2 commits")
    tab.field("Hide what is not visible").uncheck()
    expect_total(tab, "3,004 commits")
    whole = sign_in(open_tab(tokens["server"]).open(), tokens["all"])
    expect_total(whole, "3,004 commits")
    expect_equal(whole.field("Hide what is not visible").count(), 0, "the choices of a token that sees everything")


def test_each_line_to_copy_is_one_that_the_token_can_use(tokens, open_tab):
    with tokens["server"].client() as client:
        fields = {"Authorization": f"Bearer {tokens['all']}"}
        client.commit(action("tasks/add", {"id": 1, "title": "milk"}), **fields)
        client.commit(add(5), **fields)
    lines = {}
    for name in ["slice", "part", "all"]:
        tab = sign_in(open_tab(tokens["server"]).open(), tokens[name])
        lines[name] = []
        for line in [1, 2]:
            tab.find(f'.line[aria-posinset="{line}"]').click()
            tab.expect_text("To copy", ".side")
            lines[name] += tab.find(".copyable code").all_inner_texts()
        for path in ["", "/tasks", "/tasks/entities", "/tasks/favourites"]:
            if name != "part" or path != "/tasks/entities":
                tab.open("state", path=path)
                tab.expect_text("To copy", ".side")
                tab.page.wait_for_timeout(500)
                lines[name] += tab.find(".copyable code").all_inner_texts()
        run = [line for line in lines[name] if line.startswith("curl") and not any(part in line for part in ["--json", "<<", "wait="])]
        expect(len(run) > 3, lines[name])
        for line in run:
            done = subprocess.run(
                ["bash", "-c", line + " -sS -o /dev/null -w '%{http_code}'"], capture_output=True, text=True, timeout=20,
                env=os.environ | {"TOKEN": tokens[name]})
            expect_equal(done.stdout, "200", f"the status of {line} with the token {name}")
    expect(not any("/v1/state'" in line for line in lines["slice"] + lines["part"]), "the whole state is offered")
    expect(any("/v1/state'" in line for line in lines["all"]), "the whole state is not offered to a token that sees it")
    expect(any("/v1/state/tasks'" in line for line in lines["slice"]), "the slice is not offered")


def test_with_a_grant_of_a_part_of_a_slice_the_page_shows_the_part(tokens, open_tab):
    tab = sign_in(open_tab(tokens["server"]).open("state"), tokens["part"])

    tab.find(".line", has_text="tasks").click()

    tab.expect_text("favourites")
    expect("entities" not in tab.text("body"), "the page names the part beside it")
    expect_equal(tab.text("nav").split(), ["Live", "State", "Pending", "Docs", "API"], "the views")


def test_a_token_that_is_revoked_ends_what_the_page_shows(tokens, workspace, open_tab):
    server = tokens["server"]
    tab = sign_in(open_tab(server).open(), tokens["slice"])
    tab.expect_text("No commit yet")
    tab.page.evaluate(NOTICES)

    name = token_names(server.data)["ci"]
    command = [workspace.binary, "token", "revoke", name, "--data", server.data]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("STOREKEEPER_")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, env=environment)
    expect_equal(done.returncode, 0, f"the exit code of the revocation ({done.stderr})")

    tab.expect_text("The server no longer knows this token.", seconds=30)
    expect_equal(tab.text("nav"), "", "the views that are named")
    expect_equal(tab.page.evaluate("window.notices"), [], "what the page has said")


def test_a_page_of_another_origin_can_neither_frame_it_nor_read_it(server, open_tab):
    tab = open_tab()
    tab.page.route("http://other.example/", lambda route: route.fulfill(
        content_type="text/html", body=f'<iframe src="{tab.origin}/"></iframe>'))
    tab.page.goto("http://other.example/")
    tab.page.wait_for_timeout(500)

    frames = [frame.url for frame in tab.page.frames[1:]]

    expect(all(not url.startswith(tab.origin) for url in frames), "the page is in a frame:", frames)
    read = tab.page.evaluate("address => fetch(address).then(answer => answer.text(), error => error.name)", tab.origin + "/page/app.js")
    expect_equal(read, "TypeError", "what the other page reads")
    tab.requests.clear()
    tab.faults.clear()


def test_a_member_that_comes_has_a_line_where_a_token_sees_only_parts(workspace, open_tab):
    data = workspace.path("parts")
    ops = make_token(workspace, data, "ops", "--all")
    bot = make_token(workspace, data, "bot", "--read", "/a/x", "--read", "/a/y", "--read", "/b", "--others")
    server = workspace.server(data=data, domain="document")

    def commit(type, **payload):
        with server.client() as client:
            client.commit(action(type, payload), Authorization=f"Bearer {ops}")

    commit("document/set", path="", value={"a": {"x": 1, "hidden": 1}})
    tab = sign_in(open_tab(server).open("state", path="/a/x"), bot)
    tab.expect_text("1", ".line.current")
    keys = tab.find(".line .key")
    expect_equal(keys.all_inner_texts(), ["state", "a", "x"], "the lines")

    commit("document/set", path="/a/y", value=2)
    commit("document/set", path="/b", value=3)
    commit("document/set", path="/a/other", value=4)

    tab.expect_text("b", ".list")
    expect_equal(keys.all_inner_texts(), ["state", "a", "x", "y", "b"], "the lines")
    commit("document/remove", path="/a/x")
    tab.page.wait_for_timeout(500)
    expect_equal(keys.all_inner_texts(), ["state", "a", "y", "b"], "the lines after the removal")


NOTICES = """() => {
    window.notices = []
    new MutationObserver(() => window.notices.push(document.getElementById("said").textContent))
        .observe(document.getElementById("said"), { childList: true })
}"""


def test_a_server_that_begins_to_ask_for_a_token_is_not_said_to_be_gone(workspace, open_tab):
    data = workspace.path("open")
    server = workspace.server(data=data, domain="document")
    tab = open_tab(server).open("state")
    tab.expect_text("The present")
    tab.page.evaluate(NOTICES)

    token = make_token(workspace, data, "ops", "--all")

    tab.expect_text("This server asks for a token", seconds=40)
    sign_in(tab, token)
    tab.expect_text("The present")
    expect_equal(tab.page.evaluate("window.notices"), [], "what the page has said")
