/// What one run of one server has shown; what a scenario does not measure is nil.
package struct Reading: Codable, Equatable, Sendable {
    /// CPU time of the server for one request, user and system, in microseconds.
    package var cpuMicroseconds: Double?
    /// Requests answered in a second.
    package var perSecond: Double?
    /// The time that half of the answers do not exceed, in milliseconds.
    package var p50Milliseconds: Double?
    /// The time that 99 of 100 answers do not exceed, in milliseconds.
    package var p99Milliseconds: Double?
    /// The time until the last of those who waited has its answer, in milliseconds.
    package var lastMilliseconds: Double?
    /// Resident memory of the server, in KiB.
    package var residentKiB: Double?
    /// Resident memory that one more parked connection takes, in KiB.
    package var residentEachKiB: Double?

    /// A reading of nothing, to be filled.
    package init() {}

    private static let fields: [any WritableKeyPath<Reading, Double?> & Sendable] = [
        \.cpuMicroseconds, \.perSecond, \.p50Milliseconds, \.p99Milliseconds, \.lastMilliseconds, \.residentKiB,
        \.residentEachKiB,
    ]

    /// The median of each figure by itself, over the runs that have it.
    package static func median(of runs: [Reading]) -> Reading {
        var result = Reading()
        for field in fields { result[keyPath: field] = runs.compactMap { $0[keyPath: field] }.median }
        return result
    }
}

/// The runs of one server in one scenario.
package struct Series: Codable, Equatable, Sendable {
    /// Whose runs these are, such as `storekeeper` or `C`.
    package var who: String
    /// The runs, in the order in which they were made.
    package var runs: [Reading]

    /// A series with these runs.
    package init(who: String, runs: [Reading] = []) {
        self.who = who
        self.runs = runs
    }

    /// The median of each figure.
    package var median: Reading { .median(of: runs) }

    /// The median of a figure here divided by the same figure there, run by run.
    ///
    /// The runs of two servers are made in turn, so that what disturbs the machine meets both; the quotient of runs that
    /// were neighbours is steadier than the quotient of two medians. Nil where no run has the figure on both sides.
    package func ratio(of figure: KeyPath<Reading, Double?>, to other: Series) -> Double? {
        zip(runs, other.runs).compactMap { here, there -> Double? in
            guard let here = here[keyPath: figure], let there = there[keyPath: figure], there > 0 else { return nil }
            return here / there
        }.median
    }
}
