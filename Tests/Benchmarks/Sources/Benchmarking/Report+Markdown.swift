extension Report {
    /// The facts, the medians of every series and the aims as Markdown, for a page of documentation.
    package var markdown: String {
        var servers = Table([
            "scenario", "who", "CPU us", "requests/s", "p50 ms", "p99 ms", "last ms", "resident", "C's CPU / its",
        ])
        var aims = Table(["scenario", "aim", "found", "wanted", ""])
        for finding in findings {
            for series in finding.series {
                servers.add([finding.scenario, series.who] + finding.cells(of: series))
            }
            for judgement in finding.judgements {
                aims.add([finding.scenario] + judgement.cells)
            }
        }
        let machine = facts.map { "\($0.name): \($0.value)" }.joined(separator: "; ")
        return "\(machine).\n\n\(servers.markdown)\n\n\(aims.markdown)\n"
    }
}

extension Finding {
    /// The figures of a series as the cells of a row, without its name.
    func cells(of series: Series) -> [String?] {
        let median = series.median
        let memory: String? =
            median.residentEachKiB.map { "\($0.fixed(1)) KiB each" }
            ?? median.residentKiB.map { "\(($0 / 1024).fixed(0)) MiB" }
        let ratio = self.series(of: "C")?.ratio(of: \.cpuMicroseconds, to: series)
        return [
            median.cpuMicroseconds?.readable, median.perSecond?.readable, median.p50Milliseconds?.readable,
            median.p99Milliseconds?.readable, median.lastMilliseconds?.readable, memory, ratio?.fixed(2),
        ]
    }
}

extension Judgement {
    /// The judgement as the cells of a row.
    var cells: [String] {
        [subject, figure.readable, "\(bound.rawValue) \(wanted.readable)", verdict]
    }
}
