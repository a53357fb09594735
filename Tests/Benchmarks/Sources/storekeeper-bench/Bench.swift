internal import Benchmarking

/// The numbers of runs, seconds and objects to measure.
struct Effort {
    var runs: Int
    var seconds: Int
    var soakSeconds: Int
    var isQuick: Bool
    var hasPeers: Bool

    /// A number of connections, objects or commits: the full number, or at most 200 with `--quick`.
    func count(_ full: Int) -> Int { isQuick ? min(full, 200) : full }
}

/// The environment of a scenario.
struct Bench {
    let workplace: Workplace
    let effort: Effort
}

/// A named measurement.
struct Scenario: Sendable {
    let name: String
    let summary: String
    private let measure: @Sendable (Bench, inout Finding) throws -> Void

    init(_ name: String, _ summary: String, _ measure: @escaping @Sendable (Bench, inout Finding) throws -> Void) {
        self.name = name
        self.summary = summary
        self.measure = measure
    }

    /// Runs the measurement; after an error the finding has the results so far, and the error as a remark.
    func run(_ bench: Bench) -> (finding: Finding, isComplete: Bool) {
        var finding = Finding(scenario: name, summary: summary)
        var isComplete = true
        do {
            try measure(bench, &finding)
        } catch {
            isComplete = false
            finding.remarks.append("not finished: \(error)")
        }
        if bench.effort.isQuick { finding.remarks.append("quick: one short run with few connections and small states") }
        return (finding, isComplete)
    }

    static var all: [Scenario] {
        Throughput.scenarios + [NamedPosts.scenario] + ModelPosts.scenarios + Wakes.scenarios + [
            WakeOneOfMany.scenario, WakeStreams.scenario, WatchedPosts.scenario,
            MoveObject.scenario, GetObject.scenario, Start.scenario, Soak.scenario,
        ]
    }
}

/// An error with a sentence for the user.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
