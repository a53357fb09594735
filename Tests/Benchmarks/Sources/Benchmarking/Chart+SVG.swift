extension Chart {
    /// The chart as SVG, legible on a light and on a dark background.
    package var svg: String {
        let width = 720.0
        let height = 400.0
        let xs = LogScale(curves.flatMap { $0.points.map(\.size) }, from: 76, to: width - 44)
        let ys = LogScale(curves.flatMap { $0.points.map(\.figure) }, from: height - 56, to: 76)
        var lines = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(width.fixed(0)) \(height.fixed(0))\" role=\"img\">",
            "<title>\(Self.escaped(title))</title>",
            Self.style,
            text(24, 28, title, "start", "title"),
        ]
        lines += grid(xs, ys)
        lines.append(text((xs.start + xs.end) / 2, height - 12, sizes, "middle"))
        lines.append(text(24, 60, figures, "start"))
        for (index, curve) in curves.enumerated() { lines += draw(curve, colour: index % Self.coloursCount, xs, ys) }
        lines += legend(endingAt: width - 44)
        lines.append("</svg>")
        return lines.joined(separator: "\n") + "\n"
    }

    private static let coloursCount = 4
    /// Colours of a medium brightness, for both backgrounds.
    private static let style = """
        <style>
        text { font: 13px system-ui, sans-serif; fill: #808080 } .title { font-size: 15px; font-weight: 600 }
        .grid { stroke: #808080; stroke-opacity: 0.25 } .axis { stroke: #808080 }
        .c0 { stroke: #2f7fd1; fill: #2f7fd1 } .c1 { stroke: #d9772b; fill: #d9772b }
        .c2 { stroke: #2f9e6e; fill: #2f9e6e } .c3 { stroke: #a25fc4; fill: #a25fc4 }
        polyline { stroke-width: 2; fill: none !important }
        </style>
        """

    private func grid(_ xs: LogScale, _ ys: LogScale) -> [String] {
        var lines: [String] = []
        for tick in xs.ticks {
            let x = xs.place(tick)
            lines.append(line(x, ys.start, x, ys.end, tick == xs.ticks.first ? "axis" : "grid"))
            lines.append(text(x, ys.start + 20, tick.readableTick, "middle"))
        }
        for tick in ys.ticks {
            let y = ys.place(tick)
            lines.append(line(xs.start, y, xs.end, y, tick == ys.ticks.first ? "axis" : "grid"))
            lines.append(text(xs.start - 8, y + 4, tick.readableTick, "end"))
        }
        return lines
    }

    private func draw(_ curve: Curve, colour: Int, _ xs: LogScale, _ ys: LogScale) -> [String] {
        let places = curve.points.filter { $0.size > 0 && $0.figure > 0 }.map {
            (x: xs.place($0.size).fixed(1), y: ys.place($0.figure).fixed(1))
        }
        let path = places.map { "\($0.x),\($0.y)" }.joined(separator: " ")
        return ["<polyline class=\"c\(colour)\" points=\"\(path)\"/>"]
            + places.map { "<circle class=\"c\(colour)\" cx=\"\($0.x)\" cy=\"\($0.y)\" r=\"3.5\"/>" }
    }

    /// The legend, from the right end: a dot and a name for each curve.
    private func legend(endingAt end: Double) -> [String] {
        var x = end
        var lines: [String] = []
        for (index, curve) in curves.enumerated().reversed() {
            lines.append(text(x, 60, curve.name, "end"))
            // The width of the name in this font, approximately.
            x -= Double(curve.name.count) * 7.5 + 12
            lines.append("<circle class=\"c\(index % Self.coloursCount)\" cx=\"\(x.fixed(1))\" cy=\"56\" r=\"4\"/>")
            x -= 16
        }
        return lines
    }

    private func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ kind: String) -> String {
        "<line class=\"\(kind)\" x1=\"\(x1.fixed(1))\" y1=\"\(y1.fixed(1))\" x2=\"\(x2.fixed(1))\" y2=\"\(y2.fixed(1))\"/>"
    }

    private func text(_ x: Double, _ y: Double, _ text: String, _ anchor: String, _ kind: String? = nil) -> String {
        let attribute = kind.map { " class=\"\($0)\"" } ?? ""
        return
            "<text\(attribute) x=\"\(x.fixed(1))\" y=\"\(y.fixed(1))\" text-anchor=\"\(anchor)\">\(Self.escaped(text))</text>"
    }

    private static func escaped(_ text: String) -> String {
        var result = ""
        for character in text {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            default: result.append(character)
            }
        }
        return result
    }
}

extension Double {
    /// A power of ten as the label of a tick: `0.01`, `1`, `1,000`.
    fileprivate var readableTick: String {
        self >= 1
            ? self.rounded() >= 100 ? readable : fixed(0) : self >= 0.1 ? fixed(1) : self >= 0.01 ? fixed(2) : fixed(3)
    }
}
