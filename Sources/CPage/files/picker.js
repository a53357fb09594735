// A list of links with a filter above it, by the keyboard: in the filter, Enter opens the first link and the arrow down
// goes to it; in the list, the arrows move.
import { h, labelled } from "./dom.js"

// `changed` is called when another text is in the filter; the links are put into `place`.
export function picker(label, place, changed) {
    const links = () => [...place.querySelectorAll("a")]
    const filter = h("input", { type: "search", autocomplete: "off", spellcheck: "false", oninput: changed,
        onkeydown: event => {
            if (event.key === "Enter") links()[0]?.click()
            else if (event.key === "ArrowDown") links()[0]?.focus()
            else return
            event.preventDefault()
        } })
    place.addEventListener("keydown", event => {
        const way = { ArrowDown: 1, ArrowUp: -1 }[event.key]
        if (!way) return
        const next = links()[links().indexOf(event.target) + way]
        if (next) next.focus()
        else if (way < 0) filter.focus()
        event.preventDefault()
    })
    return {
        filter, field: h("div", { class: "bar" }, labelled(label, filter)),
        words: () => filter.value.toLowerCase().split(/\s+/).filter(Boolean),
        hasFocus: () => document.activeElement === filter || place.contains(document.activeElement),
        keys: event => event.key === "/" ? (filter.focus(), true) : false,
    }
}
