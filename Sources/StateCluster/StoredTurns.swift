internal import StateStore

/// A range request bounds the number of its turns, each up to a megabyte, not their bytes, so a page is as long as the
/// largest turn of the page before lets it be, and shorter where no etcd answered in time.
extension StoredHistory {
    private static let pageBytesMax = 4 << 20
    /// So many of the largest turns are, in Base64, still an answer that the client takes.
    private static let pageTurnsMax = 128

    @discardableResult
    func forEachTurn(
        from first: Version, through last: Version = .max, _ take: (Version, [UInt8]) throws -> Bool
    ) throws -> UInt64 {
        var (next, limit) = (first, 4)
        while true {
            let page: Etcd.RangeResponse
            do {
                var range = keys.turnRange(from: next, through: last, limit: limit)
                range.revision = revision.map { "\($0)" }
                // A long page that fails becomes a shorter one at once.
                page = try limit > 1 ? client.call("/v3/kv/range", range) : client.range(range)
            } catch {
                guard limit > 1, error.isPassing else { throw error }
                limit = max(1, limit / 8)
                continue
            }
            var largest = 1
            for pair in page.kvs ?? [] {
                let (version, value) = try turn(pair)
                guard try take(version, value) else { return 0 }
                largest = max(largest, value.count)
                next = version + 1
            }
            guard page.more == true else { return page.header.number }
            limit = max(1, min(Self.pageTurnsMax, Self.pageBytesMax / largest))
        }
    }

    func firstTurn(of range: Etcd.Range) throws(ClusterFault) -> (key: Version, value: [UInt8])? {
        guard let pair = try pairs(range).first else { return nil }
        return try turn(pair)
    }

    /// The commit's own version where no turn is so old.
    func turnKey(of version: Version) throws(ClusterFault) -> Version {
        try firstTurn(of: keys.turnRange(through: version, limit: 1, keysOnly: true, isNewestFirst: true))?.key
            ?? version
    }

    /// Nil without a turn.
    func oldestVersion() throws(ClusterFault) -> Version? {
        guard let (key, value) = try firstTurn(of: keys.turnRange(limit: 1)) else { return nil }
        return RecordedTurn.isBeginning(value) ? key : key - min(1, key)
    }

    private func turn(_ pair: Etcd.Pair) throws(ClusterFault) -> (Version, [UInt8]) {
        guard let version = keys.version(ofTurn: pair.key) else {
            throw ClusterFault("a key below \(keys.turns) in etcd is not that of a turn")
        }
        return (version, pair.bytes)
    }
}
