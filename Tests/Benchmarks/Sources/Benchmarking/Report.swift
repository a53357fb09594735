/// The result of a scenario.
package struct Finding: Equatable, Sendable {
    /// The name of the scenario, as on the command line.
    package var scenario: String
    /// What the scenario measures, in a sentence.
    package var summary: String
    /// The runs of each server, the baseline first where there is one.
    package var series: [Series] = []
    /// The aims and whether they are met.
    package var judgements: [Judgement] = []
    /// Remarks, such as which server could not run.
    package var remarks: [String] = []

    /// Makes a finding without results.
    package init(scenario: String, summary: String) {
        self.scenario = scenario
        self.summary = summary
    }

    /// The series of a server, or nil where it did not run.
    package func series(of who: String) -> Series? {
        series.first { $0.who == who }
    }

    /// The series, judgements and remarks as plain text.
    package var text: String {
        var parts = ["\(scenario): \(summary)"]
        if !series.isEmpty { parts.append(seriesTable.text) }
        if !judgements.isEmpty { parts.append(judgementTable.text) }
        parts += remarks.map { "note: \($0)" }
        return parts.joined(separator: "\n") + "\n"
    }

    private var seriesTable: Table {
        var table = Table([
            "who", "CPU us/request", "requests/s", "p50 ms", "p99 ms", "last ms", "RSS", "C's CPU / its",
        ])
        for one in series { table.add([one.who] + cells(of: one)) }
        return table
    }

    private var judgementTable: Table {
        var table = Table(["aim", "found", "wanted", ""])
        for judgement in judgements { table.add(judgement.cells) }
        return table
    }
}

/// The results of one call of the benchmarks, with facts about the machine.
package struct Report: Equatable, Sendable {
    /// Facts such as `CPU` and `kernel`, in the order in which they are printed.
    package struct Fact: Equatable, Sendable {
        /// The name of the fact.
        package var name: String
        /// The value of the fact.
        package var value: String

        /// Makes a fact.
        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The facts: the machine, the versions, the date.
    package var facts: [Fact]
    /// The findings, in the order of the scenarios.
    package var findings: [Finding] = []

    /// How many aims hold, and the list of those that do not.
    package var aims: String {
        let judgements = findings.flatMap { finding in finding.judgements.map { (finding.scenario, $0) } }
        let missed = judgements.filter { !$0.1.isMet }
        let lines = missed.map { scenario, judgement in
            "missed: \(scenario): \(judgement.subject): \(judgement.figure.readable), wanted \(judgement.bound.rawValue) \(judgement.wanted.readable)"
        }
        return (["\(judgements.count - missed.count) of \(judgements.count) aims hold"] + lines).joined(separator: "\n")
    }

    /// Makes a report without findings.
    package init(facts: [Fact]) {
        self.facts = facts
    }
}
