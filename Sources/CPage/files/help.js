// The keys, and the switch that turns the single ones off and on.
import { button, fill, h } from "./dom.js"

const keys = [
    ["↑ ↓, j k, Page up, Page down, Home, End", "move in a list"],
    ["Enter, double click", "open what has the focus; edit a value of the document"],
    ["→ ←", "open and close a part of the state"],
    ["w", "who changed this part of the state last"],
    ["e, a, Delete", "edit a part of the document, add to it, remove it"],
    ["Space", "select a commit for the export"],
    ["p", "pause or go on"],
    ["/", "to the filter, or to Go to"],
    ["Ctrl+Enter", "dispatch the form"],
]

export function showHelp(views, hasKeys, turnKeys) {
    const dialog = document.getElementById("help")
    const off = h("input", { type: "checkbox", id: "keys-on", checked: hasKeys,
        onchange: event => turnKeys(event.currentTarget.checked) })
    fill(dialog, h("h2", { id: "help-title" }, "Keys"),
        h("dl", { class: "facts" }, [...views.map(({ title }, index) => [String(index + 1), title]),
            ...keys].map(([key, what]) =>
            h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)))),
        h("p", {}, off, " ", h("label", { for: "keys-on" }, "Keys without Ctrl work")),
        h("form", { method: "dialog" }, button("Close", () => dialog.close())))
    dialog.showModal()
}
