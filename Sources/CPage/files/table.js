// The members of one place as a table: one query with a filter, an order and pages, answered again when it changes.
import { curl, get, pause, query } from "./api.js"
import { button, copyable, fill, foreign, h, labelled, link, name, quote, refill } from "./dom.js"
import { brief, child, count, escape, isTree, path, visible } from "./json.js"

const ROWS = 50
const COLUMNS_MAX = 30
// A number beyond 2^53 is an object that keeps its digits.
const isNumber = value => typeof value === "number" || typeof value === "object" && value !== null && !isTree(value)
const isObject = value => isTree(value) && !Array.isArray(value)

// Whether a part of the tree has members of one shape.
export function isTabular(part) {
    if (part?.kind === "table") return part.keys.length > 0
    if (part?.kind !== "value" || !isTree(part.value)) return false
    const members = Object.values(part.value).slice(0, 20)
    return members.length > 1 && members.every(isObject)
        && Object.keys(members[0]).some(key => members.every(member => Object.hasOwn(member, key)))
}

const examples = [
    ["@.done == false", "a value; texts in quotes: 'ann'"], ["@.age >= 18 && @.age < 65", "both; || for one of them"],
    ["@.due", "has a due at all; !@.due has none"], ["search(@.title, 'milk')", "a part of a text, as a pattern"],
    ["@.tags[?@ == 'urgent']", "an element of a list"],
]

// A browser has six connections to a server for all its tabs: one table waits, others ask every two seconds.
const inTurn = ask => navigator.locks
    ? navigator.locks.request("storekeeper table", { ifAvailable: true }, lock => ask(lock !== null)) : ask(true)

