"""The commits as they come, and one of them in full."""

import datetime

from harness.actions import action, add, bulk
from harness.expectations import expect, expect_equal, wait_until


def versions(tab):
    return [int(line.split()[0].replace(",", "")) for line in tab.lines()]


def test_the_list_shows_each_of_200_commits_once_and_in_order(server, open_tab):
    tab = open_tab().open("live")
    tab.expect_text("No commit yet")

    with server.client() as client:
        for _ in range(200):
            client.commit(add(1))

    tab.expect_text("200 commits")
    seen = []
    tab.find(".list").focus()
    for _ in range(30):
        seen += [version for version in versions(tab) if version not in seen]
        tab.page.keyboard.press("PageDown")
        tab.page.wait_for_timeout(30)
    expect_equal(seen, list(range(200, 0, -1)), "the versions from the top to the end")


def test_a_commit_shows_its_action_what_it_changed_and_who_made_it(server, open_tab):
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "milk"}))
        client.commit(action("tasks/rename", {"id": 1, "title": "bread"}, id="rename-1"))
    tab = open_tab().open("live")

    tab.find(".line", has_text="tasks/rename").click()

    tab.expect_text("changed /tasks/entities/1/title", ".side")
    tab.expect_text('"milk"', ".side .removed")
    tab.expect_text('"bread"', ".side .added")
    for text in ["rename-1", "curl", f"/v1/actions/"]:
        tab.expect_text(text, ".side")


def test_a_cascade_is_followed_from_its_root(server, open_tab):
    with server.client() as client:
        receipt = client.commit(action("films/load"), Prefer="wait=10")
    expect(receipt["caused"], "the action has caused nothing:", receipt)
    tab = open_tab().open("live")

    tab.find(".line", has_text="follow-up").click()

    tab.expect_text("Cascade of 2 commits", ".side")
    tab.find(".cascade a", has_text="films/load").click()
    tab.expect_text("films/load", ".side h2")


def test_the_filters_keep_the_commits_of_a_type_and_of_a_path_and_name_a_type_that_is_none(server, open_tab):
    with server.client() as client:
        bulk(client, [add(1) if number % 3 else action("tasks/add", {"id": number, "title": "t"}) for number in range(300)])
    tab = open_tab().open("live")
    tab.expect_text("300 commits")

    tab.field("Types").fill("tasks/add")
    tab.expect_text("100 commits")
    expect(all("tasks/add" in line for line in tab.lines()), tab.lines()[:3])
    tab.field("Types").fill("")
    tab.field("Path").fill("/tasks/entities/9")
    tab.expect_text("1 commit")
    with server.client() as client:
        client.commit(action("tasks/rename", {"id": 9, "title": "new"}))
    tab.expect_text("2 commits")
    tab.field("Path").fill("")
    tab.field("Types").fill("tasks/re*, films/*")
    tab.expect_text("1 commit\n")
    expect(all("tasks/rename" in line for line in tab.lines()), tab.lines()[:3])
    for none in ["tasks/nothing", "task/*"]:
        tab.field("Types").fill(none)
        tab.expect_text("no action of this type")


def test_a_pause_holds_the_list_and_says_how_many_are_new(server, open_tab):
    tab = open_tab().open("live")
    with server.client() as client:
        client.commit(add(1))
        tab.expect_text("1 commit")
        tab.button("Pause").click()

        for _ in range(3):
            client.commit(add(1))

    wait_until(lambda: tab.button("Go on (3 new)").count() or tab.page.wait_for_timeout(20), "the button counts the new ones")
    expect_equal(versions(tab), [1], "the versions in the list that is held")
    tab.button("Go on (3 new)").click()
    tab.expect_text("4 commits")
    expect_equal(versions(tab), [4, 3, 2, 1], "the versions")


def test_the_list_ends_where_the_server_no_longer_keeps_the_commits(workspace, open_tab):
    server = workspace.server(data="none", history_commits_max=100)
    tab = open_tab(server).open("live")
    with server.client() as client:
        client.commit(add(1))
        tab.expect_text("1 commit")

        tab.button("Pause").click()
        for count in range(50, 401, 50):
            bulk(client, [add(1)] * 50)
            tab.expect_text(f"{count} new")

    tab.button("Go on (400 new)").click()
    # The list has 401 lines until what is in sight is known.
    wait_until(lambda: int(tab.text(".total").split()[0]) > 1 or tab.page.wait_for_timeout(20), "the list goes on")
    tab.find(".list").focus()
    tab.page.keyboard.press("End")
    wait_until(lambda: "401" not in tab.text(".total") or tab.page.wait_for_timeout(20), "the list is shorter")
    oldest = int(tab.text(".total").split()[0])
    expect(90 <= oldest <= 200, f"the list has {oldest} commits")
    tab.page.keyboard.press("End")
    wait_until(lambda: "counter/add" in tab.lines()[-1] or tab.page.wait_for_timeout(20), "the last line is filled")


