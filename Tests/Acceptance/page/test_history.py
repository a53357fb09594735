"""Forks beside the present, the commit that began something, and exports that make the same state again."""

import json
import subprocess

from harness.actions import action, add, bulk
from harness.expectations import expect, expect_equal


def load_tasks(client):
    bulk(client, [action("tasks/add", {"id": number, "title": f"task {number}"}) for number in range(1, 6)])
    client.commit(action("tasks/rename", {"id": 2, "title": "wrong"}))
    client.commit(add(3))


def test_what_one_action_did_is_undone_in_a_fork_and_compared(server, open_tab):
    with server.client() as client:
        load_tasks(client)
        state = client.get("/v1/state").body
    tab = open_tab().open("live")
    tab.find(".line", has_text="tasks/rename").click()

    tab.button("See it without this").click()

    tab.expect_text("1 difference")
    tab.expect_text("/tasks/entities/2/title")
    tab.expect_text('"wrong"', ".sides .one")
    tab.expect_text('"task 2"', ".sides .other")
    with server.client() as client:
        expect_equal(client.get("/v1/state").body, state, "the present")
    tab.link("Its state").click()
    tab.expect_text("In fork", "header")
    tab.expect_text("counter")
    tab.link("Bisect").click()
    tab.expect_text("When did this happen")
    expect("In fork" not in tab.text("header"), "bisect, which looks at the present, is shown as if it were of the fork")


def test_a_fork_takes_actions_that_the_present_does_not_get_and_ends(server, open_tab):
    with server.client() as client:
        load_tasks(client)
    tab = open_tab().open("forks")
    tab.button("Insert an action").click()
    tab.field("After version").fill("7")
    tab.field("Action JSON").fill('{"type":"counter/add","payload":{"amount":100}}')
    tab.field("From version").fill("0")
    tab.field("Without these actions").fill("6")
    tab.button("Make the fork").click()
    tab.expect_text("2 differences")
    tab.link("Dispatch in it").click()
    tab.link("counter/add").click()
    tab.field("amount whole number").fill("1000")

    tab.button("Dispatch in the fork").click()

    tab.expect_text("Committed in the fork as version")
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter/value").json, 3, "the counter of the present")
    tab.link("Forks").click()
    tab.button("End it", exact=False).click()
    tab.expect_text("There is no fork yet.")


def test_the_commit_that_put_a_repeat_into_a_list_is_found(server, open_tab):
    with server.client() as client:
        bulk(client, [add(1)] * 50)
        client.commit(action("navigation/set", {"route": ["home", "list"]}))
        bulk(client, [add(1)] * 50)
        culprit = client.commit(action("navigation/push", {"segment": "home"}))
        bulk(client, [add(1)] * 50)
    tab = open_tab().open("bisect")
    tab.field("What is at").fill("/navigation/route")

    tab.button("Find the commit").click()

    tab.expect_text(f"It holds since version {culprit['version']}, by navigation/push")
    tab.find(".found a").click()
    tab.expect_text("navigation/push", ".side h2")
    tab.open("bisect")
    tab.field("What is at").fill("/counter/value")
    tab.field("Test").select_option("equals")
    tab.field("Value JSON").fill("1000")
    tab.button("Find the commit").click()
    tab.expect_text("It does not hold at the last version.")


def download(tab, button):
    tab.find("summary", has_text="Export").click()
    with tab.page.expect_download() as found:
        tab.button(button).click()
    return found.value.path()


def test_an_export_is_json_lines_and_a_script_that_makes_the_same_state(server, workspace, open_tab):
    with server.client() as client:
        load_tasks(client)
        client.commit(action("tasks/add", {"id": 9, "title": "it's \"$HOME\" `x` \u202e \n END"}))
        changes = client.get("/v1/changes?since=oldest").json["changes"]
        state = client.get("/v1/state").body
    tab = open_tab().open("live")
    tab.expect_text("8 commits")

    lines = download(tab, "JSON lines").read_text().splitlines()

    expect_equal([json.loads(line) for line in lines], changes, "the lines")
    tab.page.reload()
    tab.expect_text("8 commits")
    script = download(tab, "Script of curl calls")
    empty = workspace.server()
    for _ in range(2):
        done = subprocess.run(["sh", script, f"http://127.0.0.1:{empty.port}"], capture_output=True, text=True, timeout=60)
        expect_equal(done.returncode, 0, f"the exit code of the script ({done.stderr[-300:]})")
    with empty.client() as client:
        expect_equal(client.get("/v1/state").body, state, "the state of the other server")
        expect_equal(client.get("/v1").json["version"], 8, "its version")


def test_an_export_of_a_selection_has_only_the_selected_commits(server, open_tab):
    with server.client() as client:
        load_tasks(client)
    tab = open_tab().open("live")
    tab.expect_text("7 commits")
    tab.find(".list").focus()
    tab.page.keyboard.press("Space")
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Space")
    tab.expect_text("2 selected")

    lines = download(tab, "JSON lines").read_text().splitlines()

    expect_equal([json.loads(line)["version"] for line in lines], [5, 7], "the versions")


def test_the_backup_is_a_button(server, open_tab):
    with server.client() as client:
        client.commit(add(1))
    tab = open_tab().open("status")

    with tab.page.expect_download() as found:
        tab.button("Download a backup").click()

    expect(found.value.path().stat().st_size > 1000, "the backup is empty")


def test_an_address_shows_a_colleague_the_same(server, open_tab):
    with server.client() as client:
        load_tasks(client)
    tab = open_tab().open("state", path="/tasks/entities/2/title")
    tab.find("#version").fill("5")
    tab.find("#version").press("Enter")
    tab.expect_text("task 2", ".line.current")

    other = open_tab()
    other.page.goto(tab.page.url)

    other.expect_text("As it was at version 5 of 7")
    other.expect_text("task 2", ".line.current")
