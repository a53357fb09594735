internal import Glibc

/// Places values on an axis of whole decades.
struct LogScale {
    /// The exponents of ten at both ends.
    let decades: ClosedRange<Int>
    /// The places of both ends.
    let start, end: Double

    /// The smallest scale of whole decades, at least one, that has room for all of these values above 0.
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
