// What the page says below its content for some seconds, and what only a screen reader is told.
import { button } from "./dom.js"

const notice = document.getElementById("notice"), said = document.getElementById("said")
const news = document.getElementById("news")
let silence

// `undo` takes back what is said; for as long as the button is there.
export function say(text, seconds = 8, undo) {
    const before = notice.querySelector("button")
    if (before && before === document.activeElement) document.getElementById("main").focus()
    before?.remove()
    // A screen reader says anew what is written anew.
    if (said.textContent !== text) said.textContent = text
    if (undo) notice.append(button("Undo", undo, { class: "small" }))
    clearTimeout(silence)
    if (seconds) silence = setTimeout(() => say("", 0), seconds * 1000)
}

// Says to a screen reader what is seen anyway: of several texts within a second the last one.
let soon, next = ""
export function announce(text) {
    next = text
    soon ??= setTimeout(() => { soon = null; news.textContent = next }, 1000)
}

// Nothing of a view is said in the next one.
export function hush() {
    next = news.textContent = ""
}
