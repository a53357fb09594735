/// The figures of one run of one server; a figure that the scenario does not measure is nil.
package struct Reading: Equatable, Sendable {
    /// CPU time of the server for one request, user and system, in microseconds.
    package var cpuMicroseconds: Double?
    /// Requests answered in a second.
    package var perSecond: Double?
    /// The time that half of the answers do not exceed, in milliseconds.
    package var p50Milliseconds: Double?
    /// The time that 99 of 100 answers do not exceed, in milliseconds.
    package var p99Milliseconds: Double?
    /// The time until the last waiter has its answer, in milliseconds.
    package var lastMilliseconds: Double?
    /// Resident memory of the server, in KiB.
    package var residentKiB: Double?
    /// Resident memory of the server for each parked connection, in KiB.
    package var residentEachKiB: Double?

    /// Makes a reading without figures.
    package init() {}

    private static let fields: [any WritableKeyPath<Reading, Double?> & Sendable] = [
        \.cpuMicroseconds, \.perSecond, \.p50Milliseconds, \.p99Milliseconds, \.lastMilliseconds, \.residentKiB,
        \.residentEachKiB,
    ]

    /// The median of each figure, over the runs that have it.
    package static func median(of runs: [Reading]) -> Reading {
        var result = Reading()
        for field in fields { result[keyPath: field] = runs.compactMap { $0[keyPath: field] }.median }
        return result
    }
}

/// The runs of one server in one scenario.
package struct Series: Equatable, Sendable {
    /// The name of the server, such as `storekeeper` or `C`.
    package var who: String
    /// The runs in order.
    package var runs: [Reading]

    /// Makes a series.
    package init(who: String, runs: [Reading] = []) {
        self.who = who
        self.runs = runs
    }

    /// The median of each figure.
    package var median: Reading { .median(of: runs) }

    /// The median, over the runs, of a figure of this series divided by the same figure of another.
    ///
    /// The servers take turns, so a disturbance of the machine affects both; quotients of neighbouring runs vary less than
    /// the quotient of two medians. Nil where no run has the figure in both series.
    package func ratio(of figure: KeyPath<Reading, Double?>, to other: Series) -> Double? {
        zip(runs, other.runs).compactMap { here, there -> Double? in
            guard let here = here[keyPath: figure], let there = there[keyPath: figure], there > 0 else { return nil }
            return here / there
        }.median
    }
}
