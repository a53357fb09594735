"""The documentation and the operations in the page: each opens, every link leads somewhere, and the keyboard is enough."""

import json
import os
import re
import shutil
import subprocess
import urllib.parse

from harness.actions import add
from harness.expectations import expect, expect_equal, wait_until
from harness.pages import PAGES, ROOT
from harness.tools import need

ALL = sorted(str(path.relative_to(PAGES)) for path in PAGES.rglob("*.md"))
READ = """article => {
    const prose = article.cloneNode(true)
    for (const code of prose.querySelectorAll("code, pre, .copyable")) code.remove()
    return {
        text: prose.textContent, links: [...article.querySelectorAll("a:not(.back)")].map(link => link.getAttribute("href")),
        anchors: [...article.querySelectorAll("[id^=at-]")].map(heading => heading.id.slice(3)),
    }
}"""


def parameters(href):
    return dict(urllib.parse.parse_qsl(href.partition("?")[2]))


def test_every_page_opens_whole_and_every_link_leads_to_a_page_and_a_heading(open_tab):
    tab = open_tab().open("docs")
    tab.expect_text("one authoritative state", "article")
    contents = tab.page.eval_on_selector_all("[role=navigation] a", "links => links.map(link => link.getAttribute('href'))")
    expect_equal(sorted(parameters(href)["page"] for href in contents), ALL, "the pages of the contents")
    read = {}
    for page in ALL:
        title = (PAGES / page).read_text().partition("\n")[0].lstrip("# `").rstrip("`")
        tab.open("docs", page=page)
        wait_until(lambda: tab.find("article h1").inner_text() == title or tab.page.wait_for_timeout(5), f"{page} is open")
        read[page] = tab.find("article").evaluate(READ)
        stray = re.findall(r".*(?:\*\*|`|\]\(|\||<doc:).*", read[page]["text"])
        expect(not stray, f"{page} is not rendered whole:", stray[:3])
    for page, found in read.items():
        links = [parameters(href) for href in found["links"] if href and not href.startswith("https://")]
        for to in links:
            expect(to.get("page") in read, f"{page} has a link to {to}")
            expect("at" not in to or to["at"] in read[to["page"]]["anchors"], f"{page} has a link to {to}")
        text = re.sub(r"^```.*?^```$", "", (PAGES / page).read_text(), flags=re.MULTILINE | re.DOTALL)
        targets = [(PAGES / page).parent / href.partition("#")[0] for href in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in href]
        inside = [path for path in targets if PAGES in path.resolve().parents]
        expect_equal(len(links), len(inside), f"the links of {page} to pages")


def test_a_search_and_the_links_of_a_page_are_followed_by_the_keyboard(open_tab):
    tab = open_tab().open("docs")
    tab.expect_text("one authoritative state", "article")
    press = tab.page.keyboard.press
    press("/")
    tab.page.keyboard.type("until-exists wait")
    tab.expect_text("Until something is there", "[role=navigation]")
    while "Until something is there" not in tab.page.evaluate("document.activeElement.innerText"):
        press("ArrowDown")
    press("Enter")
    tab.expect_text("A long-poll", "article")
    focus = "document.activeElement.textContent"
    wait_until(lambda: tab.page.evaluate(focus) == "Until something is there", "the heading has the focus")
    # A search stays with its page, also after the way back.
    link = tab.find("article").get_by_role("link", name="Following every commit").first
    link.focus()
    press("Enter")
    tab.expect_text("none missed and none repeated", "article")
    tab.page.go_back()
    tab.expect_text("A long-poll", "article")
    expect_equal(tab.field("Search the documentation").input_value(), "until-exists wait", "the words of the search")
    tab.field("Search the documentation").fill("zzzz")
    tab.expect_text("No page has all these words")
    tab.field("Search the documentation").fill("")
    tab.expect_text("Guides: begin", "[role=navigation]")
    tab.open("docs", page="../../../etc/passwd")
    tab.expect_text("The documentation has no such page", "article")


