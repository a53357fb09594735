internal import ArgumentParser
internal import Benchmarking
internal import Glibc

/// The command `storekeeper-bench`: it measures the server and its peers, and prints a report.
@main
struct StorekeeperBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "storekeeper-bench",
        abstract:
            "Measure the server beside a minimal C program on the same library, and beside others that are installed.",
        discussion: "Scenarios, all of them by default:\n"
            + Scenario.all.map { "  \($0.name): \($0.summary)" }.joined(separator: "\n"))

    @Argument(help: "Which scenarios to run.")
    var scenarios: [String] = []

    @Option(help: "How often each server is measured in each scenario, in turn with the others.")
    var runs = 5

    @Option(help: "How many seconds one load lasts.")
    var seconds = 3

    @Option(help: "How many seconds of actions the soak scenario lasts.")
    var soakSeconds = 60

    @Flag(help: "One run of a second, with few connections and small states: to see that it works.")
    var quick = false

    @Flag(help: "Only the server and the C program, no others.")
    var noPeers = false

    mutating func validate() throws {
        let known = Set(Scenario.all.map(\.name))
        if let stranger = scenarios.first(where: { !known.contains($0) }) {
            throw ValidationError("there is no scenario \(stranger)")
        }
        guard runs > 0, seconds > 0, soakSeconds > 0 else { throw ValidationError("numbers must be above 0") }
    }

    func run() throws {
        let effort =
            quick
            ? Effort(runs: 1, seconds: 1, soakSeconds: 4, isQuick: true, hasPeers: !noPeers)
            : Effort(runs: runs, seconds: seconds, soakSeconds: soakSeconds, isQuick: false, hasPeers: !noPeers)
        _ = Fleet.raiseDescriptorLimit()
        let workplace = try Workplace()
        defer { workplace.close() }
        guard try measure(Bench(workplace: workplace, effort: effort)) else { throw ExitCode.failure }
    }

    /// Runs the scenarios; false if one of them could not be finished.
    private func measure(_ bench: Bench) throws -> Bool {
        var isComplete = true
        var report = Report(facts: Machine.facts(bench.workplace))
        for fact in report.facts { print("\(fact.name): \(fact.value)") }
        print("")
        for scenario in Scenario.all where scenarios.isEmpty || scenarios.contains(scenario.name) {
            let result = scenario.run(bench)
            print(result.finding.text)
            isComplete = isComplete && result.isComplete
            // Without a flush, a pipe or a file would get the text only at the end.
            fflush(nil)
            report.findings.append(result.finding)
        }
        print(report.markdown)
        print(report.aims)
        return isComplete
    }
}
