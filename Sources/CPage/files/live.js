// The commits as they come, newest first.
import { button, copyable, fill, foreign, h, labelled, link, when } from "./dom.js"
import { commitView, waysToCommit } from "./commit.js"
import { curl, epochOf, get, query, versionOf } from "./api.js"
import { exportCommits } from "./export.js"
import { Filtered, History } from "./history.js"
import { bytes, count, plural } from "./json.js"
import { VirtualList } from "./list.js"

const ROW = 44

export async function open(main, parameters, context) {
    let source, list, detail, way, typing, isClosed = false, isPaused = false, waiting = 0, filter = {}, isOnlySeen = false
    const chosen = new Set()
    const follower = context.follower
    const fields = {
        types: h("input", { type: "search", list: "types", autocomplete: "off", spellcheck: "false",
            placeholder: "type, type/*" }),
        path: h("input", { type: "search", autocomplete: "off", spellcheck: "false", placeholder: "/pointer" }),
        by: h("input", { type: "search", autocomplete: "off", spellcheck: "false" }),
    }
    // An ID belongs to one commit, which is chosen.
    const id = h("input", { type: "search", autocomplete: "off", spellcheck: "false", placeholder: "of an action",
        onchange: () => id.value.trim() && context.go("live", { ...now(), commit: undefined, id: id.value.trim() }) })
    // A client that may not see everything gets a line for each commit, unless it hides those of which it sees nothing.
    const onlySeen = h("input", { type: "checkbox", id: "only-seen",
        onchange: () => context.go("live", now(), true) })
    const types = h("datalist", { id: "types" })
    const pauseButton = button("Pause", () => setPaused(!isPaused), { title: "Key p" })
    const exportMenu = h("details", { class: "menu" }, h("summary", { class: "button" }, "Export"))
    const total = h("p", { class: "hint total" })
    const empty = h("div", { class: "empty", hidden: true })
    let shownEmpty
    const side = h("section", { class: "side", "aria-label": "Commit" })
    const listPlace = h("div", { class: "whole" })
    const left = h("section", { class: "column", "aria-labelledby": "live-title" },
        h("h2", { id: "live-title", class: "aside" }, "Commits"),
        h("form", { class: "bar filters", onsubmit: event => event.preventDefault() },
            labelled("Types", fields.types), labelled("Path", fields.path), labelled("Author", fields.by), labelled("ID", id),
            !context.can.seeEverything
                && h("label", { for: "only-seen" }, onlySeen, " Hide what is not visible"),
            h("div", { class: "buttons" }, pauseButton, exportMenu), types),
        total, h("div", { class: "list-place" }, empty, listPlace))
    const split = h("div", { class: "split" }, left, side)
    fill(main, split)

    context.catalogue().then(actions => fill(types, actions.map(({ type }) => h("option", { value: type }))), () => {})

    for (const field of Object.values(fields)) {
        field.addEventListener("input", () => {
            clearTimeout(typing)
            typing = setTimeout(() => context.go("live", now(), true), 250)
        })
    }
    fillExport()

    const wait = number => {
        waiting += number
        setPaused(true)
    }
    const onCommits = ({ detail: { commits, head } }) => {
        if (isPaused) return wait(commits.length)
        if (!source) return
        list.grown(source.take(commits, head))
        say()
    }
    const onJump = ({ detail: { head, passed } }) => {
        if (isPaused) wait(passed)
        else if (source instanceof History) list.grown(source.take([], head))
        else if (source) begin()
    }
    follower.addEventListener("commits", onCommits)
    follower.addEventListener("jump", onJump)

    function now() {
        return { types: fields.types.value.trim(), path: fields.path.value.trim(), by: fields.by.value.trim(),
            seen: onlySeen.checked ? "only" : undefined, commit: parameters.commit }
    }

    function say() {
        const isFiltered = source instanceof Filtered
        const text = !isFiltered ? plural(source.length, "commit")
            : source.isComplete ? plural(source.length, "commit")
                : source.isFull ? `The newest ${count(source.length)} of them`
                    : `${plural(source.length, "commit")} back to version ${count(source.reached)}`
        total.textContent = chosen.size ? `${text}, ${count(chosen.size)} selected` : text
        empty.hidden = source.length > 0 || (isFiltered && !source.isComplete)
        if (!empty.hidden && shownEmpty !== source) drawEmpty(isFiltered)
        split.classList.toggle("is-empty", !empty.hidden && !isFiltered)
    }

    // What has been typed into the form of an empty server stays.
    function drawEmpty(isFiltered) {
        shownEmpty = source
        fill(empty, h("p", {}, isFiltered ? "No commit is like this."
            : "No commit yet. What is dispatched appears here."),
        isFiltered && button("Show all commits", () => context.go("live", {})))
        if (isFiltered || context.fork || source.head > 0) return
        import("./welcome.js").then(({ welcome }) => { if (source.length === 0) empty.append(welcome(context)) }, () => {})
    }

    // Reads the filters from the address, and begins the list again where they differ.
    async function show(next) {
        parameters = next
        const wanted = Object.fromEntries(["types", "path", "by"].filter(key => next[key]).map(key => [key, next[key]]))
        for (const [key, field] of Object.entries(fields)) {
            if (document.activeElement !== field) field.value = next[key] ?? ""
        }
        const isSame = source && query(wanted) === query(filter) && isOnlySeen === (next.seen === "only")
        filter = wanted
        onlySeen.checked = isOnlySeen = next.seen === "only"
        if (!isSame) await begin()
        await choose(next)
    }

    async function begin() {
        if (filter.types) filter.types = filter.types.split(/[\s,]+/).filter(Boolean).join(",")
        const mine = filter
        if (source) source.isClosed = true
        let cursor
        try {
            cursor = await follower.aim(context.base, filter)
        } catch (error) {
            if (mine === filter && !isClosed && error.name !== "AbortError") refuse(error)
            return
        }
        if (mine !== filter || isClosed) return
        for (const field of Object.values(fields)) field.removeAttribute("aria-invalid")
        let isTold = false
        const changed = () => {
            list.refresh()
            say()
            // How many a filter keeps is said once, and not with each commit that comes.
            if (source instanceof Filtered && !isTold) context.announce(total.textContent)
            isTold = true
        }
        source = Object.keys(filter).length || isOnlySeen
            ? new Filtered(context.base, cursor, filter, isOnlySeen, changed)
            : new History(context.base, cursor, follower.oldest, changed)
        const begun = source
        source.failed = error => { if (!begun.isClosed) refuse(error) }
        list?.close()
        list = new VirtualList({
            role: "listbox", label: "Commits, newest first", rowHeight: ROW, source, draw,
            attributes: { "aria-multiselectable": "true" },
            seen: (first, last) => source.want(first, last),
            chosen: index => context.go("live", { ...now(), commit: source.cursor(index) }),
            keys: (event, index) => event.key === " " && mark(index),
        })
        fill(listPlace, list.element)
        waiting = 0
        setPaused(false)
        list.refresh()
        say()
    }

    function refuse(error) {
        total.textContent = error.message
        if (error.code === "unknown-action") fields.types.setAttribute("aria-invalid", "true")
        if (error.code === "bad-parameter") fields.path.setAttribute("aria-invalid", "true")
    }

    function draw(index, element) {
        const line = source.at(index)
        const version = source.key(index)
        if (line) delete element.dataset.isWaiting
        else element.dataset.isWaiting = "true"
        const isChosen = chosen.has(version)
        element.setAttribute("aria-selected", String(isChosen))
        const isCurrent = parameters.commit === line?.cursor && line !== undefined
        element.classList.toggle("current", isCurrent)
        if (isCurrent) element.setAttribute("aria-current", "true")
        else element.removeAttribute("aria-current")
        fill(element,
            h("span", { class: "tick", onclick: event => { event.preventDefault(); mark(index) },
                title: "Select for the export (space)" }, h("span", { class: "box" }, isChosen ? "✓" : "")),
            h("span", { class: "number version" }, count(version)),
            line && [
                h("span", { class: "what" },
                    h("span", { class: "type" }, line.types.length
                        ? line.types.map((type, at) => [at > 0 && ", ", foreign(type, 80)]) : "not visible",
                        line.id !== line.cursor && h("span", { class: "hint id" }, " ", foreign(line.id, 60)),
                        line.actions > 1 && h("span", { class: "hint" }, ` ×${count(line.actions)}`),
                        line.cause && h("span", { class: "follow-up", title: "A follow-up of another commit" },
                            " ↳ follow-up")),
                    h("span", { class: "hint path" }, line.by !== undefined && [foreign(line.by, 40), " · "],
                        foreign(line.path || (line.operations ? "the whole state" : "nothing changed"), 90),
                        line.operations > 1 && ` · ${count(line.operations)} changes`)),
                h("span", { class: "number hint size" }, bytes(line.bytes)),
                when(line.time, { class: "number hint" }),
            ])
    }

    function mark(index) {
        const version = source.key(index)
        if (!chosen.delete(version)) chosen.add(version)
        list.refresh(true)
        say()
        return true
    }

    function setPaused(value) {
        isPaused = value
        if (!value && waiting) {
            waiting = 0
            pauseButton.textContent = "Pause"
            begin()
            return
        }
        pauseButton.textContent = value ? (waiting ? `Go on (${count(waiting)} new)` : "Go on") : "Pause"
    }

    const back = () => link("← Commits", context.address("live", { ...now(), commit: undefined }), { class: "back" })

    async function choose(next) {
        // Another filter leaves the commit as it is.
        if (detail && next.commit === detail.cursor && !next.id) {
            way.href = back().href
            return moveTo(next.commit)
        }
        detail?.close()
        detail = null
        if (next.id) {
            try {
                const { value } = await get(`${context.base}/actions/${encodeURIComponent(next.id)}`)
                if (parameters === next && !isClosed) context.go("live", { ...now(), commit: value.cursor }, true)
                return
            } catch (error) {
                if (parameters !== next || isClosed) return
                split.classList.add("has-detail")
                return fill(side, h("div", { class: "detail" }, back(), h("p", { class: "error", role: "alert" }, error.message)))
            }
        }
        split.classList.toggle("has-detail", Boolean(next.commit))
        if (next.commit) {
            way = back()
            detail = commitView(context, next.commit, { back: way })
            fill(side, detail.element)
            // On a narrow screen the list has given way to the commit.
            if (left.offsetParent === null) detail.element.focus()
            moveTo(next.commit)
        } else {
            const address = `${context.base}/changes${query({ since: "now", wait: 25, ...filter })}`
            fill(side, h("div", { class: "detail" },
                h("p", {}, "Choose a commit to see its action, what it changed, and what followed from it."),
                context.can.fork && waysToCommit(context),
                h("p", { class: "hint" }, "Arrows move, Enter opens, space selects for the export, p pauses."),
                copyable("Follow from here", curl(address))))
            list?.refresh(true)
        }
    }

    function moveTo(commit) {
        const index = source && epochOf(commit) === source.epoch ? source.indexOf(versionOf(commit)) : -1
        if (index >= 0) list.move(index)
        list?.refresh(true)
    }

    function fillExport() {
        const status = h("p", { class: "hint", role: "status" })
        const run = async kind => {
            try {
                const wanted = { base: context.base, versions: chosen, filter, isOnlySeen, head: follower.head }
                const written = await exportCommits(kind, wanted, found => { status.textContent = `${plural(found, "commit")}…` })
                status.textContent = wanted.isCut
                    ? `The oldest ${plural(written, "commit")} written: an export takes no more. curl can ask for the others.`
                    : `${plural(written, "commit")} written.`
            } catch (error) {
                status.textContent = error.message
            }
        }
        exportMenu.append(h("div", { class: "sheet" },
            h("p", { class: "hint" }, "The selected commits; without a selection, all that the filter keeps."),
            button("JSON lines", () => run("jsonl")), button("Script of curl calls", () => run("sh")),
            context.can.backup && button("Backup of the journal",
                event => context.backup(event.currentTarget)), status))
    }

    await show(parameters)
    return {
        update: show,
        keys: event => event.key === "p" ? (setPaused(!isPaused), true) : event.key === "/"
            ? (fields.types.focus(), true) : false,
        close() {
            isClosed = true
            clearTimeout(typing)
            if (source) source.isClosed = true
            follower.removeEventListener("commits", onCommits)
            follower.removeEventListener("jump", onJump)
            detail?.close()
            list?.close()
        },
    }
}