export async function open(main, parameters, context) {
    let running, columns = new Set(), place, isTold = true
    const filter = h("input", { type: "search", class: "mono", spellcheck: "false", autocomplete: "off",
        placeholder: "@.done == false" })
    const fault = h("div", { class: "error", id: name("fault"), role: "alert", hidden: true })
    const total = h("p", { class: "hint" }), pages = h("div", { class: "buttons" })
    const rows = h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Members" })
    const title = h("div", { class: "titled" }), line = h("div", {})
    fill(main, h("div", { class: "page full" }, title,
        h("form", { class: "bar flush", onsubmit: event => { event.preventDefault(); find() } },
            labelled("Filter", filter), h("button", {}, "Filter")),
        fault, h("details", { class: "hint" }, h("summary", {}, "How a filter is written"),
            h("dl", { class: "facts" }, examples.map(([text, what]) => h("div", {},
                h("dt", {}, h("code", {}, text)), h("dd", {}, what))))),
        total, rows, pages, line))
    filter.setAttribute("aria-describedby", fault.id)
    let typing
    filter.addEventListener("input", () => {
        clearTimeout(typing)
        typing = setTimeout(find, 600)
    })

    const page = () => Math.max(1, Math.floor(Number(parameters.page)) || 1)
    const at = changes => ({ path: place, filter: parameters.filter, sort: parameters.sort, page: undefined, ...changes })

    function find() {
        clearTimeout(typing)
        if (filter.value.trim() !== (parameters.filter ?? "")) context.go("table", at({ filter: filter.value.trim() }), true)
    }

    function show(next) {
        parameters = next
        if ((next.path ?? "") !== place) columns = new Set()
        place = next.path ?? ""
        if (document.activeElement !== filter) filter.value = next.filter ?? ""
        fill(title, h("h2", {}, "Table of ", h("bdi", { class: "mono" }, foreign(place || "the whole state", 200))),
            link("As a tree", context.address("state", { path: place || undefined }), { class: "button" }))
        follow()
    }

    async function follow() {
        running?.abort()
        if (document.hidden) return
        const { signal } = running = new AbortController()
        const asked = { filter: parameters.filter, sort: parameters.sort, limit: ROWS,
            offset: page() > 1 ? (page() - 1) * ROWS : undefined, count: true }
        let address, etag
        try {
            address = `${context.base}/state${path(place)}`
        } catch (error) {
            return refuse(error)
        }
        // As curl is easiest to read and to change.
        const texts = Object.entries(asked).filter(([, value]) => value !== undefined)
            .map(([key, value]) => ` --data-urlencode ${quote(`${key}=${value}`)}`).join("")
        fill(line, copyable("This table", curl(address, ` -G${texts}`)))
        while (!signal.aborted) {
            try {
                await inTurn(async mayWait => {
                    const found = await get(address + query({ ...asked, wait: etag && mayWait ? 25 : undefined }),
                        { signal, headers: etag ? { "If-None-Match": etag } : {} })
                    if (signal.aborted) return
                    etag = found.etag ?? etag
                    if (found.value) draw(found.value)
                    await pause(mayWait ? 250 : 2000, signal)
                })
            } catch (error) {
                if (signal.aborted || error.status === 401) return
                refuse(error)
                if (error.status !== 404) return
                etag = undefined
                await pause(2000, signal)
            }
        }
    }

    function refuse(error) {
        const { parameter, offset } = error.body ?? {}
        const isFilter = parameter === "filter" && offset !== undefined, text = [...parameters.filter ?? ""]
        filter.toggleAttribute("aria-invalid", false)
        if (isFilter) filter.setAttribute("aria-invalid", "true")
        fault.hidden = false
        fill(fault, h("p", {}, error.status === 404 ? "There is nothing at this place now. The table comes when there is."
            : visible(error.message)),
        isFilter && h("pre", {}, h("bdi", {}, text.slice(0, offset).join(""),
            h("mark", {}, text[offset] ?? " "), text.slice(offset + 1).join(""))))
        if (error.status === 404) fill(rows)
        rows.classList.add("stale")
    }

    function draw({ members, count: many }) {
        fault.hidden = true
        filter.removeAttribute("aria-invalid")
        rows.classList.remove("stale")
        for (const { value } of members) {
            for (const key of isObject(value) ? Object.keys(value) : []) columns.add(key)
        }
        const shown = [...columns].slice(0, COLUMNS_MAX), hasOthers = members.some(({ value }) => !isObject(value))
        const first = (page() - 1) * ROWS
        refill(total, [many, first, members.length, columns.size], () => [many === 0 ? parameters.filter ? "The filter lets no member through." : "There is no member yet."
            : `${count(first + 1)} to ${count(first + members.length)} of ${count(many)}`,
        columns.size > shown.length && `; ${count(columns.size - shown.length)} more columns are left out`])
        // What was asked for is said once, and not with each commit that comes.
        if (!isTold) context.announce(total.textContent)
        isTold = true
        if (members.length === 0) fill(rows, h("p", { class: "empty" }, many > 0
            ? ["This page is behind the end. ", link("To the first page", context.address("table", at()))]
            : parameters.filter ? button("Show all members", () => { filter.value = ""; find() })
                : ["Add a first member ", link("in the tree", context.address("state", { path: place || undefined })), "."]))
        else fill(rows, h("table", {},
            h("thead", {}, h("tr", {}, heading("Key"), shown.map(key => heading(key, `/${escape(key)}`,
                isNumber(members.find(({ value }) => isObject(value) && Object.hasOwn(value, key))?.value[key]))),
                hasOthers && h("th", { scope: "col" }, "Value"))),
            h("tbody", {}, members.map(({ key, value }) => h("tr", {},
                h("th", { scope: "row" }, link(foreign(key, 60), context.address("state", { path: child(place, key) }))),
                shown.map(column => cell(isObject(value) && Object.hasOwn(value, column) ? value[column] : undefined,
                    edit(child(child(place, key), column)))),
                hasOthers && cell(isObject(value) ? undefined : value, edit(child(place, key))))))))
        const last = Math.max(1, Math.ceil(many / ROWS))
        const turnTo = number => context.go("table", at({ page: number > 1 ? number : undefined }))
        fill(pages, last > 1 && [
            button("◀", () => turnTo(page() - 1), { "aria-label": "Page before", "aria-disabled": String(page() <= 1) }),
            h("span", {}, `Page ${count(page())} of ${count(last)}`),
            button("▶", () => turnTo(page() + 1), { "aria-label": "Next page", "aria-disabled": String(page() >= last) })])
    }

    // A cell leads to the form of its place.
    const edit = path => context.can.set && { ondblclick: () => context.go("state", { path, edit: "yes" }) }

    // A click sorts by the column, a second one the other way round, a third one no longer.
    function heading(key, pointer, isRight) {
        const { sort } = parameters, isUp = pointer && sort === pointer, isDown = pointer && sort === `-${pointer}`
        // The parameter has commas between pointers.
        if (pointer?.includes(",")) return h("th", { scope: "col" }, foreign(key, 40))
        const next = !pointer ? undefined : isUp ? `-${pointer}` : isDown ? undefined : pointer
        return h("th", { scope: "col", class: isRight && "number", "aria-sort": isUp ? "ascending" : isDown ? "descending" : "none" },
            button(h("span", {}, foreign(key, 40), (isUp || isDown) && h("span", { "aria-hidden": "true" }, isUp ? "\u00a0▲" : "\u00a0▼")), () => context.go("table", at({ sort: next }), true),
                { class: "head", "data-name": `by ${key}` }))
    }

    const visibility = () => document.hidden ? running?.abort() : follow()
    document.addEventListener("visibilitychange", visibility)
    show(parameters)
    return {
        update(next) { isTold = false; show(next) },
        keys: event => event.key === "/" ? (filter.focus(), true) : false,
        close() {
            running?.abort()
            clearTimeout(typing)
            document.removeEventListener("visibilitychange", visibility)
        },
    }
}

function cell(value, edit) {
    if (value === undefined) return h("td", {})
    if (typeof value === "string") return h("td", edit, foreign(value, 100))
    return h("td", { class: isNumber(value) ? "number" : "path", ...edit }, h("bdi", {}, brief(value, 60)))
}
