internal import Glibc

/// A logarithmic axis of whole decades.
struct LogScale {
    /// The exponents of ten at the two ends.
    let decades: ClosedRange<Int>
    /// The coordinates of the two ends.
    let start, end: Double

    /// Makes the smallest scale of whole decades, at least one, that holds all values; the values are above 0.
    init(_ values: [Double], from start: Double, to end: Double) {
        let exponents = values.filter { $0 > 0 }.map { log10($0) }
        let low = Int((exponents.min() ?? 0).rounded(.down))
        let high = Int((exponents.max() ?? 1).rounded(.up))
        decades = low...max(high, low + 1)
        self.start = start
        self.end = end
    }

    func place(_ value: Double) -> Double {
        let share = (log10(value) - Double(decades.lowerBound)) / Double(decades.count - 1)
        return start + share * (end - start)
    }

    /// The powers of ten on the axis.
    var ticks: [Double] { decades.map { pow(10, Double($0)) } }
}
