// What is to happen at its time: scheduled actions, and places of the document that expire.
import { curl, events, get, pause, request } from "./api.js"
import { busy, button, copyable, countdown, fill, foreign, h, link, when } from "./dom.js"
import { brief, count } from "./json.js"

const SHOWN = 200

export async function open(main, parameters, context) {
    const control = new AbortController(), { signal } = control, { follower } = context
    const list = h("div", {}), outcome = h("div", { role: "status", tabindex: "-1" })
    const address = `${context.base}/schedule`
    fill(main, h("div", { class: "page" }, h("h2", {}, "Pending"),
        h("p", { class: "hint" }, context.fork ? "A fork records what is scheduled in it, and dispatches nothing of it."
            : "What the server does by itself at its time: actions that were scheduled, and places that expire."),
        list, outcome, copyable("This list", curl(address))))

    async function read() {
        const { value } = await get(`${address}?limit=${SHOWN}`, { signal })
        draw(value)
    }

    function draw({ schedule, count: many }) {
        if (schedule.length === 0) {
            fill(list, h("p", {}, "Nothing is pending. An action with a member ", h("code", {}, "schedule"),
                ", such as ", h("code", {}, '{"after":60}'), ", is dispatched at its time, and stands here until then."))
            return
        }
        fill(list, h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "What is pending" },
            h("table", { class: "stacked" },
                h("thead", {}, h("tr", {}, ["Due", "Name", "Action", "By", "Take it back"].map((title, index) =>
                    h("th", { scope: "col" }, index === 4 ? h("span", { class: "aside" }, title) : title)))),
                h("tbody", {}, schedule.map(row)))),
        many > schedule.length && h("p", { class: "hint" }, `The first ${count(schedule.length)} of ${count(many)}.`))
        tick()
    }

    function row(entry) {
        const { name, place, due, by, cause, action } = entry
        // A name belongs to its sender: another client cannot take it back.
        const isOwn = name !== undefined && (by ?? null) === context.model.subject
        return h("tr", {},
            h("td", {}, h("span", { "data-due": due }), h("div", { class: "hint" }, when(due))),
            h("td", {}, place !== undefined
                ? [link(foreign(place, 80), context.address("state", { path: place })), " expires"] : foreign(name, 80)),
            h("td", {}, action ? [cause ? link(foreign(action.type), context.address("live", { commit: cause }))
                : foreign(action.type), h("div", { class: "hint" }, h("bdi", {}, brief(action.payload ?? {}, 80)))]
                : h("span", { class: "hint" }, "not visible")),
            h("td", { "data-title": "By" }, by === undefined ? "–" : foreign(by, 60)),
            h("td", {}, isOwn && button("Take it back", event => takeBack(name, event.currentTarget),
                { class: "small", "aria-label": `Take it back: ${name}` })))
    }

    async function takeBack(name, control) {
        if (!await context.confirmed()) return
        busy(true, control)
        try {
            const { value } = await request(`${address}/${encodeURIComponent(name)}`, { method: "DELETE", signal })
            fill(outcome, h("p", { class: "found" }, h("strong", {}, foreign(name, 80)), " is taken back, with version ",
                link(count(value.version), context.address("live", { commit: value.cursor })), "."))
        } catch (error) {
            if (signal.aborted) return
            fill(outcome, h("p", { class: "error" }, error.code === "not-scheduled"
                ? "It is no longer pending: it has been dispatched or taken back meanwhile." : error.message))
        }
        await read().catch(() => {})
        if (!main.contains(document.activeElement)) outcome.focus()
    }

    function tick() {
        for (const place of list.querySelectorAll("[data-due]")) countdown(place)
    }

    // Commits schedule, dispatch, and take back; those that come together are one reason to read again.
    let isStale = false
    const stale = () => { isStale = true }
    for (const type of ["commits", "jump"]) follower.addEventListener(type, stale)
    events.addEventListener("back", stale)
    await read()
    ;(async () => {
        while (!signal.aborted) {
            await pause(1000, signal)
            if (signal.aborted || document.hidden) continue
            tick()
            if (!isStale) continue
            isStale = false
            await read().catch(() => {})
        }
    })()
    return { update() {}, close() {
        control.abort()
        for (const type of ["commits", "jump"]) follower.removeEventListener(type, stale)
        events.removeEventListener("back", stale)
    } }
}
