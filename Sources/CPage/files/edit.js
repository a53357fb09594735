// A place of the document is changed where it is seen: its value, a new member of it, or its removal. What is saved
// holds only where the place still is as it was seen; a change of another client meanwhile is told.
import { curl, get, request, VALUE_BYTES_MAX } from "./api.js"
import { busy, button, copyable, fill, foreign, h, isBusy, labelled, name, quote, refill } from "./dom.js"
import { patchView } from "./diff.js"
import { lastChange } from "./history.js"
import { byteCount, child, faultOf, isTree, lastToken, parent, parse, path, pretty, stringify, visible } from "./json.js"

const BYTES_MAX = 256_000
export const canEdit = text => byteCount(text) <= BYTES_MAX

const titles = { change: "Edit the value", add: "Add a member", append: "Add an element", remove: "Remove it" }
const verbs = { change: "Save", add: "Add", append: "Add", remove: "Remove" }

// A value as JSON or as plain text; `text()` is its JSON, or undefined with the fault at the field.
function valueField(value, onSave) {
    const area = h("textarea", { class: "mono", rows: 3, spellcheck: "false", autocomplete: "off", id: name("value"),
        onkeydown: event => {
            // A number, true, false and null have one line.
            const isPlain = () => kind.value === "json" && written() !== undefined && typeof written() !== "string"
                && !isTree(written())
            if (event.key !== "Enter" || event.shiftKey || !(event.ctrlKey || isPlain())) return
            event.preventDefault()
            onSave()
        } })
    const fault = h("p", { class: "error", id: `${area.id}-error`, role: "alert", hidden: true })
    area.setAttribute("aria-describedby", fault.id)
    const rewrite = () => {
        // What is JSON stays as it was typed; another text gets its quotes, and loses them.
        const now = written()
        if (kind.value === "json" ? now === undefined : typeof now === "string") {
            area.value = kind.value === "json" ? stringify(area.value) : now
        }
        refuse("")
        doubt.hidden = true
    }
    const kind = h("select", { onchange: rewrite }, h("option", { value: "json" }, "JSON"),
        h("option", { value: "text" }, "Text"))
    const doubt = h("p", { class: "hint", role: "status", hidden: true },
        "This looks like JSON. As Text it becomes a string. ",
        button("Use JSON", () => { kind.value = "json"; rewrite(); area.focus() }, { class: "small" }))
    area.addEventListener("input", () => { doubt.hidden = kind.value === "json" || written() === undefined })
    const written = () => { try { return parse(area.value) } catch { /* It is not JSON. */ } }
    const refuse = sentence => {
        area.toggleAttribute("aria-invalid", false)
        if (sentence) area.setAttribute("aria-invalid", "true")
        fault.textContent = sentence
        fault.hidden = !sentence
    }
    function set(value) {
        kind.value = typeof value === "string" ? "text" : "json"
        area.value = typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? ""
        refuse("")
        doubt.hidden = true
    }
    set(value)
    return {
        set, control: area,
        element: h("div", { class: "written" }, labelled("Value", area), labelled("Written as", kind), doubt, fault),
        text() {
            refuse("")
            if (kind.value === "text") return stringify(area.value)
            const sentence = faultOf(area.value, "Choose Text for a text without quotes.")
            if (!sentence) return area.value.trim()
            refuse(sentence)
            area.focus()
        },
    }
}

const isObject = value => isTree(value) && !Array.isArray(value)

// What a change of the place depends on, as tests of an action. A new member is one that is not there, and a new element
// comes behind the last one that was seen, however long the list is.
function testsOf(kind, pointer, seen, to) {
    const test = (path, value) => value === undefined ? { path, absent: true } : { path, value }
    if (kind === "add") return [test(to, undefined)]
    if (kind !== "append") return [test(pointer, seen)]
    if (!seen?.length) return [test(pointer, seen)]
    const last = seen.at(-1)
    return [test(child(pointer, seen.length), undefined),
        ...canEdit(stringify(last)) ? [test(child(pointer, seen.length - 1), last)] : []]
}

// An empty value in the shape that all values in an object or a list have, or undefined.
function emptyOf(around) {
    const values = isTree(around) ? Object.values(around) : [], [first] = values
    if (values.length > 0 && values.every(value => typeof value === "string")) return ""
    if (!values.every(isObject)) return
    const keys = Object.keys(first ?? {})
    const isAlike = value => Object.keys(value).length === keys.length && keys.every(key => Object.hasOwn(value, key))
    if (keys.length > 0 && values.every(isAlike)) {
        return Object.fromEntries(keys.map(key => [key, empty(values.map(value => value[key]))]))
    }
}

