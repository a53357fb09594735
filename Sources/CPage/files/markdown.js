// The part of Markdown that the documentation uses: as values, and as elements. Text only ever becomes a text node.
import { h } from "./dom.js"

const fence = /^```(\w*)/, heading = /^(#{1,6}) +(.*)$/, marker = /^([-*]|\d+\.) +/

/**
 * The blocks of a text: `heading` with its `level` and `anchor`, `code`, `table`, `list` and `paragraph`.
 *
 * The content of a line is an array of texts, and of `code`, `strong`, `em` and `link`.
 */
export function parse(text, anchors = new Set()) {
    const lines = text.split("\n"), blocks = []
    const take = isPart => {
        const taken = []
        while (lines.length && isPart(lines[0])) taken.push(lines.shift())
        return taken
    }
    while (lines.length) {
        const line = lines[0]
        if (line.trim() === "") lines.shift()
        else if (fence.test(line)) {
            lines.shift()
            const code = take(line => !line.startsWith("```"))
            lines.shift()
            blocks.push({ kind: "code", language: fence.exec(line)[1], text: code.join("\n") })
        } else if (heading.test(line)) {
            const [, { length: level }, title] = heading.exec(lines.shift())
            blocks.push({ kind: "heading", level, anchor: anchor(title, anchors), content: inline(title) })
        } else if (line.startsWith("|")) {
            const [head, , ...rows] = take(line => line.startsWith("|")).map(cells)
            blocks.push({ kind: "table", head, rows: rows.map(row => head.map((_, index) => row[index] ?? [])) })
        } else if (marker.test(line)) {
            const isOrdered = /^\d/.test(line), items = []
            while (lines.length && marker.test(lines[0]) && /^\d/.test(lines[0]) === isOrdered) {
                const first = lines.shift(), { length } = marker.exec(first)[0]
                const rest = take(line => line.startsWith("  ") || line === "" && lines[1]?.startsWith("  "))
                const own = [first.slice(length), ...rest.map(line => line.replace(RegExp(`^ {0,${length}}`), ""))]
                items.push(parse(own.join("\n"), anchors))
            }
            blocks.push({ kind: "list", isOrdered, items })
        } else {
            const isEnd = line => line.trim() === "" || [fence, heading, marker, /^\|/].some(kind => kind.test(line))
            const text = [lines.shift(), ...take(line => !isEnd(line))]
            blocks.push({ kind: "paragraph", content: inline(text.join("\n")) })
        }
    }
    return blocks
}

/** The cells of a row; a bar in one stands behind a backslash. */
const cells = row => row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/)
    .map(cell => inline(cell.trim().replaceAll("\\|", "|")))

/** The anchor that a forge gives to a heading: with a number where it has been taken. */
function anchor(title, taken) {
    const plain = title.toLowerCase().replace(/[^\p{L}\p{N}\-_ ]/gu, "").replaceAll(" ", "-")
    let found = plain
    for (let number = 1; taken.has(found); number++) found = `${plain}-${number}`
    taken.add(found)
    return found
}

const parts = new RegExp([
    /(`+)(?<code>.+?)\1(?!`)/, /\*\*(?<strong>.+?)\*\*/, /\*(?<em>[^*\s][^*]*)\*/,
    /\[(?<link>(?:`[^`]*`|[^\]`])*)\]\((?<href>[^)\s]+)\)/,
].map(part => part.source).join("|"), "s")

export function inline(text) {
    const found = parts.exec(text)
    if (!found) return text === "" ? [] : [text]
    const { code, strong, em, link, href } = found.groups
    const part = code !== undefined ? { kind: "code", text: code }
        : strong !== undefined ? { kind: "strong", content: inline(strong) }
        : em !== undefined ? { kind: "em", content: inline(em) }
        : { kind: "link", href, content: inline(link) }
    const before = text.slice(0, found.index)
    return [...before === "" ? [] : [before], part, ...inline(text.slice(found.index + found[0].length))]
}

/** The text of blocks and of their content, as a reader sees it. */
export const textOf = value => typeof value === "string" ? value
    : Array.isArray(value) ? value.map(textOf).join("")
    : value.kind === "code" ? value.text + (value.language === undefined ? "" : "\n")
    : value.kind === "list" ? value.items.map(textOf).join("")
    : value.kind === "table" ? [value.head, ...value.rows].map(row => row.map(textOf).join(" ")).join("\n") + "\n"
    : textOf(value.content) + (["heading", "paragraph"].includes(value.kind) ? "\n" : "")

/** The attributes of a link that leads out of the page; a script is no place. */
export const outside = href => /^https?:/.test(href) ? { href, rel: "noreferrer" } : {}

/** The elements of blocks. `address` gives the attributes of a link for its `href`; an anchor has `at-` before it. */
export function render(blocks, address = outside) {
    const content = parts => parts.map(part => typeof part === "string" ? part
        : part.kind === "code" ? h("code", {}, part.text)
        : part.kind === "link" ? h("a", address(part.href), content(part.content))
        : h(part.kind, {}, content(part.content)))
    const row = (name, cells) => h("tr", {}, cells.map(cell =>
        h(name, name === "th" ? { scope: "col" } : {}, content(cell))))
    return blocks.map(block => {
        if (block.kind === "heading") return h(`h${block.level}`, { id: `at-${block.anchor}`, tabindex: "-1" },
            content(block.content))
        if (block.kind === "code") return h("pre", { class: "json" }, block.text)
        if (block.kind === "table") {
            return h("div", { class: "sideways", tabindex: "0" }, h("table", {}, h("thead", {}, row("th", block.head)),
                h("tbody", {}, block.rows.map(cells => row("td", cells)))))
        }
        if (block.kind === "list") {
            return h(block.isOrdered ? "ol" : "ul", {}, block.items.map(item => h("li", {},
                item.length === 1 && item[0].kind === "paragraph" ? content(item[0].content) : render(item, address))))
        }
        return h("p", {}, content(block.content))
    })
}
