"""The card of a hook under Status, for who may operate the server."""

import os
import subprocess

import pytest

from harness.accessibility import LOOKS, judge_view
from harness.actions import add
from harness.expectations import expect, expect_equal, wait_until
from harness.hooks import Receiver
from harness.tabs import Tab


@pytest.fixture
def failing(workspace):
    """A server with two commits, of which a hook has delivered none."""
    data = workspace.path("data")
    receiver = Receiver(workspace, data, "--read", "*", faults={"status": 1})
    server = workspace.server(data)
    with server.client() as client:
        for _ in range(2):
            client.commit(add(1))
        wait_until(lambda: "2 attempts" in receiver.listed(), "it fails again", 20)
    return server, receiver


def run(line, workspace, data):
    """Runs a command that the page gives to copy."""
    environment = os.environ | {"DATA": data, "PATH": f"{os.path.dirname(workspace.binary)}:{os.environ['PATH']}"}
    line = line.replace("storekeeper", workspace.binary, 1)
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=20, env=environment)
    expect_equal(done.returncode, 0, f"the exit code of {line}, which says {done.stderr}")


def test_a_card_says_what_stops_a_hook_and_has_the_commands_that_help(workspace, failing, open_tab):
    server, receiver = failing
    tab = open_tab(server).open("status")
    card = tab.page.get_by_role("article", name=f"Hook {receiver.id}")
    tab.expect_text("Fails, and is tried again", ".card")
    facts = dict(zip(card.locator("dt").all_inner_texts(), card.locator("dd").all_inner_texts()))
    expect_equal(facts["Address"], f"http://127.0.0.1:{receiver.settings['port']}", "the address")
    expect_equal(facts["Behind"], "2 versions", "how far it is behind")
    expect_equal(facts["At"], "version 1", "where it waits")
    expect("the receiver has answered 500" in facts["Last fault"] and "attempts" in facts["Last fault"], facts)
    expect(":" in facts["Waits since"] and ("in " in facts["Next attempt"] or facts["Next attempt"] == "now"), facts)

    lines = card.locator("code").all_inner_texts()
    run(next(line for line in lines if " --from " in line), workspace, server.data)
    tab.expect_text("version 2", ".card")
    run(next(line for line in lines if " pause " in line), workspace, server.data)
    tab.expect_text("by hand, until it is resumed", ".card")
    expect("Next attempt" not in card.inner_text(), "a paused hook has a next attempt")
    receiver.set(faults={})
    lines = card.locator("code").all_inner_texts()
    (resume,) = [line for line in lines if " resume " in line and " --from " not in line]
    run(resume, workspace, server.data)
    tab.expect_text("Up to date", ".card")
    expect_equal(card.locator("dt").all_inner_texts(), ["Address", "Behind"], "what is said of a hook that delivers")


def test_a_server_without_hooks_says_how_one_is_made(server, open_tab):
    tab = open_tab().open("status")
    tab.expect_text("There is no hook. An operator makes one with storekeeper hook create.")


def test_the_focus_stays_in_a_card_that_is_drawn_anew(workspace, failing, open_tab):
    server, receiver = failing
    tab = open_tab(server).open("status")
    tab.expect_text("2 versions", ".card")
    tab.button("Copy Pause it").focus()
    with server.client() as client:
        client.commit(add(1))
    tab.expect_text("3 versions", ".card")
    expect_equal(tab.page.evaluate("document.activeElement.getAttribute('aria-label')"), "Copy Pause it", "what has the focus")


@pytest.mark.parametrize("look", LOOKS)
def test_a_card_is_without_a_finding_of_axe_and_fits_its_width(failing, browser, look):
    server, receiver = failing
    tab = Tab(browser, server, **LOOKS[look]).open("status")
    tab.expect_text("Fails, and is tried again", ".card")
    tab.find(".card").scroll_into_view_if_needed()
    judge_view(tab, f"hooks-{look}")
