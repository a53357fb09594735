// Forks: the history run again in memory, without some actions or with others, beside the present.
import { get, pause, request, versionOf } from "./api.js"
import { button, fact, fill, foreign, h, labelled, link, when } from "./dom.js"
import { waysToCommit } from "./commit.js"
import { count, parse, plural } from "./json.js"

export async function open(main, parameters, context) {
    const control = new AbortController()
    const list = h("div", { tabindex: "-1" }), outcome = h("div", { role: "status" }), inserts = h("div", { class: "rows" })
    const number = (value, label, hint) => labelled(label,
        h("input", { type: "text", inputmode: "numeric", value, autocomplete: "off" }), hint)
    const from = number(parameters.from ?? "", "From version", "empty: a plain copy"),
        to = number(parameters.to ?? "", "To version", "empty: now")
    const skip = labelled("Without these actions",
        h("textarea", { rows: 2, class: "mono", value: parameters.skip ?? "", spellcheck: "false" }),
        "versions or IDs, one a line")
    const inserting = button("Insert an action", () => insert().querySelector("input").focus())
    const form = h("form", { class: "ways", onsubmit: event => { event.preventDefault(); make() } },
        h("div", { class: "columns" }, from, to), skip, inserts,
        h("div", { class: "buttons" }, h("button", { class: "primary" }, "Make the fork"),
            inserting),
        outcome)
    fill(main, h("div", { class: "page" }, h("h2", {}, "Forks"),
        h("p", { class: "hint" },
            "A fork starts from the state at a version and runs the actions up to another one again, by today's ",
            "reducers and without their effects. The present is not touched. A fork is in memory only and ends after ",
            "some minutes."),
        waysToCommit(context),
        h("section", { "aria-label": "The forks there are" }, list),
        h("section", {}, h("h3", {}, "Make a fork"), form)))

    const valueOf = place => place.querySelector("input, textarea").value.trim()

    function insert(after = "", action = "") {
        const row = h("div", { class: "row insert" },
            labelled("After version", h("input", { type: "text", inputmode: "numeric", value: after })),
            labelled("Action", h("textarea", { rows: 2, class: "mono", value: action || '{"type":"","payload":{}}',
                spellcheck: "false" }), "JSON"),
            button("Remove", () => { row.remove(); inserting.focus() }, { class: "small" }))
        inserts.append(row)
        return row
    }

    // The identity of the history, and what the fields say as the contract wants it.
    async function wish() {
        const { value: { epoch, cursor: head } } = await get("/v1", { signal: control.signal })
        const cursor = text => {
            if (text === "") return undefined
            if (/^\d[\d ,]*$/.test(text)) return `${epoch}.${text.replaceAll(/[ ,]/g, "")}`
            throw new RangeError(`${text} is not a version`)
        }
        const ids = valueOf(skip).split(/\s*\n\s*/).filter(Boolean).map(text => /^\d+$/.test(text)
            ? cursor(text) : text)
        const inserted = [...inserts.children].map(row => ({ after: cursor(valueOf(row.children[0])),
            action: parse(valueOf(row.children[1])) }))
        return { from: cursor(valueOf(from)), to: cursor(valueOf(to)) ?? (valueOf(from) ? head : undefined),
            skip: ids.length ? ids : undefined, insert: inserted.length ? inserted : undefined }
    }

    async function make() {
        try {
            const body = await wish()
            fill(outcome, h("p", { class: "hint" }, "Running the actions again…"))
            await context.makeFork(body)
        } catch (error) {
            fill(outcome, h("p", { class: "error" }, error.message))
        }
    }

    async function draw() {
        const { value } = await get("/v1/forks", { signal: control.signal })
        fill(list, value.forks.length === 0 ? h("p", { class: "hint" }, "There is no fork yet. Make one below, or choose See it without this at a commit.")
            : h("div", { class: "wide", tabindex: "0" }, h("table", {},
            h("thead", {}, h("tr", {}, ["Fork", "From", "To", "Run again", "Left out", "Refused", "Ends",
                ""].map((title, index) =>
                h("th", { scope: "col", class: index > 0 && index < 6 ? "number" : "" },
                    title || h("span", { class: "aside" }, "Remove"))))),
            h("tbody", {}, value.forks.map(fork => h("tr", {},
                h("td", {}, link(foreign(fork.name), context.address("compare", {}, fork.name))),
                [versionOf(fork.from), versionOf(fork.to), fork.appliedCount, fork.skippedCount,
                    fork.refusedCount].map(value => h("td", { class: "number" }, count(value))),
                h("td", {}, when(fork.expires)),
                h("td", {}, button("End it", async () => {
                    await request(fork.href, { method: "DELETE" }).catch(error => context.say(error.message))
                    await draw().catch(() => {})
                    if (!main.contains(document.activeElement)) list.focus()
                }, { class: "small", "aria-label": `End it: fork ${fork.name}` }))))))))
    }

    await draw()
    ;(async () => {
        while (!control.signal.aborted) {
            await pause(5000, control.signal)
            if (!control.signal.aborted && !document.hidden) await draw().catch(() => {})
        }
    })()
    return { update() {}, close() { control.abort() } }
}

// What a fork is made of, as facts and as the list of what it could not run.
export function forkFacts(fork, context) {
    return [
        h("dl", { class: "facts" }, fact("From version", count(versionOf(fork.from))),
            fact("To version", count(versionOf(fork.to))),
            fact("Run again", plural(fork.appliedCount, "action")),
                fact("Left out", plural(fork.skippedCount, "action")),
            fact("Refused", plural(fork.refusedCount, "action")), fact("Ends", when(fork.expires))),
        fork.refused.length > 0 && h("details", {},
            h("summary", {}, `${plural(fork.refusedCount, "action")} refused in the fork`),
            h("ul", { class: "cascade" }, fork.refused.map(refused => h("li", {}, refused.cursor
                ? link(foreign(refused.type), context.address("live", { commit: refused.cursor }, null))
                    : foreign(refused.type), ": ", foreign(refused.detail))))),
    ]
}
