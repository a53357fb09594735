// Elements from script. Foreign text only ever becomes a text node, isolated from the direction of the text around it.
import { cut, duration, stringify } from "./json.js"

export function h(name, attributes, ...children) {
    const element = document.createElement(name)
    for (const [key, value] of Object.entries(attributes ?? {})) {
        if (value === undefined || value === null || value === false) continue
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value)
        else if (key === "value" || key === "checked") element[key] = value
        else element.setAttribute(key, value === true ? "" : value)
    }
    append(element, children)
    return element
}

export function append(element, children) {
    element.append(...children.flat(3).filter(child => child !== null && child !== undefined && child !== false))
}

// What had the focus has it again, if it is there again or another one of its name is.
export function fill(element, ...children) {
    const before = document.activeElement, hadFocus = element !== before && element.contains(before)
    element.replaceChildren()
    append(element, children)
    if (!hadFocus) return
    const same = element.contains(before) ? before
        : [...element.querySelectorAll(before.localName)].find(other => nameOf(other) === nameOf(before))
    same?.focus({ preventScroll: true })
}

const nameOf = element => element.dataset.name ?? element.getAttribute("href")
    ?? element.getAttribute("aria-label") ?? element.textContent

// Fills an element only where its state is another one: a screen reader says anew what is drawn anew.
const states = new WeakMap()
export function refill(element, state, draw) {
    const text = stringify(state)
    if (states.get(element) === text) return
    states.set(element, text)
    fill(element, draw())
}

// How long it is until the time that the element has as data.
export function countdown(element) {
    const seconds = (new Date(element.dataset.due) - Date.now()) / 1000
    element.textContent = seconds > 0 ? `in ${duration(Math.ceil(seconds))}` : "now"
}

export function svg(name, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name)
    for (const [key, value] of Object.entries(attributes ?? {})) element.setAttribute(key, value)
    element.append(...children)
    return element
}

// Text from outside: visible, cut, isolated.
export const foreign = (text, most) => h("bdi", {}, cut(String(text), most))

export const button = (text, action, attributes) => h("button",
    { type: "button", ...attributes, onclick: event => isBusy(event.currentTarget) || action(event) }, text)
export const link = (text, href, attributes) => h("a", { href, ...attributes }, text)

// Buttons that take nothing for now. A disabled one would lose the focus.
export function busy(value, ...buttons) {
    for (const each of buttons) each.setAttribute("aria-disabled", String(value))
}
export const isBusy = button => button.getAttribute("aria-disabled") === "true"

let names = 0
export const name = prefix => `${prefix}-${++names}`

// A field with its label above it.
export function labelled(text, control, hint) {
    control.id ||= name("field")
    return h("div", { class: "field" }, h("label", { for: control.id }, text,
        hint && h("span", { class: "hint" }, " ", hint)), control)
}

export async function copy(text, from) {
    try {
        await navigator.clipboard.writeText(text)
    } catch {
        // Without HTTPS a browser has no clipboard for scripts, but still copies what is selected.
        const area = h("textarea", { class: "aside", value: text, "aria-hidden": "true" })
        from.after(area)
        area.select()
        document.execCommand("copy")
        area.remove()
        from.focus()
    }
    const before = from.textContent
    if (before === "Copied") return
    from.textContent = "Copied"
    setTimeout(() => { from.textContent = before }, 1200)
}

export const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value))

// A line to copy, with its name; `put` gives it another text.
export function copyable(title, text) {
    const shown = h("bdi")
    const element = h("div", { class: "copyable" }, h("span", { class: "hint" }, title), h("code", { tabindex: "0" }, shown),
        button("Copy", event => copy(text, event.currentTarget), { class: "small", "aria-label": `Copy ${title}` }))
    element.put = next => { shown.textContent = cut(text = next, 600) }
    element.put(text)
    return element
}

export const quote = text => `'${text.replaceAll("'", "'\\''")}'`

const clock = new Intl.DateTimeFormat("en-GB",
    { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 })
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" })

// The day and the time of day, one below the other where that is wanted.
export function when(text, attributes) {
    const time = new Date(text)
    return h("time", { datetime: text, title: text, ...attributes },
        h("span", {}, day.format(time)), " ", h("span", {}, clock.format(time)))
}

export function save(name, parts, type) {
    const url = URL.createObjectURL(parts instanceof Blob ? parts : new Blob(parts, { type }))
    const anchor = h("a", { href: url, download: name })
    anchor.click()
    setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
