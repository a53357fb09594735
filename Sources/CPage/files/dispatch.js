// An action by a form: tried first, sent once, refused at the field that is at fault.
import { curl, request } from "./api.js"
import { undo } from "./commit.js"
import { busy, button, copyable, fill, foreign, h, isBusy, link, quote, when } from "./dom.js"
import { patchView } from "./diff.js"
import { field } from "./form.js"
import { count, isEqual, parse, plural, stringify, visible } from "./json.js"
import { picker } from "./picker.js"

export async function open(main, parameters, context) {
    // A form belongs to the store in which it was begun, also when another one is in sight.
    const { base, fork } = context
    const catalogue = await context.catalogue()
    // What is typed and not dispatched, by store and type, for as long as the page is open; the form of an action that is
    // under way is kept whole, until its answer.
    const { drafts, kept } = context.model
    let current = null, trial = null
    const types = h("ul", { class: "types" }),
        finder = picker("Find an action", types, () => context.announce(plural(drawTypes(), "action")))
    const side = h("section", { class: "side", "aria-label": "The action" })
    const split = h("div", { class: "split narrow" },
        h("section", { class: "column", "aria-label": "Actions" },
            h("h2", { class: "aside" }, "Actions"), finder.field, types), side)
    fill(main, split)

    function drawTypes() {
        const words = finder.words()
        const found = catalogue.filter(({ type }) => words.every(word => type.toLowerCase().includes(word)))
        fill(types, found.slice(0, 500).map(({ type }) => h("li", {},
            link(foreign(type, 120), context.address("dispatch", { type }),
            type === current?.type ? { "aria-current": "true" } : {}))),
        found.length === 0 && h("li", { class: "hint" }, "No action is called like this."),
        found.length > 500 && h("li", { class: "hint" }, `${count(found.length - 500)} more; type a part of the name.`))
        return found.length
    }

    function show(next) {
        const entry = catalogue.find(({ type }) => type === next.type)
        split.classList.toggle("has-detail", Boolean(next.type))
        if (entry && entry === current && !next.payload) return
        trial?.abort()
        current = entry
        const isChosen = finder.hasFocus()
        drawTypes()
        if (!entry) {
            fill(side, h("div", { class: "detail" }, next.type
                ? h("p", { class: "error" }, "This client has no action of this type.")
                    : h("p", {}, "Choose the action to dispatch.")))
            return
        }
        const draft = `${base} ${stringify(entry)}`, sent = kept.get(`dispatch ${draft}`)
        if (sent) {
            fill(side, sent.element)
            return
        }
        const emptyForm = () => field(entry.payload, { label: "Payload", pointer: "/payload" })
        const form = !next.payload && drafts.get(draft) || emptyForm()
        const isEmpty = Object.keys(entry.payload.properties ?? {}).length === 0
            && entry.payload.additionalProperties === undefined
        let isInAddress = next.payload !== undefined
        if (isInAddress) {
            try { form.set(parse(next.payload)) } catch { /* A broken address gives an empty form. */ }
        }
        // Until something is typed into it, it has the action of the form.
        const raw = h("textarea", { class: "json mono", spellcheck: "false", "aria-label": "The action as JSON" })
        let isRaw = false
        const follow = () => { if (!isRaw) raw.value = body() }
        const rawPlace = h("details", { class: "raw", ontoggle: follow, oninput: () => { isRaw = true } },
            h("summary", {}, "The action as JSON"),
            h("p", { class: "hint" }, "What you change here is sent in place of the form, for as long as this is open."), raw,
            h("div", { class: "buttons" }, button("Take it into the form", takeIn, { class: "small" })))
        const outcome = h("div", { class: "outcome", role: "status" })
        const preview = button("Preview", () => run(true))
        const submit = h("button", { class: "primary" }, fork ? "Dispatch in the fork" : "Dispatch")
        const element = h("form", { class: "detail action", novalidate: true,
            onsubmit: event => { event.preventDefault(); run(false) },
            // What was answered is of another text.
            oninput: event => {
                if (!rawPlace.contains(event.target)) {
                    drafts.set(draft, form)
                    follow()
                    if (isInAddress) {
                        // The way back leads to what is typed, and not to what a link has brought.
                        isInAddress = false
                        context.remember("dispatch", { type: entry.type })
                    }
                }
                if (!isBusy(submit)) {
                    forget()
                    fill(outcome)
                }
            },
            onkeydown: event => { if (event.key === "Enter"
                && event.ctrlKey) { event.preventDefault(); run(false) } } },
            link("← Actions", context.address("dispatch"), { class: "back" }),
            h("h2", {}, foreign(entry.type)),
            fork && h("p", { class: "hint" }, "In a fork: the present is not touched."),
            form.element, h("div", { class: "buttons" }, preview, submit), outcome, rawPlace)
        fill(side, element)
        // A keyboard goes on in the form; on a phone that would cover it.
        const first = form.element.querySelector("input, select, textarea") ?? submit
        if (isChosen && matchMedia("(pointer: fine)").matches) first.focus()

        function body() {
            const payload = form.text()
            return isEmpty && payload === "{}" ? `{"type":${stringify(entry.type)}}`
                : `{"type":${stringify(entry.type)},"payload":${payload}}`
        }

        // The form has a type and a payload that its fields can hold; nothing of an action is left out without a word.
        function takeIn() {
            try {
                const { type, payload = {}, ...others } = parse(raw.value), trial = emptyForm()
                trial.set(payload)
                if (type === entry.type && Object.keys(others).length === 0 && isEqual(parse(trial.text()), payload)) {
                    form.set(payload)
                    drafts.set(draft, form)
                    isRaw = false
                    forget()
                    return fill(outcome)
                }
                fill(outcome, h("p", { class: "error" },
                    "The form cannot hold all of this. Dispatch sends it as it stands here."))
            } catch (error) {
                fill(outcome, h("p", { class: "error" }, `This is not JSON: ${visible(error.message)}`))
            }
        }

        function forget() { form.refuse(null, null) }

        async function run(isDry) {
            if (isBusy(submit) || !isDry && !await context.confirmed(base)) return
            forget()
            const asText = isRaw && rawPlace.open, fault = !asText && form.check()
            if (fault) return fault.focus()
            const mine = new AbortController()
            if (isDry) trial = mine
            else kept.set(`dispatch ${draft}`, { element, close: () => mine.abort() })
            busy(true, submit, preview)
            fill(outcome, h("p", { class: "hint" }, isDry ? "Trying…" : "Sending…"))
            const onRetry = error => fill(outcome, h("p", {}, context.delay(error)),
                button("Give up", () => mine.abort(), { class: "small" }))
            const text = asText ? raw.value : body(), payload = form.text()
            const address = `${base}/actions${isDry ? "?dry-run" : ""}`
            try {
                const found = isDry ? (await request(address,
                    { method: "POST", body: text, signal: mine.signal })).value
                    : await context.dispatch(text, { base, headers: { Prefer: "wait=5" }, signal: mine.signal, onRetry })
                if (!isDry && found && !asText && drafts.get(draft) === form && form.text() === payload) drafts.delete(draft)
                fill(outcome, found ? [isDry ? dryRun(found, text) : receipt(found), h("h3", {}, "To copy"),
                    copyable(isDry ? "This dry run" : "This action", `${curl(address, ` --json ${quote(text)}`)}`)]
                    : h("p", {}, "Nothing was sent."))
            } catch (error) {
                if (mine.signal.aborted) fill(outcome, h("p", {},
                    "Given up. Whether the action was committed is shown by the commits."))
                else refused(error, isDry, asText)
            }
            busy(false, submit, preview)
            if (isDry) return
            kept.delete(`dispatch ${draft}`)
            if (!mine.signal.aborted && !element.isConnected) {
                context.say(`${visible(entry.type)}: ${outcome.querySelector("p").textContent}`, 20)
            }
        }

        function refused(error, isDry, asText) {
            let first = asText ? raw : null
            for (const { pointer, detail } of asText ? [] : error.errors ?? []) {
                const target = form.refuse(pointer, visible(detail))
                first ??= target
            }
            fill(outcome, h("div", { class: "refusal" },
                h("p", {}, h("strong", {}, isDry ? "It would be refused. " : "Refused: nothing was changed. "),
                    visible(error.message)),
                asText && error.errors?.map(({ pointer, detail }) => h("p", {}, foreign(pointer), ": ", visible(detail))),
                error.code && h("p", { class: "hint" }, "Code ", h("code", {}, foreign(error.code)),
                    error.status && `, status ${error.status}`),
                error.body?.expected !== undefined && h("p", {},
                    `Expected ${stringify(error.body.expected)}, found ${stringify(error.body.actual ?? null)}.`)))
            first?.focus()
        }

        const place = pointer => link(foreign(pointer === "" ? "the whole state" : pointer),
            context.address("state", { path: pointer }))

        function dryRun(value, text) {
            const isLater = [parse(text)].flat().some(({ schedule }) => schedule)
            return [h("h3", {}, value.changed ? "It would change" : isLater ? "It would be scheduled, and change nothing until then"
                : "It would change nothing"),
                value.changed && patchView(base, value.patch, null, place)]
        }

        function receipt(value) {
            if (!value || value.committed === false) return h("p", {},
                "The server took the action and made no commit of it.")
            if (value.cursor === undefined) return h("p", {}, value.detail ?? "The action is on its way.")
            const to = ({ cursor, version }) => link(h("span", { class: "number" }, count(version)),
                context.address("live", { commit: cursor }))
            const scheduled = value.due ? [value] : value.scheduled ?? []
            return h("div", { class: "receipt" },
                h("p", {}, h("strong", {}, "Committed"), fork && " in the fork", " as version ", to(value),
                    value.changed || scheduled.length > 0 ? "." : "; the state is the same as before."),
                scheduled.map(({ name, due }) => h("p", {}, h("strong", {}, "Scheduled"), " as ", foreign(name, 80), " for ",
                    when(due), ". It stands under ", link("Pending", context.address("pending")), " until then.")),
                value.changed && context.can.patch && context.can.seeState && h("div", { class: "buttons" },
                    button("Undo", event => undo(context, base, value.cursor, event.currentTarget), { class: "small" })),
                value.caused?.length > 0
                    && [h("p", {}, `It caused ${plural(value.causedCount ?? value.caused.length, "commit")}:`),
                    h("ul", { class: "cascade" }, value.caused.slice(0,
                        50).map(caused => h("li", {}, to(caused), " ", foreign(caused.types.join(", ")))))],
                value.refused?.length > 0 && [h("p", {}, "Refused of what it caused:"),
                    h("ul", { class: "cascade" }, value.refused.map(refused => h("li", {}, foreign(refused.type), ": ",
                        foreign(refused.detail))))],
                value.settled === false && h("p", { class: "hint" },
                    "It still goes on; its commits appear under Live."),
                value.settled === true && value.caused?.length === 0
                    && h("p", { class: "hint" }, "Nothing followed from it."))
        }
    }

    drawTypes()
    show(parameters)
    return {
        update: show,
        keys: finder.keys,
        close() { trial?.abort() },
    }
}
