// What an empty server shows first: what it is, and a form for the first change.
import { curl } from "./api.js"
import { copyable, h, link, quote } from "./dom.js"
import { editor } from "./edit.js"

export function welcome(context) {
    const { can } = context
    const example = '{"type":"document/set","payload":{"path":"/greeting","value":"hello"}}'
    const form = can.set && editor(context, { kind: "add", pointer: "", member: "greeting", initial: "hello", seen: {},
        isAlone: true, done(path, receipt, undo) {
            context.saved(form, path, receipt, undo)
            context.go("state", { path })
        } })
    return h("section", { class: "welcome" },
        h("h2", {}, can.set ? "This server keeps one JSON document" : "This server keeps one state"),
        h("p", {}, "Many programs share it. Each can change it over HTTP, and each that waits learns of a change at once. "
            + "Every change is recorded: you see here who changed what, and any earlier state."),
        h("p", {}, can.set ? "There is nothing in it yet. Begin with a first member:"
            : can.dispatch ? "Nothing has happened yet. Begin with a first action:"
                : "Nothing has happened yet, and this token may not change anything: what others dispatch appears here."),
        form ? form.element : can.dispatch && h("p", { class: "buttons" },
            link("Choose an action", context.address("dispatch"), { class: "button primary" })),
        h("h3", {}, "Or from a terminal"),
        can.set && copyable("Write", curl("/v1/actions", ` --json ${quote(example)}`)),
        copyable("Read", curl("/v1/state")), copyable("Wait for the next change", curl("/v1/changes?since=now&wait=25")))
}