def test_every_operation_opens_and_a_get_is_answered_as_by_its_line(server, open_tab):
    with server.client() as client:
        client.commit(add(5))
        document = client.get("/v1/openapi.json").json
    operations = {
        operation["operationId"]: (method.upper(), path)
        for path, item in document["paths"].items() for method, operation in item.items() if method != "head"
    }
    tab = open_tab().open("operations")
    tab.expect_text("Find an operation")
    found = tab.page.eval_on_selector_all(".types a", "links => links.map(link => link.getAttribute('href'))")
    expect_equal({parameters(href)["id"] for href in found}, set(operations), "the operations of the list")
    for name, (method, path) in operations.items():
        tab.open("operations", id=name)
        tab.expect_text(path, ".side h2")
        expect(tab.text(".side h2").startswith(method), f"{name} has another method")
        for empty in tab.find(".side .field", has_text="; required").locator("input").all():
            if not empty.input_value():
                tab.expect_text("The line comes when", ".side form")
                empty.fill("x")
        tab.expect_text("curl", ".side .copyable")
        expect("Problems" in tab.text(".side") and "`" not in tab.text(".side"), f"{name} is not rendered whole")
    tab.open("operations", id="getPart")
    tab.field("pointer path; required").fill("counter")
    tab.button("Send").click()
    tab.expect_text('{"value":5}', ".outcome")
    tab.expect_text("200, State-Cursor:", ".outcome")
    line = tab.text(".side .copyable code")
    answer = subprocess.run(["bash", "-c", line + " -s"], capture_output=True, text=True, timeout=10).stdout
    expect_equal(json.loads(answer), {"value": 5}, f"the answer to {line}")
    tab.field("wait query").fill("soon")
    tab.button("Send").click()
    tab.expect_text("bad-parameter", ".outcome")
    tab.field("wait query").fill("50")
    tab.field("until query").fill("7")
    tab.button("Send").click()
    tab.button("Stop").click()
    tab.expect_text("Stopped", ".outcome")


def test_markdown_gives_values_without_markup_and_no_link_to_a_script(workspace):
    need("node")
    directory = workspace.path("script")
    os.mkdir(directory)
    for name in ("markdown", "dom", "json"):
        shutil.copy(ROOT / f"Sources/CPage/files/{name}.js", os.path.join(directory, f"{name}.js"))
    with open(os.path.join(directory, "package.json"), "w") as file:
        file.write('{"type": "module"}')
    with open(os.path.join(directory, "main.js"), "w") as file:
        file.write("""import { inline, outside, parse, textOf } from "./markdown.js"
console.log(JSON.stringify([
    parse("# A `b`\\n\\n# A b\\n- one\\n  two\\n\\n  three\\n- `x | y` **z**\\n\\n| a | b |\\n| --- | --- |\\n| `1 \\\\| 2` |\\n```sh\\n# no\\n```"),
    inline("2 * 3 * 4 and ``a ` b`` and [`f()`](x.md#y)"), textOf(parse("**<b>** a\\nb\\n1. c\\n")), [outside("javascript:1"), outside("https://a")],
]))
""")
    done = subprocess.run(["node", "main.js"], cwd=directory, capture_output=True, text=True)
    expect_equal(done.returncode, 0, done.stderr)
    blocks, content, text, links = json.loads(done.stdout)
    expect_equal([block["kind"] for block in blocks], ["heading", "heading", "list", "table", "code"], "the blocks")
    expect_equal([block["anchor"] for block in blocks[:2]], ["a-b", "a-b-1"], "the anchors")
    first, second = blocks[2]["items"]
    expect_equal([each["content"] for each in first], [["one\ntwo"], ["three"]], "an item of two paragraphs")
    bar = [{"kind": "code", "text": "x | y"}, " ", {"kind": "strong", "content": ["z"]}]
    expect_equal(second[0]["content"], bar, "an item")
    expect_equal(blocks[3]["rows"], [[[{"kind": "code", "text": "1 | 2"}], []]], "the rows")
    expect_equal(blocks[4]["text"], "# no", "the code")
    link = {"kind": "link", "href": "x.md#y", "content": [{"kind": "code", "text": "f()"}]}
    expect_equal(content, ["2 * 3 * 4 and ", {"kind": "code", "text": "a ` b"}, " and ", link], "a line")
    expect_equal((text, links), ("<b> a\nb\nc\n", [{}, {"href": "https://a", "rel": "noreferrer"}]), "the text, and links")


