/// What a scenario has found.
package struct Finding: Codable, Equatable, Sendable {
    /// The scenario's name, as on the command line.
    package var scenario: String
    /// What was measured, in a sentence.
    package var summary: String
    /// The runs of each server that took part, the yardstick first where there is one.
    package var series: [Series] = []
    /// The aims and whether they are met.
    package var judgements: [Judgement] = []
    /// How figures grow with a size, to be drawn.
    package var charts: [Chart] = []
    /// What else there is to say, such as who could not take part.
    package var remarks: [String] = []

    /// A finding with nothing in it yet.
    package init(scenario: String, summary: String) {
        self.scenario = scenario
        self.summary = summary
    }

    /// The series of this server, if it took part.
    package func series(of who: String) -> Series? {
        series.first { $0.who == who }
    }

    /// The series, judgements, curves and remarks as lines of text.
    package var text: String {
        var parts = ["\(scenario): \(summary)"]
        if !series.isEmpty { parts.append(seriesTable.text) }
        for chart in charts { parts.append("\(chart.title)\n\(chart.table.text)") }
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

/// All that one call of the benchmarks has found, and on what machine.
package struct Report: Codable, Equatable, Sendable {
    /// Facts such as `CPU` and `kernel`, in the order in which they are printed.
    package struct Fact: Codable, Equatable, Sendable {
        /// What it is about.
        package var name: String
        /// What is so.
        package var value: String

        /// A fact of this name.
        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The machine, the versions, the date.
    package var facts: [Fact]
    /// What was found, in the order of the scenarios.
    package var findings: [Finding] = []

    /// A report without findings.
    package init(facts: [Fact]) {
        self.facts = facts
    }
}
