// A fork beside the present, or beside the version that it ends at. Only what differs is fetched, by the tags of parts.
import { curl, get, request, versionOf } from "./api.js"
import { button, copyable, fill, foreign, h, link } from "./dom.js"
import { differences, differenceView } from "./diff.js"
import { forkFacts } from "./forks.js"
import { restoreForm } from "./restore.js"
import { child, count, path, plural } from "./json.js"

const DIFFERENCES_MAX = 500

export async function open(main, parameters, context) {
    const control = new AbortController(), { signal } = control
    const result = h("section", { "aria-label": "Differences", "aria-live": "polite" })
    const { value: fork } = await get(`/v1/forks/${encodeURIComponent(context.fork)}`, { signal })
    const beside = h("select", { id: "beside", onchange: () => compare() },
        h("option", { value: "now" }, "the present"),
        h("option", { value: "to" }, `version ${count(versionOf(fork.to))}, where it ends`))
    fill(main, h("div", { class: "page" },
        h("h2", {}, "Fork ", foreign(fork.name)), forkFacts(fork, context),
        h("div", { class: "buttons" }, link("Its commits", context.address("live"), { class: "button" }),
            link("Its state", context.address("state"), { class: "button" }),
            link("Dispatch in it", context.address("dispatch"), { class: "button" })),
        h("div", { class: "bar flush" }, h("div", { class: "field" }, h("label", { for: "beside" }, "Compare with"),
            beside), button("Compare again", () => compare())),
        result, context.can.restore && restoreForm(context, { fork: fork.name },
            { version: versionOf(fork.to), title: "Make the fork the present" }), copyable("The state of the fork", curl(`${context.base}/state`))))

    let turn = 0
    async function compare() {
        const mine = ++turn, found = []
        let isCut = false
        const version = beside.value === "to" ? `?version=${versionOf(fork.to)}` : ""
        fill(result, h("p", { class: "hint" }, "Comparing…"))

        // The tag of a part of each side; a part whose tags are the same has no difference.
        const tag = async address => (await request(address, { method: "HEAD", signal })).etag
        const value = async address => get(address, { signal }).then(answer => answer.value, error => {
            if (error.status === 404) return undefined
            throw error
        })
        async function walk(pointer, schema) {
            if (isCut || mine !== turn) return
            const one = `/v1/state${path(pointer)}${version}`, other = `${context.base}/state${path(pointer)}`
            const tags = await Promise.all([one, other].map(address => tag(address).catch(error => {
                if (error.status === 404) return undefined
                throw error
            })))
            if (tags[0] === tags[1] && tags[0] !== undefined) return
            const members = Object.keys(schema?.properties ?? {})
            if (members.length && (pointer === "" || (tags[0] && tags[1]))) {
                for (const key of members) await walk(child(pointer, key), schema.properties[key])
                return
            }
            const [left, right] = await Promise.all([value(one), value(other)])
            const part = differences(left, right, DIFFERENCES_MAX - found.length)
            isCut ||= part.isCut
            found.push(...part.found.map(difference => ({ ...difference, pointer: pointer + difference.pointer })))
        }
        try {
            await walk("", context.model.state)
            const { value: present } = await get("/v1", { signal })
            if (mine !== turn) return
            const later = present.version - versionOf(fork.to)
            fill(result, h("h3", {}, found.length === 0
                ? `The fork and ${version ? "that version" : "the present"} are the same`
                : `${plural(found.length, "difference")}${isCut ? " and more" : ""}`),
                later > 0 && !version && h("p", { class: "hint" },
                    `The present has ${plural(later, "commit")} behind the end of the fork; the other choice leaves them out.`),
                found.length > 0 && [h("div", { class: "sides heads", "aria-hidden": "true" },
                    h("p", {}, version ? `Version ${count(versionOf(fork.to))}` : "The present"),
                    h("p", {}, "The fork")),
                    h("ol", { class: "diff" }, found.map(difference => differenceView(difference,
                        pointer => link(foreign(pointer || "the whole state"),
                        context.address("state", { path: pointer })))))])
        } catch (error) {
            if (!signal.aborted) fill(result, h("p", { class: "error" }, error.message))
        }
    }
    compare()
    return { update() {}, close() { turn++; control.abort() } }
}
