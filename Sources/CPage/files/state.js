// The state as a tree, now or at any version, and who changed what.
import { curl, epochOf, get, query, request, versionOf } from "./api.js"
import { button, copyable, fact, fill, foreign, h, labelled, link } from "./dom.js"
import { fetchCommit, typesOf } from "./commit.js"
import { canEdit, editor } from "./edit.js"
import { brief, bytes, count, isTree, parent, path, plural, pretty, stringify } from "./json.js"
import { restoreForm } from "./restore.js"
import { isTabular } from "./table.js"
import { StateTree, VISIBLE } from "./tree.js"
import { VirtualList } from "./list.js"

// A finger needs 44 pixels.
const row = () => matchMedia("(max-width: 760px), (pointer: coarse)").matches ? 44 : 28
const editTitles = { change: "Edit", add: "Add a member", append: "Add an element", remove: "Remove" }
const editKeys = { e: ["change"], a: ["add", "append"], Delete: ["remove"] }

// Since when a plain value is what it is; of a list or an object one asks other things.
function plainTest(part) {
    if (part?.kind !== "value" || isTree(part.value)) return {}
    const value = stringify(part.value)
    return value.length > 200 ? {} : { test: "value", value }
}

export async function open(main, parameters, context) {
    const follower = context.follower
    let tree, list, lines = { length: 0 }, selected = null, panelTurn = 0, panelPart, isClosed = false
    let editing = null
    const slider = h("input", { type: "range", id: "slider", "aria-label": "Version", min: 0, max: 0 })
    const field = h("input", { type: "text", inputmode: "numeric", id: "version", "aria-label": "Version",
        autocomplete: "off" })
    const nowButton = button("Now", () => move(null), { "aria-pressed": "true" })
    const what = h("p", { class: "hint total", role: "status" })
    const goal = h("input", { type: "search", autocomplete: "off", spellcheck: "false",
        placeholder: "/pointer, or a text to find" })
    const listPlace = h("div", { class: "list-place" })
    const panel = h("div", { class: "detail" })
    const left = h("section", { class: "column", "aria-label": "State" },
        h("div", { class: "bar time" }, button("◀", () => step(-1), { "aria-label": "One version back" }), slider,
            button("▶", () => step(1), { "aria-label": "One version on" }), field, nowButton),
        h("form", { class: "bar goal", onsubmit: event => { event.preventDefault(); goTo(goal.value.trim()) } },
            labelled("Go to", goal), h("button", {}, "Go")),
        what, listPlace)
    const split = h("div", { class: "split" }, left,
        h("section", { class: "side", "aria-label": "The chosen part" }, panel))
    fill(main, split)

    const source = {
        get length() { return lines.length },
        key: index => lines.at(index).pointer,
    }

    let sliding
    slider.addEventListener("input", () => {
        field.value = slider.value
        clearTimeout(sliding)
        sliding = setTimeout(() => move(Number(slider.value)), 120)
    })
    field.addEventListener("change", () => {
        const version = Number(field.value.replaceAll(/[ ,.]/g, ""))
        if (Number.isInteger(version)) move(version)
        else field.value = tree?.at ?? ""
    })

    const head = () => versionOf(follower.head ?? "x.0")
    const oldest = () => versionOf(follower.oldest)

    function move(version) {
        const at = version === null ? undefined
            : `${epochOf(follower.head)}.${Math.max(oldest(), Math.min(version, head()))}`
        context.go("state", { path: selected ?? undefined, at }, true)
    }

    // A pointer leads to its place; any other text is looked for in keys and values.
    async function goTo(text) {
        if (text === "") return
        if (text.startsWith("/")) return context.go("state", { path: text, at: parameters.at }, true)
        const mine = ++panelTurn
        selected = null
        parameters = { at: parameters.at }
        context.remember("state", parameters)
        list.refresh(true)
        split.classList.add("has-detail")
        const back = () => button("← State", () => split.classList.remove("has-detail"), { class: "back small" })
        fill(panel, back(), h("p", { class: "hint" }, "Looking…"))
        try {
            const { findView } = await import("./find.js")
            const found = await findView(context, tree, parameters.at, text)
            if (mine === panelTurn) fill(panel, back(), found)
        } catch (error) {
            if (mine === panelTurn) fill(panel, back(), h("p", { class: "error", role: "alert" }, error.message))
        }
    }

    const step = by => move((tree?.at ?? head()) + by)

    const onCommits = ({ detail: { commits, head: cursor } }) => {
        slider.max = versionOf(cursor)
        if (!tree || tree.version !== null) return
        tree.take(commits, cursor)
        drawTime(commits.at(-1))
        redraw()
        if (selected !== null
            && commits.some(commit => commit.patch.some(({ path }) => touches(path, selected)))) drawPanel()
    }
    const onJump = () => { if (tree?.version === null) show(parameters, true) }
    follower.addEventListener("commits", onCommits)
    follower.addEventListener("jump", onJump)

    const touches = (path, pointer) => path === pointer || path.startsWith(pointer + "/")
        || pointer.startsWith(path + "/")

    async function show(next, isAfresh = false) {
        parameters = next
        const cursor = await follower.aim(context.base)
        if (isClosed) return
        if (next.at && epochOf(next.at) !== epochOf(cursor)) {
            context.say("This address is of another history: the server has begun a new one since. The present is shown.", 20)
            next = { ...next, at: undefined }
        }
        const version = next.at ? versionOf(next.at) : null
        const isOther = !tree || tree.version !== version || isAfresh, place = next.path ?? ""
        if (isOther) plant(version)
        if (place !== selected && place !== "") await reveal(place)
        else if (isOther || place !== selected) choose(place, true)
    }

    function plant(version) {
        const before = tree
        const opened = before?.open
        if (before) before.isClosed = true
        tree = new StateTree({ base: context.base, model: context.model, cursor: follower.next, version,
            changed: () => fetched(), failed: error => { what.textContent = error.message } })
        if (opened) tree.open = opened
        slider.min = oldest()
        slider.max = head()
        if (version !== null) {
            const mine = tree
            fetchCommit(context.base, `${epochOf(follower.head)}.${version}`).then(commit => {
                if (!commit || mine !== tree) return
                mine.mark(commit.patch)
                drawTime(commit)
                redraw()
            }, () => {})
        }
        if (!list) {
            list = new VirtualList({
                role: "tree", label: "State", rowHeight: row(), source, draw, seen: sight,
                chosen: index => choose(lines.at(index).pointer), keys: (event, index) => press(event, index),
            })
            fill(listPlace, list.element)
        }
        drawTime()
        redraw()
    }

    function drawTime(commit) {
        slider.value = tree.at
        field.value = tree.at
        nowButton.setAttribute("aria-pressed", String(tree.version === null))
        const text = tree.version === null ? `The present, version ${count(tree.at)}`
            : `As it was at version ${count(tree.at)} of ${count(head())}`
        fill(what, text, commit && [". Marked: what ",
            link(commit.action === null ? "this commit" : foreign(typesOf(commit).slice(0, 2).join(", ")),
            context.address("live", { commit: commit.cursor })), " changed"])
    }

    // What was asked for is drawn together, unless it takes long: to draw takes longer than to fetch an entity.
    let frame, timer
    function fetched() {
        if (tree.isFetching) timer ??= setTimeout(drawSoon, 100)
        else drawSoon()
    }

    function drawSoon() {
        clearTimeout(timer)
        timer = null
        frame ??= requestAnimationFrame(() => {
            frame = null
            redraw()
            const part = selected === null || isClosed ? panelPart : tree.known(selected)
            if (part?.kind !== panelPart?.kind || part?.value !== panelPart?.value) drawPanel()
        })
    }

    function redraw() {
        if (isClosed) return
        lines = tree.lines()
        list.refresh(true)
    }

    // What is in sight is asked for; what has left it is not.
    function sight(first, last) {
        const wanted = new Set()
        for (let index = Math.max(0, first); index <= Math.min(last, lines.length - 1); index++) {
            const { pointer } = lines.at(index)
            if (!tree.known(pointer)) wanted.add(pointer)
        }
        for (const pointer of tree.open) if (!tree.known(pointer)) wanted.add(pointer)
        tree.wantOnly(wanted)
        for (const pointer of wanted) tree.want(pointer)
    }

    function draw(index, element) {
        const { key, pointer, depth } = lines.at(index), part = tree.known(pointer)
        const isOpen = tree.open.has(pointer)
        const hasTwist = canOpen(part)
        const isMarked = tree.marks.has(pointer)
        element.setAttribute("aria-level", depth + 1)
        if (hasTwist) element.setAttribute("aria-expanded", String(isOpen))
        else element.removeAttribute("aria-expanded")
        element.setAttribute("aria-selected", String(pointer === selected))
        element.classList.toggle("current", pointer === selected)
        element.classList.toggle("marked", isMarked)
        element.style.paddingLeft = `${8 + depth * 18}px`
        fill(element,
            h("span", { class: "twist", "aria-hidden": "true",
                onclick: event => { event.preventDefault(); toggle(pointer) } }, hasTwist ? (isOpen ? "▾" : "▸") : ""),
            h("span", { class: "key" }, pointer === "" ? "state" : foreign(key === "" ? '""' : key, 80)),
            h("span", { class: "value" }, h("bdi", {}, text(part))),
            isMarked && h("span", { class: "mark" }, "changed"))
    }

    function canOpen(part) {
        return !part || part.kind === "shape" || part.kind === "table"
            || (part.kind === "value" && isTree(part.value) && Object.keys(part.value).length > 0)
    }

    function text(part) {
        if (!part || part.kind === "fetching") return "…"
        if (part.kind === "value") return brief(part.value, 90)
        if (part.kind === "table") return plural(part.keys.length, "entity", "entities")
        if (part.kind === "shape") return ""
        if (part.kind === "absent") return "nothing here"
        return part.kind === "large" ? `${bytes(part.bytes)}: choose it to fetch it` : part.text
    }

    function toggle(pointer, isOpen = !tree.open.has(pointer)) {
        if (isOpen) tree.open.add(pointer)
        else for (const inner of [...tree.open]) if (inner === pointer
            || inner.startsWith(pointer + "/")) tree.open.delete(inner)
        if (isOpen) tree.want(pointer)
        redraw()
    }

    function press(event, index) {
        const { pointer } = lines.at(index)
        if (event.key === "ArrowRight") {
            if (tree.open.has(pointer)) list.move(index + 1)
            else toggle(pointer, true)
        } else if (event.key === "ArrowLeft") {
            if (tree.open.has(pointer) && pointer !== "") toggle(pointer, false)
            else for (let above = index - 1; above >= 0; above--) {
                if (lines.at(above).pointer === parent(pointer)) return list.move(above), true
            }
        } else if (event.key === " ") choose(pointer)
        else if (event.key in editKeys) {
            if (pointer !== selected) choose(pointer)
            const kind = editKeys[event.key].find(kind => editsOf(pointer).includes(kind))
            if (kind) edit(kind)
        }
        else if (event.key === "w") {
            choose(pointer)
            panel.querySelector(".who")?.click()
        } else return false
        return true
    }

    // Opens the way to a place, which may need what is around it first.
    async function reveal(pointer) {
        selected = pointer
        const ways = [pointer]
        for (let outer = pointer; outer !== ""; outer = parent(outer)) ways.unshift(parent(outer))
        for (const way of ways) {
            if (way !== pointer || !tree.known(way) || isTree(tree.known(way).value)
                || tree.known(way).keys) tree.open.add(way)
            tree.want(way)
            for (let turn = 0; turn < 100 && (tree.known(way)?.kind
                ?? "fetching") === "fetching"; turn++) await new Promise(resolve => setTimeout(resolve, 20))
        }
        if (isClosed) return
        redraw()
        for (let index = 0, most = lines.length; index < most; index++) {
            if (lines.at(index).pointer !== pointer) continue
            list.move(index)
            break
        }
        split.classList.toggle("has-detail", true)
        list.refresh(true)
        drawPanel()
    }

    function choose(pointer, isQuiet = false) {
        selected = pointer
        if (!isQuiet) {
            const part = tree.known(pointer)
            if (!tree.open.has(pointer) && (canOpen(part) || part?.kind === "fetching")) toggle(pointer, true)
            context.go("state", { path: pointer === "" ? undefined : pointer, at: parameters.at }, true)
            split.classList.add("has-detail")
        }
        list.refresh(true)
        drawPanel()
    }

    // How this client may change the place where it is seen.
    function editsOf(pointer) {
        const part = tree.known(pointer), value = part?.value, { can } = context
        if (!can.set || tree.version !== null || part?.isCut) return []
        const isObject = part?.kind === "table" || part?.kind === "shape" || isTree(value) && !Array.isArray(value)
        return [part?.kind === "value" && canEdit(stringify(value)) && "change", isObject && "add",
            Array.isArray(value) && "append",
            can.remove && pointer !== "" && part?.kind === "value" && canEdit(stringify(value)) && "remove"].filter(Boolean)
    }

    function edit(kind) {
        const pointer = selected
        editing = editor(context, { kind, pointer, seen: tree.known(pointer)?.value, done(changed, receipt) {
            editing = null
            if (receipt) context.say(receipt.changed ? `Saved as version ${count(receipt.version)}.` : "Nothing has changed.")
            if (receipt && kind === "remove") choose(parent(pointer))
            else drawPanel()
            list.element.focus()
        } })
        drawPanel()
        editing?.focus()
    }

    async function drawPanel() {
        if (selected === null) return
        const pointer = selected, mine = ++panelTurn
        const part = panelPart = tree.known(pointer)
        // What is being typed stays; the form says what has changed below it.
        if (editing?.pointer !== pointer || tree.version !== null) {
            editing?.close()
            editing = null
        } else if (panel.contains(editing.element)) {
            if (part?.kind === "value" || part?.kind === "absent") editing.told(part.value)
            return
        }
        let address
        try {
            address = `${context.base}/state${path(pointer)}${tree.version === null ? "" : `?version=${tree.version}`}`
        } catch { /* A browser has no address for it. */ }
        const facts = h("dl", { class: "facts" }), who = h("div", { class: "found", role: "status" })
        const cursor = `${epochOf(tree.cursor)}.${tree.at}`
        fill(panel,
            button("← State", () => split.classList.remove("has-detail"), { class: "back small" }),
            h("h2", {}, pointer === "" ? "The whole state" : h("bdi", { class: "mono" }, foreign(pointer, 300))),
            tree.version !== null && h("p", { class: "hint" }, `As it was at version ${count(tree.version)}. `,
                link("Now", context.address("state", { path: pointer || undefined }))),
            isTabular(part) && tree.version === null && h("div", { class: "buttons" },
                link("As a table", context.address("table", { path: pointer || undefined }), { class: "button" })),
            editing ? editing.element : editsOf(pointer).length > 0 && h("div", { class: "buttons" },
                editsOf(pointer).map(kind => button(editTitles[kind], () => edit(kind)))),
            facts,
            h("div", { class: "buttons" },
                button("Who changed this last?", event => whoDid(pointer, who, event.currentTarget), { class: "who" }),
                link("All commits of it", context.address("live", { path: pointer || undefined }), { class: "button" }),
                context.can.bisect && !context.fork && link("When did this happen", context.address("bisect",
                    { path: pointer, to: tree.version ?? undefined, ...plainTest(part) }), { class: "button" })),
            who,
            part?.kind === "large" && button(`Fetch ${bytes(part.bytes)}`, () => tree.want(pointer, true)),
            part?.kind === "value" && !editing && [h("h3", {}, "Value"),
                h("pre", { class: "json", tabindex: "0" }, h("bdi", {}, pretty(part.value)))],
            part?.kind === "absent" && h("p", { class: "hint" }, tree.version !== null ? "Nothing was here at this version." : context.can.set
                ? "Nothing is here now. Add it at the value around it." : "Nothing is here now. It appears when it comes."),
            tree.version !== null && context.can.restore && !context.fork && restoreForm(context,
                { version: tree.version }, { version: tree.version, title: `Make version ${count(tree.version)} the present` }),
            h("h3", {}, "To copy"),
            copyable("Pointer", pointer === "" ? '""' : pointer), copyable("Cursor", cursor),
            part?.isCut ? tree.version === null && copyable("All that this token sees", curl(context.base + VISIBLE))
                : address && copyable("This value", curl(address)))
        if (!address || part?.isCut || part?.kind === "absent") return
        // The tag of a large part costs the server its whole encoding, so it comes when it is asked for.
        if (part?.kind === "value") showTag()
        else facts.append(fact("ETag", button("Show", showTag, { class: "small", "aria-label": "Show its ETag" })))

        async function showTag() {
            try {
                const { etag, length, coding } = await request(address, { method: "HEAD" })
                if (mine !== panelTurn) return
                fill(facts, fact("ETag", h("code", {}, etag ?? "none")),
                    length > 0 && fact("Size", bytes(length) + (coding ? ` as ${coding}` : "")))
            } catch { /* A part that may not be seen as a whole has no tag; its members show theirs. */ }
        }
    }

    async function whoDid(pointer, place, control) {
        control.disabled = true
        let before = tree.version === null || tree.version >= head() ? "now"
            : `${epochOf(tree.cursor)}.${tree.version + 1}`
        try {
            for (;;) {
                const { value } = await get(`${context.base}/changes${query({ before, path: pointer, limit: 1 })}`)
                const commit = value.changes[0]
                if (commit) {
                    fill(place, answer(commit))
                    break
                }
                if (!value.more) {
                    fill(place, h("p", {}, "No commit that is still kept has changed this."))
                    break
                }
                before = value.next
                fill(place, h("p", { class: "hint" }, `Looked back to version ${count(versionOf(before))}…`))
            }
        } catch (error) {
            fill(place, h("p", { class: "error" }, error.message))
        }
        control.disabled = false
    }

    function answer(commit) {
        const time = new Date(commit.time)
        return h("p", {}, "Last changed by ", commit.by !== undefined
            && [h("strong", {}, foreign(commit.by)), " with "],
            link(commit.action === null ? "a commit whose action this token may not see"
                : foreign(typesOf(commit).slice(0, 3).join(", ")), context.address("live", { commit: commit.cursor })),
            `, version ${count(commit.version)}, `, h("time", { datetime: commit.time }, time.toLocaleString("en-GB")),
                commit.cause && ", as a follow-up", commit.by === undefined ? "; no author is recorded." : ".")
    }

    await show(parameters)
    return {
        update: show,
        keys: event => event.key === "p" ? (move(tree.version === null ? tree.at : null), true) : event.key === "/"
            ? (goal.focus(), true) : false,
        close() {
            isClosed = true
            if (tree) tree.isClosed = true
            follower.removeEventListener("commits", onCommits)
            follower.removeEventListener("jump", onJump)
            list?.close()
        },
    }
}
