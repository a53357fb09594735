internal import Benchmarking

/// How much is measured.
struct Effort {
    var runs: Int
    var seconds: Int
    var soakSeconds: Int
    var isQuick: Bool
    var hasPeers: Bool

    /// A number of connections, objects or commits: as asked for, or few when it is only to be seen that it works.
    func count(_ full: Int) -> Int { isQuick ? min(full, 200) : full }
}

/// What a scenario works with.
struct Bench {
    let workplace: Workplace
    let effort: Effort
}

/// Something to be measured, by name.
struct Scenario: Sendable {
    let name: String
    let summary: String
    private let measure: @Sendable (Bench, inout Finding) throws -> Void

    init(_ name: String, _ summary: String, _ measure: @escaping @Sendable (Bench, inout Finding) throws -> Void) {
        self.name = name
        self.summary = summary
        self.measure = measure
    }

    /// Measures it; what went wrong is among the remarks, with all that was found until then.
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
        Throughput.scenarios + Wakes.scenarios + [
            WakeOneOfMany.scenario, WatchedPosts.scenario, MoveObject.scenario,
            GetObject.scenario, Start.scenario, Scaling.scenario, Soak.scenario,
        ]
    }
}

/// Ends the benchmarks with a sentence.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
