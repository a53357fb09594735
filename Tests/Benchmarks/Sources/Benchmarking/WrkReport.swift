/// The report that `wrk --latency` prints at its end.
package struct WrkReport: Equatable, Sendable {
    /// The number of answered requests.
    package var requestsCount: Int
    /// Requests answered in a second.
    package var perSecond: Double
    /// The time that half of the answers do not exceed, in milliseconds.
    package var p50Milliseconds: Double
    /// The time that 99 of 100 answers do not exceed, in milliseconds.
    package var p99Milliseconds: Double
    /// The lines about answers other than 2xx and 3xx, and about socket errors.
    package var complaints: [String]

    /// Reads a report; nil where a required line is missing.
    package init?(_ text: String) {
        let lines = text.split(separator: "\n").map { line in
            line.split(separator: " ").map(String.init)
        }
        func words(_ isMeant: ([String]) -> Bool) -> [String]? { lines.first(where: isMeant) }
        guard let requests = words({ $0.count > 2 && $0[1] == "requests" && $0[2] == "in" }).flatMap({ Int($0[0]) }),
            let rate = words({ $0.first == "Requests/sec:" })?.last.flatMap(Double.init),
            let p50 = words({ $0.first == "50%" })?.last.flatMap(Self.milliseconds),
            let p99 = words({ $0.first == "99%" })?.last.flatMap(Self.milliseconds)
        else { return nil }
        requestsCount = requests
        perSecond = rate
        p50Milliseconds = p50
        p99Milliseconds = p99
        complaints = lines.filter { ["Non-2xx", "Socket"].contains($0.first) }.map { $0.joined(separator: " ") }
    }

    /// A time as wrk writes it, such as `850.00us`, `1.11ms`, `2.05s` or `1.50m`, in milliseconds; nil for
    /// any other text.
    package static func milliseconds(_ text: String) -> Double? {
        for (unit, scale) in [("us", 0.001), ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)] {
            if text.hasSuffix(unit), let number = Double(text.dropLast(unit.count)) { return number * scale }
        }
        return nil
    }
}
