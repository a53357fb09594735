// One commit: what was asked, by whom and why, what it changed, and what followed from it.
import { curl, epochOf, get, query, versionOf } from "./api.js"
import { busy, button, copyable, fact, fill, foreign, h, link, when } from "./dom.js"
import { patchView } from "./diff.js"
import { bytes, byteCount, count, isWithin, parent, path, plural, pretty, stringify } from "./json.js"
import { scriptOf } from "./export.js"

// Within which the commits of a cascade are looked for.
const CASCADE_EXAMINED = 500, CASCADE_BYTES = 2_000_000
// The most changes of a commit that is undone; each asks for the value before and the one after.
const UNDO_MAX = 100

// The commit with this cursor as this client sees it, which `changes` always has.
export async function fetchCommit(base, cursor, options) {
    const address = `${base}/changes${query({ since: `${epochOf(cursor)}.${versionOf(cursor) - 1}`, limit: 1 })}`
    const { value } = await get(address, options)
    return value.changes[0]
}

export const typesOf = commit => commit.action === null ? []
    : [...new Set([commit.action].flat().map(action => action.type))]

export const noAuthor = context => "no author is recorded"
    + (context.model.subject === null ? ": the server has no tokens" : "")

// The ways to the commit that one would rather not have.
export const waysToCommit = context => h("p", { class: "hint" }, "To find the commit to leave out: choose the place in ",
    link("the state", context.address("state", {}, null)), ", and there Who changed this last? or All commits of it; ",
    context.can.bisect && [link("bisecting", context.address("bisect", {}, null)),
        " finds the commit since which a value is wrong; "],
    "at the commit, See it without this makes the fork.")

export function commitView(context, cursor, { back } = {}) {
    const control = new AbortController()
    const element = h("article", { class: "detail", tabindex: "-1",
        "aria-label": `Commit ${count(versionOf(cursor))}` }, h("p", { class: "hint" }, "…"))
    fetchCommit(context.base, cursor, { signal: control.signal }).then(commit => {
        if (!commit) fill(element, back, h("p", {}, "There is no such commit. ",
            link("All commits", context.address("live"))))
        else {
            fill(element, back, content(context, commit, control.signal))
            const types = typesOf(commit).slice(0, 3).join(", ") || "not visible"
            context.announce(`Commit ${count(commit.version)} is shown: ${types}`)
        }
    }, error => {
        if (!control.signal.aborted) fill(element, back, h("p", { class: "error" }, error.code === "cursor-expired"
            ? "The server no longer keeps this commit." : error.code === "cursor-lost"
                ? "This commit is of another history: the server has begun a new one since." : error.message))
    })
    return { element, cursor, close: () => control.abort() }
}

function content(context, commit, signal) {
    const { base } = context, { version, cursor } = commit
    const place = pointer => link(foreign(pointer === "" ? "the whole state" : pointer),
        context.address("state", { at: cursor, path: pointer }))
    const to = (id, text) => link(text, context.address("live", { id }), {})
    const previous = `${epochOf(cursor)}.${version - 1}`
    const types = typesOf(commit)
    const isDispatchable = commit.action !== null && !types.some(type => type.startsWith("storekeeper/"))
    const isOfSchedule = types.some(type => /^storekeeper\/(un)?schedule$/.test(type))
    const address = commit.action === null ? `${base}/changes?since=${previous}&limit=1` : `${base}/actions/${cursor}`
    const actions = h("div", { class: "buttons" },
        link("State at this version", context.address("state", { at: cursor }), { class: "button" }),
        context.can.patch && context.can.seeState && commit.patch.length > 0 && commit.patch.length <= UNDO_MAX
            && button("Undo this commit", event => undo(context, context.base, cursor, event.currentTarget)),
        context.can.fork && !context.fork && isDispatchable && !commit.cause
            && button("See it without this", event => context.undo(commit, event.currentTarget)),
        context.can.dispatch && isDispatchable && !Array.isArray(commit.action)
            && link("Edit and send again", context.address("dispatch",
                { type: commit.action.type, payload: stringify(commit.action.payload ?? {}) }), { class: "button" }))
    return [
        h("h2", {}, types.length ? types.slice(0, 5).map((type, index) => [index > 0 && ", ", foreign(type)])
            : "Action not visible to this token"),
        h("dl", { class: "facts" },
            fact("Version", h("span", { class: "number" }, count(version))),
            fact("Time", when(commit.time)),
            fact("Author", commit.by === undefined ? h("span", { class: "hint" }, noAuthor(context))
                : link(foreign(commit.by), context.address("live", { by: commit.by }))),
            commit.id !== cursor && fact("ID", foreign(commit.id)),
            commit.cause && fact("Caused by", to(commit.cause, foreign(commit.cause))),
            commit.root && commit.root !== commit.cause
                && fact("Cascade began with", to(commit.root, foreign(commit.root))),
            fact("Patch", `${plural(commit.patch.length, "operation")}, ${bytes(byteCount(stringify(commit.patch)))}`)),
        actions,
        commit.action !== null && [h("h3", {}, Array.isArray(commit.action) ? plural(commit.action.length, "action")
            : "Action"),
            h("pre", { class: "json", tabindex: "0" }, h("bdi", {}, pretty(commit.action, 200)))],
        h("h3", {}, "What it changed"),
        isOfSchedule && h("p", {}, "What is ", link("pending", context.address("pending")), "."),
        !(isOfSchedule && commit.patch.length === 0) && patchView(base, commit.patch, version - 1, place),
        cascade(context, commit, signal),
        h("h3", {}, "To copy"),
        copyable("Cursor", cursor),
        copyable("This commit", curl(address)),
        context.can.seeState && copyable("The state after it", curl(`${base}/state?version=${version}`)),
        isDispatchable && copyable("Dispatch it again", scriptOf(commit, `${location.origin}${base}`)),
    ]
}