const kindOf = value => value === null ? "null" : Array.isArray(value) ? "list" : isTree(value) ? "object"
    : typeof value === "object" ? "number" : typeof value
const empty = values => values.every(value => kindOf(value) === kindOf(values[0]))
    ? { string: "", number: 0, boolean: false, list: [], object: {} }[kindOf(values[0])] ?? null : null

// The action that takes a change back while the place is as it was saved, where the client may dispatch it. `around` is
// the value around a place that is removed.
function inverse(can, kind, pointer, { seen, saved, around }) {
    const action = (type, path, value, expected) => can[type] && `{"type":"document/${type}","payload":{"path":${stringify(path)}`
        + `${value === undefined ? "" : `,"value":${stringify(value)}`}},"expect":[${expected}]}`
    const is = (path, text) => `{"path":${stringify(path)},${text === undefined ? '"absent":true' : `"value":${text}`}}`
    if (kind === "remove") {
        if (!Array.isArray(around)) return action("set", pointer, seen, is(pointer))
        const rest = stringify(around.toSpliced(Number(lastToken(pointer)), 1))
        return canEdit(rest) ? action("add", pointer, seen, is(parent(pointer), rest)) : undefined
    }
    if (kind === "change" && seen !== undefined) return action("set", pointer, seen, is(pointer, saved))
    const path = kind === "append" ? child(parent(pointer), seen.length) : pointer
    return action("remove", path, undefined, is(path, saved))
}

