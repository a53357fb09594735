/// An aim and what was found.
package struct Judgement: Codable, Equatable, Sendable {
    /// Which side of the wanted figure is good.
    package enum Bound: String, Codable, Sendable {
        case atLeast = "at least"
        case atMost = "at most"
    }

    /// What is judged, such as `CPU per request, C's over ours`.
    package var subject: String
    /// What was found.
    package var figure: Double
    /// Which side of `wanted` is good.
    package var bound: Bound
    /// What was aimed at.
    package var wanted: Double

    /// A judgement of this figure.
    package init(_ subject: String, _ figure: Double, _ bound: Bound, _ wanted: Double) {
        self.subject = subject
        self.figure = figure
        self.bound = bound
        self.wanted = wanted
    }

    /// Whether the figure is on the good side.
    package var isMet: Bool {
        switch bound {
        case .atLeast: figure >= wanted
        case .atMost: figure <= wanted
        }
    }

    /// `met`, or by how much of what was wanted it was missed.
    package var verdict: String {
        isMet ? "met" : "missed by \((100 * abs(figure - wanted) / max(wanted, 1e-9)).fixed(0)) %"
    }
}
