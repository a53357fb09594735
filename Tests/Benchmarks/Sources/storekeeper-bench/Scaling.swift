internal import Benchmarking
internal import FoundationEssentials

/// The scenario `scaling`: costs by the size of the state, the number of waiters and the length of the journal.
enum Scaling {
    static let scenario = Scenario(
        "scaling", "costs over 100 to 1,000,000 objects, 1 to 19,000 waiters, and 1,000 to 1,000,000 commits"
    ) { bench, finding in
        finding.charts.append(try objects(bench, &finding))
        finding.charts += try waiters(bench, &finding)
        finding.charts.append(try commits(bench))
    }

    private static func sizes(_ full: [Int], _ bench: Bench) -> [Int] {
        bench.effort.isQuick ? Array(full.prefix(2)) : full
    }

    /// CPU time of a commit and of a GET of one object, by the number of objects.
    private static func objects(_ bench: Bench, _ finding: inout Finding) throws -> Chart {
        var commit = Chart.Curve("a commit that moves one")
        var get = Chart.Curve("a GET of one")
        for count in sizes([100, 1000, 10_000, 100_000, 1_000_000], bench) {
            let server = try ServerKind.startStorekeeper(bench.workplace, data: "none")
            defer { stop(server, &finding) }
            try Objects.fill(server, count)
            if let cost = try costOfMoves(server, count, bench) { commit.points.append(.init(Double(count), cost)) }
            let read = try cost(bench) {
                try Objects.read(server, count, connections: 16, seconds: 1, in: bench.workplace)
            }
            if let read { get.points.append(.init(Double(count), read)) }
        }
        return Chart(
            name: "scaling-objects", title: "Cost by the size of the state", sizes: "objects",
            figures: "CPU us", curves: [commit, get])
    }

    /// The time until the last waiter has its answer, and the cost of a commit that wakes no waiter.
    private static func waiters(_ bench: Bench, _ finding: inout Finding) throws -> [Chart] {
        var last = Chart.Curve("storekeeper")
        var commit = Chart.Curve("a commit elsewhere")
        for count in sizes([1, 10, 100, 1000, 10_000, 19_000], bench) {
            do {
                let (time, cost) = try waiters(count, bench, &finding)
                if let time { last.points.append(.init(Double(count), time)) }
                if let cost { commit.points.append(.init(Double(count), cost)) }
            } catch {
                // The curves lack this point, and a remark says so.
                finding.remarks.append("\(count) waiters: \(error)")
            }
        }
        return [
            Chart(
                name: "scaling-waiters", title: "Time until the last of all waiters has its answer", sizes: "waiters",
                figures: "ms", curves: [last]),
            Chart(
                name: "scaling-elsewhere", title: "Cost of a commit that wakes no waiter",
                sizes: "waiters", figures: "CPU us", curves: [commit]),
        ]
    }

    /// The same for one number of waiters.
    private static func waiters(
        _ count: Int, _ bench: Bench, _ finding: inout Finding
    ) throws -> (last: Double?, commit: Double?) {
        let server = try ServerKind.startStorekeeper(bench.workplace, data: "none")
        defer { stop(server, &finding) }
        try Objects.fill(server, 100)
        let waiterLoad = try WaiterLoad(server, .longPoll, count)
        // The first round warms up.
        let times = try (0..<bench.effort.runs + 1).map { _ in try waiterLoad.round().lastMilliseconds }.dropFirst()
        let fleet = try waiterLoad.assemble()
        let commit = try withExtendedLifetime(fleet) { try costOfMoves(server, 100, bench) }
        return (times.compactMap { $0 }.median, commit)
    }

    /// The time until a server is ready, by the length of its journal.
    private static func commits(_ bench: Bench) throws -> Chart {
        var start = Chart.Curve("start")
        let data = bench.workplace.path("data").path
        for count in sizes([1000, 10_000, 100_000, 1_000_000], bench) {
            try Start.fill(data, to: count, bench)
            let times = try (0..<3).compactMap { _ in
                try Start.start(data, bench) { try $0.stop() }.lastMilliseconds
            }
            if let time = times.median { start.points.append(.init(Double(count), time)) }
        }
        return Chart(
            name: "scaling-start", title: "Time until a server is ready", sizes: "commits in the journal",
            figures: "ms", curves: [start])
    }

    private static func costOfMoves(_ server: Server, _ count: Int, _ bench: Bench) throws -> Double? {
        try cost(bench) {
            try Wrk.load(
                server, Objects.moves(among: 0..<count), connections: 16, seconds: 1, in: bench.workplace)
        }
    }

    private static func cost(_ bench: Bench, _ load: () throws -> Reading) throws -> Double? {
        let costs = try (0..<min(3, bench.effort.runs) + 1).map { _ in try load().cpuMicroseconds }
        // The first load warms up.
        return costs.dropFirst().compactMap { $0 }.median
    }
}
