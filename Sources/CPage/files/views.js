// The views of the domain that this client may see: their names, and the value of one for its parameters.
import { curl, get } from "./api.js"
import { button, copyable, fill, foreign, h } from "./dom.js"
import { field } from "./form.js"
import { parse, pretty, stringify, visible } from "./json.js"

export const viewsOf = async base => (await get(`${base}/views`)).value.views

// The parameters as text of an address; what is not a text is there as JSON.
const queryOf = given => Object.entries(given).map(([key, value], index) => `${index === 0 ? "?" : "&"}${encodeURIComponent(key)}=`
    + encodeURIComponent(typeof value === "string" ? value : stringify(value))).join("")

export async function viewPanel({ base }, name) {
    const found = (await viewsOf(base)).find(view => view.name === name)
    if (!found) return h("p", { class: "error" }, "This client has no view of this name.")
    const form = found.parameters && field(found.parameters, { label: "Parameters", pointer: "" })
    const outcome = h("div", { class: "outcome", role: "status" })

    async function show() {
        const fault = form?.check()
        if (fault) return fault.focus()
        const address = `${base}/views/${encodeURIComponent(name)}${form ? queryOf(parse(form.text())) : ""}`
        try {
            const { value, etag } = await get(address)
            fill(outcome, h("pre", { class: "json", tabindex: "0" }, h("bdi", {}, pretty(value))), h("h3", {}, "To copy"),
                copyable("This value", curl(address)), etag && copyable("Wait for its next change",
                    curl(`${address}${address.includes("?") ? "&" : "?"}wait=25`, ` -H 'If-None-Match: ${etag}'`)))
        } catch (error) {
            fill(outcome, h("p", { class: "error" }, visible(error.message)))
        }
    }

    if (!form) await show()
    return [h("h2", {}, "View ", foreign(name)), found.subject && h("p", { class: "hint" }, "As your subject sees it."),
        h("form", { class: "action", novalidate: true, onsubmit: event => { event.preventDefault(); show() } }, form?.element,
            h("div", { class: "buttons" }, h("button", { class: form ? "primary" : "" }, form ? "Show" : "Read again"))), outcome]
}
