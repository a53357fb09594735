/// A comparison of a figure with its aim.
package struct Judgement: Equatable, Sendable {
    /// The side of the aim on which a figure meets it.
    package enum Bound: String, Sendable {
        case atLeast = "at least"
        case atMost = "at most"
    }

    /// The name of the figure, such as `CPU per request, C's over ours`.
    package var subject: String
    /// The measured figure.
    package var figure: Double
    /// The side of `wanted` on which the figure meets the aim.
    package var bound: Bound
    /// The aim.
    package var wanted: Double

    /// Makes a judgement of a figure.
    package init(_ subject: String, _ figure: Double, _ bound: Bound, _ wanted: Double) {
        self.subject = subject
        self.figure = figure
        self.bound = bound
        self.wanted = wanted
    }

    /// Whether the figure meets the aim.
    package var isMet: Bool {
        switch bound {
        case .atLeast: figure >= wanted
        case .atMost: figure <= wanted
        }
    }

    /// `met`, or by how many percent of the aim the figure misses it.
    package var verdict: String {
        isMet ? "met" : "missed by \((100 * abs(figure - wanted) / max(wanted, 1e-9)).fixed(0)) %"
    }
}
