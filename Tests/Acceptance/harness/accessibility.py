"""The page by axe's rules, and in the looks that it has to have."""

from harness.expectations import expect
from harness.tools import need_module

LOOKS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
    "narrow": {"viewport": {"width": 320, "height": 640}},
}


def findings(tab):
    axe = need_module("axe_playwright_python.sync_playwright").Axe()
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for rule in axe.run(tab.page).response["violations"]
        for node in rule["nodes"]
    ]


def judge_view(tab, name):
    """A view without a finding, which fits the width of its window; its picture is kept under the name."""
    tab.keep(name)
    found = findings(tab)
    expect(not found, "\n".join(found))
    wide = tab.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    expect(wide <= 0, f"the view is {wide} pixels wider than the window")
    tab.judge()
    tab.context.close()