def test_a_commit_says_its_day_its_id_and_the_place_of_all_that_it_changed(workspace, open_tab):
    server = workspace.server(domain="document")
    customers = {f"c{number}": {"city": "Bonn", "name": f"n{number}"} for number in range(143)}
    moved = {key: customer | {"city": "Köln"} for key, customer in customers.items()}
    with server.client() as client:
        client.commit(action("document/set", {"path": "/customers", "value": customers}))
        client.commit(action("document/set", {"path": "/customers", "value": moved}, id="move-all"))
        operations = [{"op": "add", "path": f"/customers/c1/{key}", "value": 1} for key in "ab"]
        client.commit(action("document/patch", {"patch": operations}))
        day = datetime.datetime.now().strftime("%-d %b %Y")
    tab = open_tab(server).open("live")
    tab.expect_text("3 commits")
    lines = tab.lines()
    expect("/customers · 143 changes" in lines[1] and "move-all" in lines[1], lines[1])
    expect("/customers/c1 · 2 changes" in lines[0] and day in lines[0].replace("Sept", "Sep"), lines[0])
    tab.expect_text("See it without this", ".side")

    tab.field("ID").fill("move-all")
    tab.field("ID").press("Enter")

    tab.expect_text("143 operations", ".side")
    tab.expect_text("move-all", ".side .facts")
    tab.expect_text("move-all", ".line.current")
    tab.field("ID").fill("nobody")
    tab.field("ID").press("Enter")
    tab.expect_text("no commit with this ID is kept", ".side")


def test_the_commits_of_an_element_are_those_that_change_it(workspace, open_tab):
    server = workspace.server(domain="document")
    sets = [("/shopping", ["a", "b", "c"]), ("/shopping/-", "d"), ("/shopping/0", "A"), ("/shopping/2", "C"), ("/shopping/-", "e")]
    with server.client() as client:
        for path, value in sets:
            client.commit(action("document/set", {"path": path, "value": value}))
    tab = open_tab(server).open("state", path="/shopping/0")
    tab.button("Who changed this last?").click()
    tab.expect_text("version 3", ".side .found")
    tab.link("All commits of it").click()
    tab.expect_text("2 commits")
    expect_equal(versions(tab), [3, 1], "the commits of the first element")
    with server.client() as client:
        client.commit(action("document/set", {"path": "/shopping/-", "value": "f"}))
        client.commit(action("document/remove", {"path": "/shopping/1"}))
        client.commit(action("document/add", {"path": "/shopping/0", "value": "first"}))
    tab.expect_text("3 commits")
    expect_equal(versions(tab), [8, 3, 1], "the commits of the first element")
    tab.open("live", path="/shopping/2")
    tab.expect_text("4 commits")
    expect_equal(versions(tab), [8, 7, 4, 1], "the commits of the third element")


def test_a_filter_that_is_typed_is_asked_for_once_and_leaves_the_chosen_commit(server, open_tab):
    with server.client() as client:
        for _ in range(3):
            client.commit(add(1))
    tab = open_tab().open("live")
    tab.find(".line").first.click()
    tab.expect_text("What it changed", ".side")
    answered = []
    tab.page.on("request", lambda request: answered.append(request.url) if "before=now" in request.url else None)
    tab.page.evaluate("document.querySelector('.detail').isKept = true")

    tab.field("Types").evaluate("""field => {
        for (let end = 1; end <= "counter/reset".length; end++) {
            field.value = "counter/reset".slice(0, end)
            field.dispatchEvent(new Event("input"))
        }
    }""")

    tab.expect_text("No commit is like this.")
    expect_equal(len(answered), 1, "the scans of the history")
    expect(tab.page.evaluate("document.querySelector('.detail').isKept"), "the commit is drawn again")


def test_an_id_that_is_found_late_does_not_lead_back(server, open_tab):
    with server.client() as client:
        client.commit(add(1, id="mine"))
    tab = open_tab().open("live")
    tab.expect_text("1 commit")
    held = []
    tab.page.route("**/v1/actions/mine", lambda route: held.append(route))
    tab.page.get_by_label("ID", exact=True).fill("mine")
    tab.page.keyboard.press("Enter")
    wait_until(lambda: held or tab.page.wait_for_timeout(20), "the ID is asked for")

    tab.link("State").click()
    tab.expect_text("counter")
    with tab.page.expect_response("**/v1/actions/mine"):
        held.pop().continue_()
    tab.page.wait_for_timeout(300)

    expect("#/state" in tab.page.url, "the page has left for", tab.page.url)
