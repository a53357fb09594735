// The state as a tree, now or at any version; beside it the place that is chosen there.
import { epochOf, versionOf } from "./api.js"
import { button, fill, foreign, h, labelled, link } from "./dom.js"
import { fetchCommit, typesOf } from "./commit.js"
import { brief, bytes, count, isTree, isWithin, parent, plural } from "./json.js"
import { placePanel } from "./place.js"
import { StateTree } from "./tree.js"
import { viewPanel, viewsOf } from "./views.js"
import { VirtualList } from "./list.js"

// A finger needs 44 pixels.
const row = () => matchMedia("(max-width: 760px), (pointer: coarse)").matches ? 44 : 28
export async function open(main, parameters, context) {
    const follower = context.follower
    let tree, list, lines = { length: 0 }, selected = null, isClosed = false
    const slider = h("input", { type: "range", id: "slider", "aria-label": "Version", min: 0, max: 0 })
    const field = h("input", { type: "text", inputmode: "numeric", id: "version", "aria-label": "Version",
        autocomplete: "off" })
    const nowButton = button("Now", () => move(null), { "aria-pressed": "true" })
    const what = h("p", { class: "hint total" })
    const goal = h("input", { type: "search", autocomplete: "off", spellcheck: "false",
        placeholder: "/pointer, or a text to find" })
    const listPlace = h("div", { class: "list-place" }), views = h("p", { class: "hint total", hidden: true })
    const panel = placePanel(context, { head: () => head(), choose: pointer => choose(pointer), leave })
    const left = h("section", { class: "column", "aria-labelledby": "state-title" },
        h("h2", { id: "state-title", class: "aside" }, "State"),
        h("div", { class: "bar time" }, button("◀", () => step(-1), { "aria-label": "One version back" }), slider,
            button("▶", () => step(1), { "aria-label": "One version on" }), field, nowButton),
        h("form", { class: "bar goal", onsubmit: event => { event.preventDefault(); goTo(goal.value.trim()) } },
            labelled("Go to", goal), h("button", {}, "Go")),
        what, views, listPlace)
    const split = h("div", { class: "split" }, left,
        h("section", { class: "side", "aria-label": "The chosen part" }, panel.element))
    fill(main, split)

    const source = {
        get length() { return lines.length },
        key: index => lines.at(index).pointer,
        place: index => lines.at(index),
    }

    let sliding
    slider.addEventListener("input", () => {
        field.value = slider.value
        clearTimeout(sliding)
        sliding = setTimeout(() => move(Number(slider.value)), 120)
    })
    field.addEventListener("change", () => {
        const version = Number(field.value.replaceAll(/[ ,.]/g, ""))
        if (field.value.trim() !== "" && Number.isInteger(version)) move(version)
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
        selected = null
        parameters = { at: parameters.at }
        context.remember("state", parameters)
        list.refresh(true)
        split.classList.add("has-detail")
        await panel.showOther(async () => (await import("./find.js")).findView(context, tree, parameters.at, text))
    }

    // Back to the tree: on a narrow screen it has given way to the place, unless only a form of it is done.
    function leave(isStaying = false) {
        if (!isStaying) split.classList.remove("has-detail")
        if (left.offsetParent) list.element.focus()
        else panel.element.focus()
    }

    const step = by => move((tree?.at ?? head()) + by)

    const onCommits = ({ detail: { commits, head: cursor } }) => {
        slider.max = versionOf(cursor)
        if (!tree || tree.version !== null) return
        tree.take(commits, cursor)
        drawTime(commits.at(-1))
        redraw()
        if (selected !== null
            && commits.some(commit => commit.patch.some(({ path }) => touches(path, selected)))) panel.changed()
        else panel.moved()
    }
    const onJump = () => { if (tree?.version === null) show(parameters, true) }
    follower.addEventListener("commits", onCommits)
    follower.addEventListener("jump", onJump)

    const touches = (path, pointer) => isWithin(path, pointer) || isWithin(pointer, path)

    async function show(next, isAfresh = false) {
        parameters = next
        const cursor = await follower.aim(context.base)
        if (isClosed || parameters !== next) return
        if (next.at && epochOf(next.at) !== epochOf(cursor)) {
            context.say("This address is of another history: the server has begun a new one since. The present is shown.", 20)
            parameters = next = { ...next, at: undefined }
            context.remember("state", parameters)
        }
        const version = next.at ? versionOf(next.at) : null
        const isOther = !tree || tree.version !== version || isAfresh, place = next.path ?? ""
        if (isOther) plant(version)
        if (next.view !== undefined) {
            selected = null
            split.classList.add("has-detail")
            await panel.showOther(() => viewPanel(context, next.view))
        } else if (place !== selected && place !== "") await reveal(place)
        else if (isOther || place !== selected) choose(place, true)
        if (!next.edit) return
        // Who loads the page again wants to see the place.
        context.remember("state", { path: next.path, at: next.at })
        panel.press("e")
    }

    function plant(version) {
        const before = tree
        const opened = before?.open
        if (before) before.isClosed = true
        tree = new StateTree({ base: context.base, model: context.model, cursor: follower.next, version,
            changed: () => fetched(), failed: error => { what.textContent = error.message; context.announce(error.message) } })
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
                // A value without members is edited.
                opened: index => !canOpen(tree.known(lines.at(index).pointer)) && press({ key: "e" }, index),
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
        const text = tree.version !== null
            ? `As it was ${context.fork ? "in the fork " : ""}at version ${count(tree.at)} of ${count(head())}`
            : context.fork ? `Fork ${context.fork}, version ${count(tree.at)}: not the present`
                : `The present, version ${count(tree.at)}`
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
            if (!isClosed) panel.refresh()
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
        else {
            if (pointer !== selected && ["w", "e", "a", "Delete"].includes(event.key)) choose(pointer)
            return panel.press(event.key)
        }
        return true
    }

    // Opens the way to a place, which may need what is around it first.
    async function reveal(pointer) {
        selected = pointer
        const mine = tree
        const ways = [pointer]
        for (let outer = pointer; outer !== ""; outer = parent(outer)) ways.unshift(parent(outer))
        for (const way of ways) {
            if (way !== pointer || !tree.known(way) || isTree(tree.known(way).value)
                || tree.known(way).keys) tree.open.add(way)
            tree.want(way)
            for (let turn = 0; turn < 100 && (tree.known(way)?.kind
                ?? "fetching") === "fetching"; turn++) await new Promise(resolve => setTimeout(resolve, 20))
        }
        // Another place or version has been chosen meanwhile.
        if (isClosed || selected !== pointer || mine !== tree) return
        redraw()
        for (let index = 0, most = lines.length; index < most; index++) {
            if (lines.at(index).pointer !== pointer) continue
            list.move(index)
            break
        }
        split.classList.add("has-detail")
        list.refresh(true)
        panel.show(tree, pointer)
    }

    function choose(pointer, isQuiet = false) {
        selected = pointer
        if (!isQuiet) {
            const part = tree.known(pointer)
            if (!tree.open.has(pointer) && (canOpen(part) || part?.kind === "fetching")) toggle(pointer, true)
            context.go("state", { path: pointer === "" ? undefined : pointer, at: parameters.at }, true)
            split.classList.add("has-detail")
            if (!left.offsetParent) panel.element.focus()
        }
        list.refresh(true)
        panel.show(tree, pointer)
    }

    viewsOf(context.base).then(found => {
        views.hidden = found.length === 0
        fill(views, "Views: ", found.map(({ name }, index) => [index > 0 && ", ",
            link(foreign(name, 80), context.address("state", { view: name }))]))
    }, () => { /* Without them there is the tree. */ })
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
            panel.close()
            list?.close()
        },
    }
}