def test_a_search_names_guides_before_pages_about_internals_and_cuts_at_words(open_tab):
    tab = open_tab().open("docs", q="read only token")
    tab.expect_text("sections")
    links = "[role=navigation] a"
    pages = lambda: [parameters(link)["page"] for link in tab.page.eval_on_selector_all(links, "all => all.map(each => each.getAttribute('href'))")]
    expect("Guides/Security.md" in pages()[:3], pages())
    expect(not any(page.startswith("Inside/") for page in pages()[:8]), pages())
    words = set(re.findall(r"\S+", " ".join(re.sub(r"[`*|\[\]]", " ", (PAGES / page).read_text()) for page in ALL)))
    for near in tab.find(links + " .hint").all_inner_texts():
        for end in (near.split(" ")[0], near.split(" ")[-1]):
            expect(end == "…" or end in words, f"{end!r} of {near!r} is not a word")
    tab.field("Search the documentation").fill("libmicrohttpd")
    wait_until(lambda: pages()[0] == "Inside/Libmicrohttpd.md" or tab.page.wait_for_timeout(20), "a page of this title is the first")


def test_an_operation_is_found_by_its_parameters_and_descriptions(server, open_tab):
    tab = open_tab().open("operations")
    found = lambda: tab.find(".types a .path").all_inner_texts()
    for text, operation in [("wait", "GET /v1/state"), ("if-none-match", "GET /v1/state"), ("wait commit after", "GET /v1/changes")]:
        tab.field("Find an operation").fill(text)
        wait_until(lambda: operation in found() or tab.page.wait_for_timeout(20), f"{operation} for {text}")
    tab.field("Find an operation").fill("openapi")
    expect_equal(found()[0], "GET /v1/openapi.json", "the first operation, of this name")
    tab.field("Find an operation").fill("zzzz")
    tab.expect_text("No operation has all these words.")


def test_a_wait_has_the_tag_of_the_value_that_the_page_has_got(server, open_tab):
    with server.client() as client:
        client.commit(add(5))
        tag = client.get("/v1/state/counter").fields["etag"]
        tab = open_tab().open("operations", id="getPart")
        tab.field("pointer path; required").fill("counter")
        expect("If-None-Match" not in tab.text(".side .copyable"), "a line that does not wait has a tag")
        tab.field("wait query").fill("20")
        tab.expect_text(f"-H 'If-None-Match: {tag}'", ".side .copyable")
        line = tab.text(".side .copyable code")
        process = subprocess.Popen(["bash", "-c", line + " -sS"], stdout=subprocess.PIPE, text=True)
        tab.button("Send").click()
        tab.page.wait_for_timeout(1000)
        expect_equal((process.poll(), tab.text(".outcome")), (None, "Waiting for the answer…"), "what waits")

        client.commit(add(2))

        tab.expect_text('{"value":7}', ".outcome")
        expect_equal(json.loads(process.communicate(timeout=10)[0]), {"value": 7}, f"the answer to {line}")
        newer = client.get("/v1/state/counter").fields["etag"]
    tab.expect_text(f"-H 'If-None-Match: {newer}'", ".side .copyable")
    tab.field("If-None-Match header").fill(tag.strip('"'))
    tab.expect_text(f"-H 'If-None-Match: {tag}'", ".side .copyable")
    tab.button("Send").click()
    tab.expect_text("200, State-Cursor:", ".outcome")
    tab.field("If-None-Match header").fill(f'W/"a", b')
    tab.expect_text("""-H 'If-None-Match: W/"a", "b"'""", ".side .copyable")
