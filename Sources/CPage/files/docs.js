// The documentation of this very version: the contents, a search, a page.
import { curl, get } from "./api.js"
import { copyable, fill, h, link } from "./dom.js"
import { outside, parse, render, textOf } from "./markdown.js"
import { picker } from "./picker.js"

const first = "StateServer.md", results = 30
// It has a word of each guide, and says it for who comes from an earlier version.
const changes = "Guides/Releases.md"

export async function open(main, parameters, context) {
    const pages = new Map()
    let shown = null, whole = null, turn = 0
    const side = h("div", { class: "types", role: "navigation", "aria-label": "Contents" })
    const finder = picker("Search the documentation", side, () => find()), search = finder.filter
    const found = h("p", { class: "hint total", role: "status" })
    const article = h("article", { class: "side", "aria-label": "The page", tabindex: "0" })
    const split = h("div", { class: "split narrow docs" },
        h("section", { class: "column", "aria-label": "Documentation" },
            h("h2", { class: "aside" }, "Documentation"), finder.field, found, side), article)

    const address = (page, at) => context.address("docs", { page, at, q: search.value }, null)

    function load(page) {
        if (!pages.has(page)) {
            const read = async () => {
                const { blob } = await get(`/v1/docs/${page}`, { blob: true })
                return parse(await blob.text())
            }
            pages.set(page, read())
            pages.get(page).catch(() => pages.delete(page))
        }
        return pages.get(page)
    }

    /** Where a link of a page leads: another page, or a place outside; a file of the repository is not here. */
    function target(page, href) {
        if (/^[a-z]+:/.test(href)) return outside(href)
        const { pathname, hash } = new URL(href, `http://docs/${page}`), to = pathname.slice(1)
        return has(to) ? { href: address(to, hash.slice(1) || undefined) } : {}
    }

    // The contents are the lists of the first page below "Topics".
    const start = await load(first), topics = start.findIndex(({ anchor }) => anchor === "topics")
    const groups = []
    for (const block of start.slice(topics + 1)) {
        if (block.kind === "heading") groups.push({ title: textOf(block.content), entries: [] })
        else if (block.kind === "list") {
            groups.at(-1).entries = block.items.map(([{ content: [{ href, content }] }]) =>
                ({ page: href, title: textOf(content) }))
        }
    }
    const entries = [{ page: first, title: "Begin here" }, ...groups.flatMap(({ entries }) => entries)]

    const has = name => entries.some(({ page }) => page === name)
    const entry = ({ page, title, at, near }) => h("li", {}, h("a", { href: address(page, at),
        ...page === shown && at === undefined ? { "aria-current": "true" } : {} }, title,
    near && h("span", { class: "hint" }, near)))

    function drawContents() {
        found.textContent = ""
        fill(side, h("ul", {}, entry(entries[0])), groups.map(({ title, entries }) =>
            [h("h3", {}, title), h("ul", {}, entries.map(entry))]))
    }

    /** The sections of all pages, fetched by the first search. */
    const sections = () => whole ??= Promise.all(entries.map(async ({ page, title }) => {
        const parts = [{ page, title, heading: title, text: "" }]
        for (const block of await load(page)) {
            if (block.kind === "heading" && block.level > 1) {
                parts.push({ page, title, heading: textOf(block.content), at: block.anchor, text: "" })
            } else parts.at(-1).text += textOf(block)
        }
        return parts
    })).then(parts => parts.flat()).catch(error => { whole = null; throw error })

    async function find() {
        if (!split.isConnected) return
        const mine = ++turn, words = finder.words()
        context.remember("docs", { ...last, q: search.value })
        if (words.length === 0) return drawContents()
        let all
        try {
            all = await sections()
        } catch (error) {
            found.textContent = error.message
            return
        }
        if (mine !== turn) return
        const hits = []
        for (const { page, title, heading, at, text } of all) {
            const [titled, headed, lower] = [title, heading, text].map(text => text.toLowerCase())
            if (!words.every(word => titled.includes(word) || headed.includes(word) || lower.includes(word))) continue
            const weight = words.reduce((sum, word) => sum + 8 * headed.includes(word) + 2 * titled.includes(word)
                + Math.min(lower.split(word).length - 1, 5) / 5,
            page === changes ? 0 : page.startsWith("Guides/") ? 2 : page.startsWith("Inside/") ? -4 * words.length : 0)
            const place = Math.max(0, lower.indexOf(words.find(word => lower.includes(word))))
            const near = text.slice(Math.max(0, place - 30), place + 60).replaceAll(/\s+/g, " ")
                .replace(place > 30 ? /^\S* / : "", "… ").replace(place + 60 < text.length ? / \S*$/ : "", " …")
            hits.push({ weight, page, at, title: heading === title ? title : `${title}: ${heading}`, near })
        }
        hits.sort((one, other) => other.weight - one.weight)
        found.textContent = hits.length === 0 ? "No page has all these words."
            : hits.length > results ? `The first ${results} of ${hits.length} sections` : `${hits.length} sections`
        fill(side, h("ul", {}, hits.slice(0, results).map(entry)))
    }

    let last = {}
    async function show(next, isMoved) {
        last = { page: next.page, at: next.at }
        if (search.value !== (next.q ?? "")) search.value = next.q ?? ""
        split.classList.toggle("has-detail", Boolean(next.page))
        const page = next.page ?? first
        if (page !== shown) {
            // A name from the address is one of the contents, or it is not asked for.
            const blocks = has(page) ? await load(page) : null
            if (last.page !== next.page) return
            shown = page
            fill(article, h("div", { class: "detail" }, link("To the contents", address(), { class: "back" }), blocks
                ? [render(blocks, href => target(page, href)), copyable("This page", curl(`/v1/docs/${page}`))]
                : h("p", { class: "error", role: "alert" }, "The documentation has no such page.")))
            article.scrollTop = 0
        }
        const place = next.at ? document.getElementById(`at-${next.at}`) : null
        if (place) place.scrollIntoView()
        else if (isMoved) article.scrollTop = 0
        if (isMoved) (place ?? article.querySelector("h1"))?.focus({ preventScroll: true })
        if (search.value) await find()
        else drawContents()
    }

    fill(main, split)
    await show(parameters, false)
    return { update: next => show(next, true), close() {}, keys: finder.keys }
}
