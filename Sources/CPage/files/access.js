// Asks for a token; the tab keeps it until it is closed.
import { fill, h } from "./dom.js"

export function ask(main, reason, done) {
    const field = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true,
        "aria-describedby": "token-hint" })
    fill(main, h("form", { class: "ask", onsubmit: event => {
        event.preventDefault()
        if (field.value.trim()) done(field.value.trim())
    } },
        h("h2", {}, "This server asks for a token"),
        reason && h("p", { class: "error", role: "alert" }, reason),
        h("div", { class: "field" }, h("label", { for: "token" }, "Token"), field),
        h("p", { class: "hint", id: "token-hint" }, "An operator makes one on the server's machine, for example with ",
            h("code", {}, "storekeeper token create --subject me --all"),
            ". This tab keeps it until it is closed, and shows what the token may see."),
        h("button", { class: "primary" }, "Open")))
    field.focus()
}
