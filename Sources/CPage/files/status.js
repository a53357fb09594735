// What the server is doing: who waits, what is queued, how fast, in how much memory.
import { button, copyable, fact, fill, foreign, h, link, refill } from "./dom.js"
import { curl, get, pause } from "./api.js"
import { bytes, count, duration, stringify, visible } from "./json.js"
import { Chart } from "./chart.js"
import { hookCards } from "./hooks.js"

const SECONDS = 2
// A number that keeps its text cannot be calculated with.
const appendSeconds = ({ journal }) => Number(stringify(journal.appendSecondsTotal))

export async function open(main, parameters, context) {
    const control = new AbortController(), { signal } = control
    const read = async once => (await get("/v1/operations", { signal, once })).value
    const first = await read()
    const rate = value => `${value < 10 ? value.toFixed(1) : count(Math.round(value))}/s`
    const milliseconds = value => `${value.toFixed(value < 10 ? 2 : 0)} ms`
    const charts = {
        commits: new Chart("Commits", rate), requests: new Chart("Requests", rate),
        queue: new Chart("Queue", value => count(value)),
            waiters: new Chart("Waiters and streams", value => count(value)),
        sync: first.journal && new Chart("Time to record a turn", milliseconds),
            memory: new Chart("Memory of the budget", bytes, first.memory.maxBytes),
        resident: new Chart("Memory of the process", bytes),
    }
    const ready = h("div", { role: "status" }), facts = h("dl", { class: "facts" }), waiters = h("div", {}),
        grants = h("div", {}), hooks = hookCards(context)
    fill(main, h("div", { class: "page" }, h("h2", {}, "Status"), ready, facts,
        h("div", { class: "columns charts" }, Object.values(charts).filter(Boolean).map(chart => chart.element)),
        h("section", {}, waiters), hooks.element, h("section", {}, grants),
        context.can.backup && first.journal && h("section", {}, h("h3", {}, "Backup"),
            h("p", { class: "hint" }, "A whole copy of the journal as of now. To use it, unpack it with tar, then ",
                h("code", {}, "storekeeper journal restore --from"), " the directory."),
            h("div", { class: "buttons" }, button("Download a backup", event => context.backup(event.currentTarget)))),
        h("section", {}, copyable("These figures", curl("/v1/operations")))))

    let before = null
    function draw(now) {
        const seconds = before ? (new Date(now.time) - new Date(before.time)) / 1000 : NaN
        const per = key => seconds > 0 && now[key] >= before[key] ? (now[key] - before[key]) / seconds : NaN
        charts.commits.add(per("version"))
        charts.requests.add(per("requestsTotal"))
        charts.queue.add(now.queue.waiting)
        charts.waiters.add(now.waitersCount + now.streamsCount)
        if (charts.sync && now.journal) {
            const appends = before?.journal ? now.journal.appendsTotal - before.journal.appendsTotal : 0
            charts.sync.add(appends > 0 ? 1000 * (appendSeconds(now) - appendSeconds(before)) / appends : NaN)
        }
        charts.memory.add(now.memory.usedBytes)
        charts.resident.add(now.memory.residentBytes)
        before = now
        hooks.draw(now.hooks)
        refill(ready, [now.ready, now.reasons], () => h("p", { class: now.ready ? "ready" : "error" }, now.ready ? "Ready" : "Not ready",
            now.reasons.length > 0
                && [": ", now.reasons.map((reason, index) => [index > 0 && "; ", foreign(reason, 400)])], "."))
        fill(facts, fact("Up for", duration(now.uptimeSeconds)), fact("Version", count(now.version)),
            fact("Connections", count(now.connectionsCount)),
            fact("Queue", `${count(now.queue.waiting)} of ${count(now.queue.max)}`),
            fact("Journal", !now.journal ? "none: the state is in memory only" : now.journal.bytes
                ? bytes(now.journal.bytes) : "there is one"))
        refill(waiters, now.waiters, () => [table("Who waits where", ["Selection", "Waits", "Streams"], now.waiters.map(waiter => [
            waiter.changes ? "the commits" : waiter.view !== undefined ? ["view ", foreign(waiter.view)]
                : link(foreign(waiter.path || "the whole state"), context.address("state", { path: waiter.path })),
                    waiter.waits, waiter.streams])),
        now.waiters.length === 0 && h("p", { class: "hint" }, "No client waits.")])
        refill(grants, now.grants, () => [table("Grants", ["Subject", "Name", "May read", "May dispatch", "Also"],
            now.grants.map(({ id, subject, grant }) => [
            foreign(subject), h("code", {}, foreign(id)), names(grant.read), names(grant.dispatch),
            [grant.others && "sees others", grant.operate && "operates",
                grant.fork && "forks"].filter(Boolean).join(", ") || "–"])),
        now.grants.length === 0 && h("p", { class: "hint" },
            "There is no token: this server asks for none. An operator makes one with storekeeper token create.")])
    }

    const names = list => list?.length ? list.map((each, index) => [index > 0 && ", ",
        h("code", {}, foreign(each))]) : "–"

    function table(caption, titles, lines) {
        return h("table", {}, h("caption", {}, caption),
            h("thead", {},
                h("tr", {},
                titles.map(title => h("th", { scope: "col", class: ["Waits", "Streams"].includes(title) && "number" },
                title)))),
            h("tbody", {}, lines.map(cells => h("tr", {},
                cells.map(cell => typeof cell === "number" ? h("td", { class: "number" }, count(cell))
                : h("td", {}, cell))))))
    }

    draw(first)
    ;(async () => {
        while (!signal.aborted) {
            await pause(SECONDS * 1000, signal)
            if (signal.aborted || document.hidden) continue
            try {
                draw(await read(true))
            } catch (error) {
                if (!signal.aborted && error.status !== 401) {
                    refill(ready, error.message, () => h("p", { class: "error" }, `Not known: ${visible(error.message)}.`))
                }
            }
        }
    })()
    return { update() {}, close() { control.abort() } }
}