// A form for one change of the place. `seen` is the value there (of `add` and `append`: around the new one), `around` that
// around the place; the form's `done`, which may be set later, is called with the pointer that has changed, the receipt and
// the action that takes it back, or with nothing where the form is given up.
export function editor(context, { kind, pointer, seen, around, done, member = "", initial, isAlone = false }) {
    let control, isSending = false
    // A form that is sent belongs to the store in which it was begun, also when another one is in sight.
    const { base, fork } = context
    const isNew = kind === "add" || kind === "append"
    const key = kind === "add" && h("input", { type: "text", autocomplete: "off", spellcheck: "false",
        value: member })
    const value = kind !== "remove" && valueField(isNew ? initial ?? emptyOf(seen) : seen, () => element.requestSubmit())
    const seconds = kind !== "remove" && kind !== "append" && context.can.expire
        && h("input", { type: "text", inputmode: "decimal", autocomplete: "off" })
    const news = h("div", { role: "status" }), outcome = h("div", { class: "outcome", role: "status" })
    const verb = verbs[kind] + (fork ? " in the fork" : "")
    const buttons = [button("Preview", () => run(true)), h("button", { class: "primary" }, verb),
        !isAlone && button("Cancel", () => giveUp())]
    const entrance = () => key || value?.control || buttons[0]
    const element = h("form", { class: "edit", novalidate: true, "aria-label": titles[kind],
        onsubmit: event => { event.preventDefault(); run(false) },
        onkeydown: event => { if (event.key === "Escape" && !isAlone) { event.stopPropagation(); giveUp() } } },
        h("h3", {}, titles[kind]), news,
        key && labelled("Name", key), value?.element,
        kind === "remove" && h("p", {}, "The place and all that is in it goes. The history keeps it."),
        seconds && labelled("Expires after", seconds, "seconds; empty: never"),
        h("div", { class: "buttons" }, buttons), outcome)

    const place = () => kind === "add" ? child(pointer, key.value) : kind === "append" ? `${pointer}/-` : pointer

    // A member is added by an action that makes no object on the way, where the client may dispatch it: an object that is
    // removed meanwhile does not come back.
    const type = kind === "remove" ? "document/remove" : isNew && context.can.add ? "document/add" : "document/set"
    const tests = value => stringify(testsOf(kind, pointer, value, place()))
    let before = tests(seen)

    // The action as JSON text, so that digits stay as they are; undefined where a field is at fault.
    function body() {
        const text = value ? value.text() : null
        if (text === undefined) return
        const isWrong = seconds?.value?.trim()
            && !(Number(seconds.value) > 0 && Number.isFinite(Number(seconds.value)))
        seconds?.setAttribute?.("aria-invalid", String(Boolean(isWrong)))
        if (isWrong) {
            fill(outcome, h("p", { class: "error" },
                "Expires after: write a number of seconds, such as 30, or nothing."))
            seconds.focus()
            return
        }
        const payload = [`"path":${stringify(place())}`, value && `"value":${text}`,
            seconds?.value?.trim() && `"ttl":${stringify(Number(seconds.value))}`].filter(Boolean).join(",")
        return `{"type":"${type}","payload":{${payload}},"expect":${kind === "add" ? tests() : before}}`
    }

    // What is under way ends with the form.
    function giveUp() {
        if (isSending) context.say("Given up. Whether it was committed is shown by the commits.", 20)
        control?.abort()
        form.done()
    }

    async function run(isDry) {
        const text = body(), saved = value && value.text()
        if (text === undefined || isBusy(buttons[1])) return
        const mine = control = new AbortController()
        isSending = !isDry
        busy(true, ...buttons.slice(0, 2))
        fill(outcome, h("p", { class: "hint" }, isDry ? "Trying…" : "Saving…"))
        try {
            const address = `${base}/actions${isDry ? "?dry-run" : ""}`
            const found = isDry ? (await request(address, { method: "POST", body: text, signal: mine.signal })).value
                : await context.dispatch(text, { base, signal: mine.signal, onRetry: error =>
                    fill(outcome, h("p", { class: "hint" }, context.delay(error))) })
            if (isDry) fill(outcome, h("h4", {}, found.changed ? "It would change" : "It would change nothing"),
                found.changed && patchView(base, found.patch, null, pointer => foreign(pointer || "the whole state")),
                copyable("This action", curl(`${base}/actions`, ` --json ${quote(text)}`)))
            else if (found) return form.done(kind === "append" ? child(pointer, seen.length) : place(), found,
                inverse(context.can, kind, place(), { seen, saved, around }))
            else fill(outcome)
        } catch (error) {
            if (mine.signal.aborted) return
            if (error.status === 409 || error.status === 412 && kind !== "add") await look().catch(() => {})
            fill(outcome, h("p", { class: "error" }, error.status !== 412 ? visible(error.message)
                : kind === "add" ? "There is a member of this name already. Choose another name, or edit that one."
                    : `Nothing is changed: the ${kind === "append" ? "list" : "value"} is not the one that you have seen.`))
        } finally {
            isSending = false
            busy(false, ...buttons.slice(0, 2))
        }
    }

    const look = () => get(`${base}/state${path(pointer)}`, { largest: VALUE_BYTES_MAX }).then(found => {
        if (!found.isTooLarge) told(found.value)
    }, error => {
        if (error.status === 404) told(undefined)
    })

    // Whether the change still fits the place, which is now so.
    const fits = now => kind === "add" ? isObject(now) && !Object.hasOwn(now, key.value)
        : (kind !== "append" || Array.isArray(now)) && tests(now) === before

    // The place is now so: where that is not what the form began with, it is said, and nothing typed is lost.
    function told(now) {
        const isTaken = kind === "add" && isObject(now)
        if (!fits(now)) fill(outcome)
        refill(news, fits(now) || [now === undefined, now, key?.value], () => fits(now) ? []
            : h("div", { class: "refusal" },
            h("p", {}, h("strong", {}, isTaken ? "There is a member of this name now." : [changer(),
                now === undefined ? " has removed this meanwhile." : " has changed this meanwhile."]),
            now !== undefined && (isTaken ? " It is:" : " Now it is:")),
            now !== undefined && h("pre", { class: "json", tabindex: "0" },
                h("bdi", {}, pretty(isTaken ? now[key.value] : now, 12))),
            h("div", { class: "buttons" },
                kind === "change" && now !== undefined
                    && button("Edit the newer value", () => take(now, true), { class: "small" }),
                kind === "change" && button("Keep mine", () => take(now), { class: "small" }),
                kind === "append" && Array.isArray(now)
                    && button("Add it all the same", () => take(now), { class: "small" }),
                kind === "remove" && now !== undefined
                    && button("Remove it all the same", () => take(now), { class: "small" }))))
    }

    // The author of the last change, once the history has named one.
    function changer() {
        const name = h("span", {}, "Another client")
        lastChange(base, pointer)
            .then(({ by }) => { if (by !== undefined) fill(name, foreign(by, 60)) }).catch(() => { /* It stays so. */ })
        return name
    }

    function take(now, isWritten) {
        seen = now
        before = tests(now)
        if (isWritten) value.set(now)
        told(now)
        fill(outcome, !isWritten && h("p", {}, `Nothing is saved yet: press ${verb}.`))
        entrance().focus()
    }

    const form = { kind, pointer, base, fork, element, told, done, focus: () => entrance().focus(), close: () => control?.abort() }
    return form
}
