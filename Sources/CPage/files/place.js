// The chosen place of the state: its value, how it can be changed, and who changed it last.
import { curl, epochOf, request, versionOf } from "./api.js"
import { busy, button, copyable, fact, fill, foreign, h, link, quote, when } from "./dom.js"
import { noAuthor, typesOf } from "./commit.js"
import { canEdit, editor } from "./edit.js"
import { brief, bytes, count, cut, isTree, parent, path, pretty, stringify } from "./json.js"
import { lastChange } from "./history.js"
import { restoreForm } from "./restore.js"
import { isTabular } from "./table.js"
import { VISIBLE } from "./tree.js"

// The tag of a value that changes is asked for this often at most.
const TAG_MILLISECONDS = 1000

const editTitles = { change: "Edit", add: "Add a member", append: "Add an element", remove: "Remove" }
const editKeys = { e: ["change"], a: ["add", "append"], Delete: ["remove"] }

// Since when a plain value is what it is; of a list or an object one asks other things.
function plainTest(part) {
    if (part?.kind !== "value" || isTree(part.value)) return {}
    const value = stringify(part.value)
    return value.length > 200 ? {} : { test: "value", value }
}

// `head()` is the newest version, `choose(pointer)` chooses another place, and `leave()` goes back to the tree.
export function placePanel(context, { head, choose, leave }) {
    const panel = h("div", { class: "detail", tabindex: "-1" })
    const back = () => button("← State", () => leave(), { class: "back small" })
    const facts = h("dl", { class: "facts" }), lines = h("div", {}), waitLine = h("div", {})
    // These stay while the value of the place changes, with where they are scrolled to and what was answered.
    const text = h("bdi"), value = h("pre", { class: "json", tabindex: "0" }, text)
    const who = h("div", { class: "found", role: "status" }), since = link("When did this happen?", "", { class: "button" })
    // The forms with something typed that is not saved, by their stores and places, for as long as the page is open.
    const { kept } = context.model
    const keyOf = pointer => `${context.base} ${pointer}`
    let tree, pointer = null, part, editing = null, turn = 0, hasChanged = false, cursorLine
    // The place and the shape of what is drawn; the address of the value, when its tag was asked for last, and the request.
    let shownPlace, lined, drawn, address, tagged, tagging, timer

    // How this client may change the place where it is seen.
    function edits() {
        const value = part?.value, { can } = context
        if (!can.set || tree.version !== null || part?.isCut) return []
        const isObject = part?.kind === "table" || part?.kind === "shape" || isTree(value) && !Array.isArray(value)
        const isSmall = part?.kind === "value" && canEdit(stringify(value))
        return [isSmall && "change", isObject && "add", Array.isArray(value) && "append",
            can.remove && pointer !== "" && isSmall && "remove"].filter(Boolean)
    }

    function edit(kind) {
        context.say("")
        const around = pointer === "" ? undefined : tree.known(parent(pointer))?.value, key = keyOf(pointer)
        const form = editor(context, { kind, pointer, seen: part.value, around })
        form.key = key
        for (const type of ["input", "submit"]) form.element.addEventListener(type, () => kept.set(key, form))
        adopt(form)
        draw()
        editing?.focus()
    }

    // Has a form in this panel, also one that the panel of an earlier view has begun.
    function adopt(form) {
        editing = form
        form.done = (changed, receipt, undo) => {
            kept.delete(form.key)
            if (receipt) context.saved(form, changed, receipt, undo)
            if (editing !== form) return
            editing = null
            if (receipt && form.kind === "remove") choose(parent(form.pointer))
            else draw()
            leave(true)
        }
    }

    // Leaves the form; one with something typed stays with its place.
    function park() {
        if (editing && context.model?.kept.get(editing.key) === editing) {
            const place = cut(editing.pointer, 80) || "the whole state"
            context.say(editing.kind === "remove" ? `Not removed yet: the form at ${place} stays there.`
                : `Not saved yet: what you have typed at ${place} stays there.`, 20)
        } else editing?.close()
        editing = null
    }

    // Shows other content, such as the places that were found, unless more is asked for meanwhile.
    async function showOther(content) {
        const mine = ++turn
        park()
        clearTag()
        pointer = drawn = null
        fill(panel, back(), h("p", { class: "hint" }, "Looking…"))
        const found = await content().catch(error => h("p", { class: "error", role: "alert" }, error.message))
        if (mine === turn) fill(panel, back(), found)
    }

    // A change of the chosen place is said once. The whole state, which is chosen at first, changes with every commit.
    function tell() {
        if (!hasChanged || part?.kind === undefined || part.kind === "fetching") return
        hasChanged = false
        if (pointer !== "") context.announce(part.kind === "absent" ? `${pointer} is no longer there`
            : part.kind === "value" ? `${pointer} is now ${brief(part.value, 90)}` : `${pointer} has changed`)
    }

    function draw() {
        if (pointer === null) return
        turn++
        part = tree.known(pointer)
        // What is being typed stays; the form says what has changed below it.
        if (editing?.pointer !== pointer || tree.version !== null) park()
        const before = tree.version === null && kept.get(keyOf(pointer))
        if (before && !editing) adopt(before)
        if (editing && (part?.kind === "value" || part?.kind === "absent")) editing.told(part.value)
        const here = stringify([keyOf(pointer), tree.version]), shape = stringify([here, part?.kind, part?.isCut])
        if (here !== shownPlace) {
            shownPlace = here
            clearTag()
            fill(who)
        }
        if (shape !== lined) {
            lined = shape
            drawLines()
        } else cursorLine.put(cursor())
        drawTag()
        if (part?.kind === "value") text.textContent = pretty(part.value)
        since.href = context.address("bisect", { path: pointer, to: tree.version ?? undefined, ...plainTest(part) })
        if (editing && panel.contains(editing.element)) {
            hasChanged = false
            return
        }
        tell()
        const kinds = edits(), isTable = isTabular(part) && tree.version === null
        const now = stringify([shape, part?.kind === "large" ? part.bytes : null, kinds, isTable, editing !== null])
        if (now === drawn) return
        drawn = now
        fill(panel,
            back(),
            h("h2", {}, pointer === "" ? "The whole state" : h("bdi", { class: "mono" }, foreign(pointer, 300))),
            tree.version !== null && h("p", { class: "hint" }, `As it was at version ${count(tree.version)}. `,
                link("Now", context.address("state", { path: pointer || undefined }))),
            isTable && h("div", { class: "buttons" },
                link("As a table", context.address("table", { path: pointer || undefined }), { class: "button" })),
            editing ? editing.element : kinds.length > 0 && h("div", { class: "buttons" },
                kinds.map(kind => button(editTitles[kind], () => edit(kind)))),
            facts,
            h("div", { class: "buttons" },
                button("Who changed this last?", event => whoDid(event.currentTarget), { class: "who" }),
                link("All commits of it", context.address("live", { path: pointer || undefined }), { class: "button" }),
                context.can.bisect && !context.fork && since),
            who,
            part?.kind === "large" && button(`Fetch ${bytes(part.bytes)}`, () => tree.want(pointer, true)),
            part?.kind === "value" && !editing && [h("h3", {}, "Value"), value],
            part?.kind === "absent" && h("p", { class: "hint" }, tree.version !== null ? "Nothing was here at this version." : context.can.set
                ? "Nothing is here now. Add it at the value around it." : "Nothing is here now. It appears when it comes."),
            tree.version !== null && context.can.restore && !context.fork && restoreForm(context,
                { version: tree.version }, { version: tree.version, title: `Make version ${count(tree.version)} the present` }),
            h("h3", {}, "To copy"), lines)
    }

    const cursor = () => `${epochOf(tree.cursor)}.${tree.at}`

    // The lines to copy.
    function drawLines() {
        address = undefined
        try {
            address = `${context.base}/state${path(pointer)}${tree.version === null ? "" : `?version=${tree.version}`}`
        } catch { /* A browser has no address for it. */ }
        cursorLine = copyable("Cursor", cursor())
        fill(facts)
        fill(waitLine)
        fill(lines, copyable("Pointer", pointer === "" ? '""' : pointer), cursorLine,
            part?.isCut ? tree.version === null && copyable("All that this token sees", curl(context.base + VISIBLE))
                : address && copyable("This value", curl(address)), waitLine)
    }

    // The tag of a large part costs the server its whole encoding, so it comes when it is asked for.
    function drawTag() {
        if (!address || part?.isCut || part?.kind === "absent") return
        if (part?.kind === "value") {
            timer ??= setTimeout(showTag, Math.max(0, tagged + TAG_MILLISECONDS - Date.now()))
        } else fill(facts, fact("ETag", button("Show", showTag, { class: "small", "aria-label": "Show its ETag" })))
    }

    async function showTag() {
        clearTag()
        const { signal } = tagging = new AbortController()
        tagged = Date.now()
        try {
            const { etag, length, coding } = await request(address, { method: "HEAD", signal })
            if (signal.aborted) return
            fill(facts, fact("ETag", h("code", {}, etag ?? "none")),
                length > 0 && fact("Size", bytes(length) + (coding ? ` as ${coding}` : "")))
            fill(waitLine, etag && tree.version === null && copyable("Wait for its next change",
                curl(`${address}?wait=25`, ` -H ${quote(`If-None-Match: ${etag}`)}`)))
        } catch { /* A part that may not be seen as a whole has no tag; its members show theirs. */ }
    }

    function clearTag() {
        clearTimeout(timer)
        tagging?.abort()
        timer = null
        tagged = 0
    }

    async function whoDid(control) {
        const asked = pointer, place = h("div", {})
        fill(who, place)
        busy(true, control)
        const before = tree.version === null || tree.version >= head() ? "now"
            : `${epochOf(tree.cursor)}.${tree.version + 1}`
        try {
            const commit = await lastChange(context.base, asked, before, before =>
                fill(place, h("p", { class: "hint" }, `Looked back to version ${count(versionOf(before))}…`)))
            fill(place, commit ? answer(commit) : h("p", {}, "No commit that is still kept has changed this."))
        } catch (error) {
            fill(place, h("p", { class: "error" }, error.message))
        }
        busy(false, control)
    }

    function answer(commit) {
        return h("p", {}, "Last changed by ", commit.by !== undefined
            && [h("strong", {}, foreign(commit.by)), " with "],
            link(commit.action === null ? "a commit whose action this token may not see"
                : foreign(typesOf(commit).slice(0, 3).join(", ")), context.address("live", { commit: commit.cursor })),
            `, version ${count(commit.version)}, `, when(commit.time),
                commit.cause && ", as a follow-up", commit.by === undefined ? `; ${noAuthor(context)}.` : ".")
    }

    return {
        element: panel, showOther,
        show(newTree, newPointer) {
            if (newTree !== tree || newPointer !== pointer) hasChanged = false;
            [tree, pointer] = [newTree, newPointer]
            draw()
        },
        // The place has changed.
        changed() {
            hasChanged = true
            draw()
        },
        // Commits have come that do not concern the place.
        moved() { if (pointer !== null) cursorLine.put(cursor()) },
        close() { park(); clearTag() },
        // More of the state has been fetched.
        refresh() {
            if (pointer === null) return
            const now = tree.known(pointer)
            if (now?.kind !== part?.kind || now?.value !== part?.value) draw()
        },
        // Does what a key of the tree means for the place; returns whether it means anything.
        press(key) {
            if (key === "w") panel.querySelector(".who")?.click()
            else if (key in editKeys) {
                const kind = editKeys[key].find(kind => edits().includes(kind))
                if (editing) editing.focus()
                else if (kind) edit(kind)
            } else return false
            return true
        },
    }
}
