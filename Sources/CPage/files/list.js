// A list of any length that draws only the lines that are seen, with the keyboard of a list box or a tree.
import { h } from "./dom.js"

// A browser's elements have no more than about 33 million pixels.
const HEIGHT_MAX = 30_000_000
const MARGIN = 8

export class VirtualList {
    #drawn = new Map()
    #focus = 0

    // `source` has length, key(index), place(index) where lines have siblings, and, for each line, what
    // `draw(index, element)` needs.
    constructor({ role, label, rowHeight, source, draw, seen, chosen, opened, keys, attributes }) {
        Object.assign(this, { rowHeight, source, draw, seen, chosen, opened, keys,
            itemRole: role === "tree" ? "treeitem" : "option" })
        this.space = h("div", { class: "space", role: "presentation" })
        this.element = h("div", { class: "list", role, tabindex: "0", "aria-label": label, ...attributes }, this.space)
        this.element.addEventListener("scroll", () => this.refresh(), { passive: true })
        this.element.addEventListener("keydown", event => this.#press(event))
        this.element.addEventListener("click", event => this.#click(event))
        this.resizing = new ResizeObserver(() => this.refresh())
        this.resizing.observe(this.element)
    }

    get length() { return Math.min(this.source.length, Math.floor(HEIGHT_MAX / this.rowHeight)) }
    get focus() { return this.#focus }

    close() { this.resizing.disconnect() }

    // Draws what is seen; `isStale` draws known lines again, too.
    refresh(isStale = false) {
        const { rowHeight, element } = this, length = this.length
        this.space.style.height = `${length * rowHeight}px`
        const top = Math.floor(element.scrollTop / rowHeight),
            bottom = Math.ceil((element.scrollTop + element.clientHeight) / rowHeight)
        const first = Math.max(0, top - MARGIN), last = Math.min(length - 1, bottom + MARGIN)
        this.#focus = Math.max(0, Math.min(this.#focus, length - 1))
        const before = this.#drawn
        this.#drawn = new Map()
        const isSeen = new Set()
        for (let index = first; index <= last; index++) isSeen.add(this.source.key(index))
        for (const [key, line] of before) if (!isSeen.has(key)) line.remove()
        let previous = null
        for (let index = first; index <= last; index++) {
            const key = this.source.key(index)
            let line = before.get(key)
            if (!line || isStale || line.dataset.isWaiting) {
                const fresh = line ?? h("div", { class: "line", role: this.itemRole, id: `line-${key}` })
                this.draw(index, fresh)
                line = fresh
            }
            line.style.height = `${rowHeight}px`
            line.style.transform = `translateY(${index * rowHeight}px)`
            line.dataset.index = index
            const { position, siblings } = this.source.place?.(index) ?? { position: index, siblings: length }
            line.setAttribute("aria-setsize", siblings)
            line.setAttribute("aria-posinset", position + 1)
            line.classList.toggle("focus", index === this.#focus)
            this.#drawn.set(key, line)
            // A screen reader reads the lines in the order of the document.
            if (line.parentNode !== this.space || line.previousSibling !== previous) {
                if (previous) previous.after(line)
                else this.space.prepend(line)
            }
            previous = line
        }
        const active = length ? this.#drawn.get(this.source.key(this.#focus)) : null
        if (active) this.element.setAttribute("aria-activedescendant", active.id)
        else this.element.removeAttribute("aria-activedescendant")
        this.seen?.(top, bottom)
    }

    // Lines were added at the head: what is seen stays where it is, unless the head itself is seen.
    grown(lines) {
        if (lines <= 0) return this.refresh()
        // A screen reader would say each line that gets the focus.
        const isAtHead = this.#focus === 0 && this.element.scrollTop === 0 && document.activeElement !== this.element
        this.#focus = isAtHead ? 0 : this.#focus + lines
        if (this.element.scrollTop > 0) {
            this.space.style.height = `${this.length * this.rowHeight}px`
            this.element.scrollTop += lines * this.rowHeight
        }
        this.refresh()
    }

    move(index, isChosen = false) {
        this.#focus = Math.max(0, Math.min(index, this.length - 1))
        const { rowHeight, element } = this, top = this.#focus * rowHeight
        this.space.style.height = `${this.length * rowHeight}px`
        if (top < element.scrollTop) element.scrollTop = top
        const least = top + rowHeight - element.clientHeight
        if (least > element.scrollTop) element.scrollTop = least
        this.refresh()
        if (isChosen && this.length) this.chosen?.(this.#focus)
    }

    #press(event) {
        if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey) return
        const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 1)
        const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity,
            End: Infinity }
        if (event.key in steps) {
            const step = steps[event.key]
            this.move(Number.isFinite(step) ? this.#focus + step : step < 0 ? 0 : this.length - 1)
        } else if (event.key === "Enter") this.opened?.(this.#focus) || this.move(this.#focus, true)
        else if (!this.keys?.(event, this.#focus)) return
        event.preventDefault()
    }

    #click(event) {
        const line = event.target.closest(".line")
        if (!line) return
        this.move(Number(line.dataset.index), !event.defaultPrevented)
        // The first click draws the line anew, and a browser makes no double click of two elements.
        if (event.detail === 2 && !event.defaultPrevented) this.opened?.(this.#focus)
    }
}
