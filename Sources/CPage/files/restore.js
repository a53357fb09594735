// Makes an earlier state, or that of a fork, the present one. What that changes is shown before.
import { curl, get, request } from "./api.js"
import { busy, button, copyable, fill, foreign, h, link, quote } from "./dom.js"
import { patchView } from "./diff.js"
import { count, plural, stringify, visible } from "./json.js"

// `payload` is that of storekeeper/restore; `version` is up to which commit of the present it goes.
export function restoreForm(context, payload, { version, title }) {
    const text = stringify({ type: "storekeeper/restore", payload })
    const outcome = h("div", { class: "outcome", role: "status" })
    const preview = button("Preview", () => look())
    const submit = button("Make this the present", () => restore(), { class: "primary", "aria-disabled": "true" })
    const place = pointer => link(foreign(pointer || "the whole state"), context.address("state", { path: pointer }, null))
    let tag

    // The tag names the present that the preview was made of: nothing that nobody has seen is undone.
    const condition = () => ({ "If-Match": tag })

    async function look() {
        busy(true, preview, submit)
        fill(outcome, h("p", { class: "hint" }, "Trying…"))
        try {
            const { etag } = await request("/v1/state", { method: "HEAD" })
            tag = etag
            const { value: present } = await get("/v1")
            const { value } = await request("/v1/actions?dry-run&path=", { method: "POST", body: text, headers: condition() })
            const later = present.version - version
            fill(outcome, h("h4", {}, value.changed ? "It would change" : "The present is this already"),
                value.changed && later > 0 && h("p", {}, `The present has ${plural(later, "commit")} since. `
                    + "They stay in the history; what they changed is as shown here."),
                value.changed && [patchView("/v1", value.patch, null, place),
                    copyable("This action", curl("/v1/actions?path=", ` -H 'If-Match: ${tag}' --json ${quote(text)}`))])
            busy(!value.changed, submit)
        } catch (error) {
            refused(error)
        }
        busy(false, preview)
    }

    async function restore() {
        busy(true, preview, submit)
        try {
            const receipt = await context.dispatch(text, { base: "/v1", query: "?path=", headers: condition() })
            if (!receipt) busy(false, preview, submit)
            else {
                context.say(`It is the present now, with version ${count(receipt.version)}.`, 20)
                if (outcome.isConnected) context.toPresent()
            }
        } catch (error) {
            busy(false, preview)
            if (error.status !== 412) return refused(error)
            await look()
            outcome.prepend(h("p", { class: "error" }, "Nothing is done: the present has changed since the preview."))
        }
    }

    const refused = error => fill(outcome, h("p", { class: "error" }, visible(error.message)))

    return h("section", { class: "restore", "aria-label": title }, h("h3", {}, title),
        h("p", { class: "hint" }, "One more commit leads there. The history stays, so that there is a way back from it, too."),
        h("div", { class: "buttons" }, preview, submit), outcome)
}
