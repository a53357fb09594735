/// How figures grow with a size: curves over one axis of sizes, both axes logarithmic.
package struct Chart: Codable, Equatable, Sendable {
    /// A figure at each size.
    package struct Curve: Codable, Equatable, Sendable {
        /// What the figure is, such as `a commit`.
        package var name: String
        /// Sizes and figures, both above 0, by size.
        package var points: [Point]

        /// A curve through these points.
        package init(_ name: String, points: [Point] = []) {
            self.name = name
            self.points = points
        }
    }

    /// A figure at a size.
    package struct Point: Codable, Equatable, Sendable {
        /// How much there was.
        package var size: Double
        /// What it cost.
        package var figure: Double

        /// The point of a size.
        package init(_ size: Double, _ figure: Double) {
            self.size = size
            self.figure = figure
        }
    }

    /// The name of the drawing's file, without its ending.
    package var name: String
    /// What is drawn, in a line.
    package var title: String
    /// What the sizes count, such as `objects`.
    package var sizes: String
    /// The unit of the figures, such as `CPU microseconds`.
    package var figures: String
    /// The curves.
    package var curves: [Curve]

    /// A chart of these curves.
    package init(name: String, title: String, sizes: String, figures: String, curves: [Curve] = []) {
        self.name = name
        self.title = title
        self.sizes = sizes
        self.figures = figures
        self.curves = curves
    }

    /// The curves as columns of a table.
    package var table: Table {
        var table = Table([sizes] + curves.map { "\($0.name), \(figures)" })
        for size in Set(curves.flatMap { $0.points.map(\.size) }).sorted() {
            table.add(
                [size.readable]
                    + curves.map { curve in curve.points.first { $0.size == size }?.figure.readable })
        }
        return table
    }
}