// Takes back what the commit with this cursor has changed.
export async function undo(context, base, cursor, control) {
    busy(true, control)
    await fetchCommit(base, cursor).then(commit => inverse(base, commit)).then(
        action => context.takeBack(action, base), error => context.say(`Not undone: ${error.message}`))
    busy(false, control)
}

// The action that puts back what a commit has changed, where all of it is as the commit left it. A list that has got or
// lost elements is put back whole.
async function inverse(base, { version, patch }) {
    if (patch.length > UNDO_MAX) throw new RangeError(`it has changed more than ${UNDO_MAX} places`)
    const read = (pointer, version) => get(`${base}/state${path(pointer)}?version=${version}`).then(({ value }) => value,
        error => { if (error.status !== 404) throw error })
    const isElement = async ({ op, path }) => op !== "replace" && /\/\d+$/.test(path)
        && Array.isArray(await read(parent(path), version - 1))
    const places = new Set()
    for (const operation of patch) places.add(await isElement(operation) ? parent(operation.path) : operation.path)
    const operations = [], expect = []
    for (const path of places) {
        if ([...places].some(outer => outer !== path && isWithin(path, outer))) continue
        const before = await read(path, version - 1), after = await read(path, version)
        operations.push(before === undefined ? { op: "remove", path }
            : { op: after === undefined ? "add" : "replace", path, value: before })
        expect.push(after === undefined ? { path, absent: true } : { path, value: after })
    }
    return stringify({ type: "document/patch", payload: { patch: operations }, expect })
}

// The commits of one cascade, from its root, each below the one that caused it.
function cascade(context, commit, signal) {
    const place = h("div", {})
    const root = commit.root ?? commit.id
    const look = async () => {
        fill(place, h("p", { class: "hint" }, "Looking for what followed…"))
        const first = commit.root ? (await get(`${context.base}/actions/${encodeURIComponent(root)}`,
            { signal })).value : commit
        const found = [first]
        const until = Math.max(commit.version, first.version) + CASCADE_EXAMINED
        let since = first.cursor, more = true, size = 0
        for (let limit = 20; more && versionOf(since) < until && size < CASCADE_BYTES; limit = 100) {
            const { value, length } = await get(`${context.base}/changes${query({ since, limit })}`, { signal })
            found.push(...value.changes.filter(other => other.root === root && other.version > first.version))
            since = value.next
            more = value.more
            size += length
        }
        if (found.length === 1 && !commit.root) {
            fill(place)
            return
        }
        fill(place, h("h3", {}, `Cascade of ${plural(found.length, "commit")}`), branch(context, found, first, commit),
            more && h("p", { class: "hint" }, `Among the ${count(versionOf(since) - first.version)} commits that follow.`))
    }
    look().catch(error => { if (!signal.aborted) fill(place,
        h("p", { class: "hint" }, `The cascade cannot be shown: ${error.message}`)) })
    return place
}

function branch(context, found, top, current) {
    const children = found.filter(commit => commit.cause === top.id && commit !== top)
    const name = typesOf(top).map((type, index) => [index > 0 && ", ", foreign(type)])
    const line = [h("span", { class: "number" }, count(top.version)), " ",
        top.version === current.version ? h("strong", {}, name)
            : link(name.length ? "" : "commit", context.address("live", { commit: top.cursor }))]
    if (top.version !== current.version && name.length) line[2].append(...name.flat().filter(Boolean))
    return h("ul", { class: "cascade" }, h("li", {}, line,
        children.map(child => branch(context, found, child, current))))
}
