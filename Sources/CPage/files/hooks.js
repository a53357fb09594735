// A card for each hook: where it delivers to, how far it has come, what stops it, and the commands that stop it or let
// it go on.
import { versionOf } from "./api.js"
import { copyable, countdown, fact, foreign, h, link, refill, when } from "./dom.js"
import { count, plural } from "./json.js"

const states = {
    paused: "Paused", failing: "Fails, and is tried again", behind: "Delivers", done: "Up to date",
    unknown: "Known to the server that delivers",
}

function stateOf({ pause, failure, behind }) {
    if (pause !== null || failure) return pause !== null ? "paused" : "failing"
    return behind === null ? "unknown" : behind > 0 ? "behind" : "done"
}

export function hookCards(context) {
    const cards = h("div", { class: "cards" })
    const element = h("section", { "aria-labelledby": "hooks-title" }, h("h3", { id: "hooks-title" }, "Hooks"),
        h("p", { class: "hint" }, "The server POSTs the commits to these receivers. ",
            "In a command, DATA is the server's data directory."),
        cards)
    return {
        element,
        draw(hooks) {
            refill(cards, hooks, () => hooks.length > 0 ? hooks.map(hook => card(hook, context))
                : h("p", { class: "hint" }, "There is no hook. An operator makes one with ",
                    h("code", {}, "storekeeper hook create"), "."))
            for (const place of cards.querySelectorAll("[data-due]")) countdown(place)
        },
    }
}

function card(hook, context) {
    const { id, origin, pause, behind, failure, refused, refusedAt, refusedCount } = hook, state = stateOf(hook)
    const command = verb => `storekeeper hook ${verb} --data "$DATA" ${id}`
    return h("article", { class: "card", "aria-label": `Hook ${id}` },
        h("h4", {}, foreign(id, 80)),
        h("p", { class: state === "failing" || state === "paused" ? "error" : state === "done" ? "ready" : "hint" },
            states[state]),
        h("dl", { class: "facts" },
            fact("Address", foreign(origin, 200)),
            behind !== null && fact("Behind", behind === 0 ? "not at all" : plural(behind, "version")),
            pause !== null && fact("Paused", [foreign(pause, 300), ", until it is resumed"]),
            failure && [
                fact("Waits since", when(failure.since)),
                fact("At", link(`version ${count(versionOf(failure.cursor))}`,
                    context.address("live", { commit: failure.cursor }, null))),
                fact("Last fault", [foreign(failure.reason, 300), `, ${plural(failure.attempts, "attempt")}`]),
                pause === null && fact("Next attempt", h("span", { "data-due": failure.next })),
            ],
            refused !== null && fact("Refused", [foreign(refused, 300), `, ${plural(refusedCount, "answer")}`,
                refusedAt !== null && [", the newest at ", link(`version ${count(versionOf(refusedAt))}`,
                    context.address("live", { commit: refusedAt }, null))]])),
        pause === null ? copyable("Pause it", command("pause")) : copyable("Resume it", command("resume")),
        failure && copyable("Skip this commit", `${command("resume")} --from ${behindIt(failure.cursor)}`),
        refusedAt !== null && pause === null && copyable("Take the answers from the list", command("resume")))
}

function behindIt(cursor) {
    const [epoch, version] = cursor.split(".")
    return `${epoch}.${BigInt(version) + 1n}`
}
