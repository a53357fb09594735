"""A tab of a browser with the server's page, which notes what the page asks for and what goes wrong in it."""

import os
import pathlib
import urllib.parse

from harness.expectations import expect, wait_until
from harness.messages import HOST

WINDOW = {"width": 1280, "height": 800}


class Tab:
    """A page in a context of its own, so that nothing is left from another tab; `beside` shares the context of one."""

    def __init__(self, browser, server, beside=None, origin=None, **context):
        self.server = server
        self.origin = origin or f"http://{HOST}:{server.port}"
        self.context = beside.context if beside else browser.new_context(**{"viewport": WINDOW} | context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.requests, self.faults = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._note)

    def _note(self, message):
        # A refused request is a line of its own in the console; what breaks the policy, or a script, is a fault.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.faults.append(message.text)

    def open(self, view="", **parameters):
        query = urllib.parse.urlencode(parameters)
        self.page.goto(f"{self.origin}/#/{view}{'?' + query if query else ''}" if view else self.origin + "/")
        return self

    def find(self, selector, **options):
        return self.page.locator(selector, **options)

    def button(self, name, exact=True):
        return self.page.get_by_role("button", name=name, exact=exact)

    def link(self, name, exact=True):
        return self.page.get_by_role("link", name=name, exact=exact)

    def field(self, label):
        return self.page.get_by_label(label, exact=False)

    def text(self, selector="main"):
        return self.page.locator(selector).inner_text()

    def expect_text(self, text, selector="main", seconds=10):
        __tracebackhide__ = True
        wait_until(lambda: text in self.text(selector) or self.page.wait_for_timeout(20), f"{text!r} in {selector}", seconds)

    def lines(self):
        """The lines of the list that are drawn, from the top."""
        return self.page.eval_on_selector_all(
            ".list .line", "lines => lines.sort((a, b) => a.dataset.index - b.dataset.index).map(line => line.innerText)"
        )

    def judge(self):
        """What every test of the page states: nothing broke, and nothing was asked of another origin."""
        __tracebackhide__ = True
        expect(not self.faults, "the page has faults:", self.faults[:3])
        foreign = [url for url in self.requests if not url.startswith((self.origin + "/", "data:", "blob:"))]
        expect(not foreign, "the page asks another origin:", foreign[:3])

    def keep(self, name):
        """Keeps a screenshot in the folder that PAGE_SCREENSHOTS names."""
        folder = os.environ.get("PAGE_SCREENSHOTS")
        if folder:
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=os.path.join(folder, f"{name}.png"))
