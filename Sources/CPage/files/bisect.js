// The first commit after which a test of the state holds.
import { curl, get, request } from "./api.js"
import { button, copyable, fill, foreign, h, labelled, link, quote } from "./dom.js"
import { typesOf } from "./commit.js"
import { patchView } from "./diff.js"
import { count, parse, plural, stringify } from "./json.js"

const withValue = new Set(["value", "minimum", "maximum"])
const tests = [
    ["repeats", "has a repeat (a list)"], ["value", "equals"], ["minimum", "is at least"], ["maximum", "is at most"],
    ["exists", "exists"], ["absent", "does not exist"],
]

export async function open(main, parameters, context) {
    let control
    const path = h("input", { type: "text", id: "path", spellcheck: "false", autocomplete: "off",
        placeholder: "/pointer" })
    const test = h("select", { id: "test", onchange: () => { valuePlace.hidden = !withValue.has(test.value) } },
        tests.map(([value, text]) => h("option", { value }, text)))
    const value = h("input", { type: "text", class: "mono", spellcheck: "false", autocomplete: "off" })
    const valuePlace = labelled("Value", value, "JSON")
    const from = h("input", { type: "text", inputmode: "numeric", autocomplete: "off" }),
        to = h("input", { type: "text", inputmode: "numeric", autocomplete: "off" })
    const outcome = h("section", { role: "status", "aria-label": "What was found" })
    fill(main, h("div", { class: "page" }, h("h2", {}, "When did this happen?"),
        h("p", { class: "hint" },
            "Names the first commit after which the test holds. It must not hold at the first version and hold at the last."),
        h("form",
            { class: "ways", onsubmit: event => { event.preventDefault(); context.go("bisect", now(), true); run() } },
            h("div", { class: "columns" }, labelled("What is at", path, "JSON Pointer"), labelled("Test", test),
                valuePlace),
            h("div", { class: "columns" }, labelled("From version", from, "empty: the oldest"),
                labelled("To version", to, "empty: now")),
            h("div", { class: "buttons" }, h("button", { class: "primary" }, "Find the commit"))), outcome))

    const now = () => ({ path: path.value.trim(), test: test.value,
        value: withValue.has(test.value) ? value.value : undefined, from: from.value.trim(), to: to.value.trim() })

    function show(next) {
        path.value = next.path ?? ""
        test.value = tests.some(([name]) => name === next.test) ? next.test : "repeats"
        value.value = next.value ?? ""
        from.value = next.from ?? ""
        to.value = next.to ?? ""
        valuePlace.hidden = !withValue.has(test.value)
    }

    async function run() {
        control?.abort()
        const mine = control = new AbortController()
        fill(outcome, h("p", { class: "hint" }, "Looking…"))
        try {
            const { value: { epoch } } = await get("/v1", { signal: mine.signal })
            const asked = { path: path.value.trim() }
            if (test.value === "repeats") asked.repeats = true
            else if (withValue.has(test.value)) asked[test.value] = parse(value.value)
            else asked.exists = test.value === "exists"
            const cursor = field => field.value.trim() === "" ? undefined
                : `${epoch}.${field.value.replaceAll(/[ ,]/g, "")}`
            const body = stringify({ test: asked, from: cursor(from), to: cursor(to) })
            const { value: found } = await request("/v1/bisect", { method: "POST", body, signal: mine.signal })
            fill(outcome, found.found ? answer(found) : h("p", { class: "found" }, h("strong", {},
                found.reason === "holds-at-start" ? "It holds at the first version already."
                    : "It does not hold at the last version."), found.reason === "holds-at-start"
                ? " Give a version before it became so as From version."
                : " Where it did once, give a version at which it held as To version.",
            ` ${plural(found.looks, "look")} at the state.`),
            copyable("This search", curl("/v1/bisect", ` --json ${quote(body)}`)))
        } catch (error) {
            if (!mine.signal.aborted) fill(outcome, h("p", { class: "error" },
                error instanceof SyntaxError ? "The value is not JSON. A text stands in quotes." : error.message))
        }
    }

    function answer({ commit, looks }) {
        return [
            h("p", { class: "found" }, "It holds since version ",
                link(count(commit.version), context.address("live", { commit: commit.cursor })), ", by ",
                h("strong", {}, commit.action === null ? "an action that this token may not see"
                    : foreign(typesOf(commit).join(", "))),
                commit.by !== undefined && [" of ", h("strong", {}, foreign(commit.by))],
                    `. ${plural(looks, "look")} at the state.`),
            h("div", { class: "buttons" }, link("The commit", context.address("live", { commit: commit.cursor }),
                { class: "button" }),
                context.can.fork && commit.action !== null && !commit.cause
                    && button("See it without this", event => context.undo(commit, event.currentTarget))),
            h("h3", {}, "What it changed"),
            patchView("/v1", commit.patch, commit.version - 1,
                pointer => link(foreign(pointer || "the whole state"),
                context.address("state", { at: commit.cursor, path: pointer }))),
        ]
    }

    function update(next) {
        const before = stringify(now())
        show(next)
        if (next.path !== undefined && next.test && stringify(now()) !== before) run()
    }

    update(parameters)
    return { update, close() { control?.abort() } }
}
