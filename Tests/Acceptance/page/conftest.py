"""Chromium of Debian, driven by Playwright, in front of a server's page."""

import pytest

from harness.tabs import Tab
from harness.tools import find, need, need_module


# Of a file and not of the run: Playwright has an event loop in the thread of the tests for as long as it is there.
@pytest.fixture(scope="module")
def browser():
    need("chromium")
    playwright = need_module("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def server(workspace):
    return workspace.server()


@pytest.fixture
def open_tab(browser, server):
    """Opens tabs; what every tab must keep to is judged at the end of the test."""
    tabs = []

    def make(at=None, **options):
        tabs.append(Tab(browser, at or server, **options))
        return tabs[-1]

    yield make
    for tab in tabs:
        tab.context.close()
    for tab in tabs:
        tab.judge()
