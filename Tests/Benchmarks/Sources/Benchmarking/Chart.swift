/// A chart of figures by size: curves over one axis of sizes, with two logarithmic axes.
package struct Chart: Codable, Equatable, Sendable {
    /// A curve: a figure for each size.
    package struct Curve: Codable, Equatable, Sendable {
        /// The name of the figure, such as `a commit`.
        package var name: String
        /// The points in the order of their sizes; sizes and figures are above 0.
        package var points: [Point]

        /// Makes a curve through points.
        package init(_ name: String, points: [Point] = []) {
            self.name = name
            self.points = points
        }
    }

    /// A figure at a size.
    package struct Point: Codable, Equatable, Sendable {
        /// The size, such as a number of objects.
        package var size: Double
        /// The figure at this size.
        package var figure: Double

        /// Makes a point.
        package init(_ size: Double, _ figure: Double) {
            self.size = size
            self.figure = figure
        }
    }

    /// The name of the SVG file, without its extension.
    package var name: String
    /// The title, in one line.
    package var title: String
    /// The unit of the sizes, such as `objects`.
    package var sizes: String
    /// The unit of the figures, such as `CPU microseconds`.
    package var figures: String
    /// The curves.
    package var curves: [Curve]

    /// Makes a chart.
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
