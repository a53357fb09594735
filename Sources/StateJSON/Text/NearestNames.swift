package enum NearestNames {
    /// At most three; O(m n) for the first m bytes of the name, at most 64, and the n bytes of all names.
    package static func of(_ name: String, among names: [String]) -> [String] {
        let start = Array(name.utf8.prefix(64))
        let scored = names.map { ($0, distance(start, Array($0.utf8))) }
        return scored.filter { $0.1 <= max(2, $0.0.utf8.count / 3) || $0.0.hasSuffix("/\(name)") }
            .sorted { ($0.1, $0.0) < ($1.1, $1.0) }.prefix(3).map(\.0)
    }

    /// Empty where no name is near.
    package static func hint(_ name: String, among names: [String]) -> String {
        of(name, among: names).first.map { "; did you mean \($0)?" } ?? ""
    }

    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var row = Array(0...right.count)
        for (i, a) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, b) in right.enumerated() {
                let cost = min(row[j] + 1, row[j + 1] + 1, diagonal + (a == b ? 0 : 1))
                diagonal = row[j + 1]
                row[j + 1] = cost
            }
        }
        return row[right.count]
    }
}
