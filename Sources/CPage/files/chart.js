// A small chart of the last readings: a line, its scale, and the present figure as text.
import { h, svg } from "./dom.js"

const WIDTH = 240, HEIGHT = 56, READINGS = 120

export class Chart {
    #values = []

    // `limit` draws the line that the value must not pass; `text` writes a figure.
    constructor(title, text, limit) {
        Object.assign(this, { title, text, limit })
        this.line = svg("polyline", { class: "curve" })
        this.area = svg("polygon", { class: "area" })
        this.figure = h("span", { class: "figure" }, "–")
        this.scale = h("span", { class: "hint" })
        this.drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none",
            "aria-hidden": "true", focusable: "false" },
            svg("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }), this.area, this.line)
        this.element = h("figure", { class: "chart" }, h("figcaption", {}, title), this.figure, this.drawing,
            this.scale)
    }

    add(value) {
        this.#values.push(value)
        if (this.#values.length > READINGS) this.#values.shift()
        const known = this.#values.filter(Number.isFinite)
        const most = Math.max(...known, 0), top = this.limit ?? (most || 1)
        const points = this.#values.map((each,
            index) => [WIDTH - (this.#values.length - 1 - index) * WIDTH / (READINGS - 1),
            HEIGHT - 1 - (HEIGHT - 4) * Math.min(1, each / top)])
            .filter(([, y]) => Number.isFinite(y)).map(point => point.map(part => part.toFixed(1)).join(","))
        this.line.setAttribute("points", points.join(" "))
        if (points.length) this.area.setAttribute("points",
            `${points[0].split(",")[0]},${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`)
        this.figure.textContent = Number.isFinite(value) ? this.text(value) : "–"
        this.scale.textContent = this.limit ? `of ${this.text(this.limit)}` : known.length
            ? `up to ${this.text(most)}` : ""
    }
}
