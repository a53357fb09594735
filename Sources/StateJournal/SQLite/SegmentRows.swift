internal import FoundationEssentials
internal import GRDB
internal import StateStore

/// Everything that it returns is verified: a segment has the hash that its content and its predecessor's hash make, and
/// follows without a gap.
struct SegmentRows: Sendable {
    let path: String
    let epoch: Epoch

    init(path: String, epoch: Epoch) { (self.path, self.epoch) = (path, epoch) }

    init(_ db: Database, _ path: String) throws {
        let format = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        guard format == JournalSchema.version else { throw JournalError(format: format, path) }
        guard let text: String = try JournalSchema.value(db, "epoch"), let epoch = Epoch(text) else {
            throw JournalError(damaged: path, "it has no epoch")
        }
        self.init(path: path, epoch: epoch)
    }

    func base(_ db: Database) throws -> ChainLink {
        guard let version = try JournalSchema.version(db, "base_version"),
            let hash = try JournalSchema.value(db, "base_hash").flatMap(SegmentHash.init(value:))
        else { throw JournalError(damaged: path, "it does not say where its commits begin") }
        return ChainLink(version: version, hash: hash)
    }

    func verifyBase(_ db: Database) throws {
        let base = try base(db)
        guard let first = try Version(db, "SELECT min(first) FROM segments") else {
            guard base == ChainLink(beginning: epoch, version: base.version) else {
                throw JournalError(lacking: base.version, path)
            }
            return
        }
        guard first == base.version + 1 else { throw JournalError(lacking: base.version + 1, path) }
        try readSegments(db, after: base.version, through: first) { _, _ in true }
    }

    func link(_ db: Database, before first: Version) throws -> ChainLink {
        let row = try db.cachedStatement(
            sql: "SELECT last, hash FROM segments WHERE first < ? ORDER BY first DESC LIMIT 1")
        guard let row = try Row.fetchOne(row, arguments: [Int64(clamping: first)]) else { return try base(db) }
        guard let link = ChainLink(row) else {
            throw JournalError(damaged: path, "the segment before version \(first) has no hash")
        }
        return link
    }

    func tip(_ db: Database) throws -> ChainLink { try link(db, before: .max) }

    /// Never that of the newest segment.
    func link(_ db: Database, endingAtOrBefore version: Version) throws -> ChainLink? {
        // Of all segments that begin by then, only the last can end later.
        let rows = try Row.fetchAll(
            db, sql: "SELECT last, hash FROM segments WHERE first <= ? ORDER BY first DESC LIMIT 2",
            arguments: [Int64(clamping: version)])
        let tip = try tip(db)
        return rows.lazy.compactMap(ChainLink.init).first { $0.version <= version && $0 != tip }
    }

    func segmentsBytes(_ db: Database, after version: Version) throws -> Int {
        try Int.fetchOne(
            db, sql: "SELECT ifnull(sum(length(body)), 0) FROM segments WHERE first > ?",
            arguments: [Int64(clamping: version)]) ?? 0
    }

    func latestVersion(_ db: Database) throws -> Version {
        max(try tip(db).version, try Version(db, "SELECT max(version) FROM snapshots") ?? 0)
    }

    /// Reads in order until `take` returns false, and nothing where the first commit after `version` has been pruned.
    func readSegments(
        _ db: Database, after version: Version, through last: Version,
        _ take: (_ decoder: inout SegmentDecoder, _ first: Version) throws -> Bool
    ) throws {
        guard version < last else { return }
        let rows = try PreparedStatement(
            db,
            """
            SELECT first, last, hash, body FROM segments
            WHERE first >= ifnull((SELECT max(first) FROM segments WHERE first <= ?1), ?1) AND first <= ?2
            ORDER BY first
            """)
        rows.bind(1, Int64(clamping: version + 1))
        rows.bind(2, Int64(clamping: last))
        defer { rows.reset() }
        var link: ChainLink?
        while try rows.step() {
            guard let first = Version(recorded: rows.integer(0)), let end = Version(recorded: rows.integer(1)),
                end >= first
            else {
                throw JournalError(
                    damaged: path, "the segment after version \(link?.version ?? version) has no versions")
            }
            let before = try link ?? self.link(db, before: first)
            guard before.version + 1 == first else { throw JournalError(lacking: before.version + 1, path) }
            // This is the oldest segment: the commits before it are pruned.
            if link == nil, first > version + 1 { return }
            let body = rows.bytes(3)
            let hash = SegmentHash(after: before.hash, first: first, last: end, body: body.bytes)
            guard hash.withBytes({ rows.bytes(2).elementsEqual($0) }) else {
                throw JournalError(damagedFrom: first, through: end, path)
            }
            link = ChainLink(version: end, hash: hash)
            guard end > version else { continue }
            do {
                var decoder = try SegmentDecoder(body, first: first, epoch: epoch)
                guard first + Version(decoder.count) == end + 1 else { throw SegmentFault.malformed }
                guard try take(&decoder, first) else { return }
            } catch let fault as SegmentFault {
                throw JournalError(
                    "cannot read the segment of versions \(first) to \(end) in the journal \(path): \(fault.detail)")
            }
        }
        // A gap ends the rows where the commits up to `last` are in it.
        let end = link?.version ?? version
        guard end < last, try link != nil || base(db).version <= version else { return }
        if try tip(db).version > end { throw JournalError(lacking: end + 1, path) }
    }
}

// MARK: - Commits

extension SegmentRows {
    func oldest(_ db: Database) throws -> Version { try base(db).version }

    /// About 16 megabytes at most; none where the first commit has been pruned.
    func commits(_ db: Database, after version: Version, through last: Version, limit: Int) throws -> [Commit] {
        var commits: [Commit] = []
        var bytes = 0
        try read(db, after: version, through: last) { commit in
            guard commits.count < limit, bytes < 16 << 20 else { return false }
            commits.append(commit)
            bytes += commit.action.count + commit.patch.count
            return true
        }
        return commits
    }

    /// Reads in order until `take` returns false, and nothing where the first of the commits has been pruned.
    func read(
        _ db: Database, after version: Version, through last: Version, _ take: (Commit) throws -> Bool
    ) throws {
        try readSegments(db, after: version, through: last) { decoder, first in
            let start = version + 1 > first ? Int(version + 1 - first) : 0
            for index in start..<decoder.count {
                guard first + Version(index) <= last, try take(decoder.commit(at: index)) else { return false }
            }
            return true
        }
    }

    func commit(_ db: Database, _ version: Version) throws -> Commit? {
        version > 0 ? try commits(db, after: version - 1, through: version, limit: 1).first : nil
    }

    /// The hash of the keys of a segment: it names the history and the segment, and stays valid when the segment is pruned.
    static func hash(ofKeys body: UnsafeRawBufferPointer, _ first: Version, _ epoch: Epoch) -> SegmentHash {
        SegmentHash(
            after: SegmentHash(beginning: epoch, version: 0), first: first, last: first, body: body.bytes)
    }

    /// Includes expired ones: by the index a damaged expiry would hide keys.
    func keys(_ db: Database) throws -> [KeyRecord] {
        var all: [KeyRecord] = []
        try readKeys(db) { first, keys in
            guard let keys else {
                throw JournalError(
                    damaged: path, "the idempotency keys from version \(first) on are not what was recorded")
            }
            all += keys
        }
        return all
    }

    /// Nil for a row that is not what was recorded.
    func readKeys(_ db: Database, _ take: (_ first: Version, _ keys: [KeyRecord]?) throws -> Void) throws {
        let rows = try Row.fetchCursor(db, sql: "SELECT first, expiry, hash, body FROM keys NOT INDEXED ORDER BY first")
        while let row = try rows.next() {
            let version = Version(value: row["first"])
            guard let first = version, let expiry = Int64.fromDatabaseValue(row["expiry"] as DatabaseValue),
                let hash = SegmentHash(value: row["hash"]), let body = Data.fromDatabaseValue(row["body"]),
                body.withUnsafeBytes({ Self.hash(ofKeys: $0, first, epoch) }) == hash
            else {
                try take(version ?? 0, nil)
                continue
            }
            do {
                let keys = try body.withUnsafeBytes { try KeyTable.read($0, epoch) }
                // The hash does not cover the column, by which rows are deleted.
                try take(first, keys.map(\.expiry.milliseconds).max() == expiry ? keys : nil)
            } catch let fault as SegmentFault {
                throw JournalError(
                    "cannot read the idempotency keys from version \(first) on in the journal \(path): \(fault.detail)")
            }
        }
    }
}

extension SegmentHash {
    var data: Data { Data(bytes) }

    init?(value: DatabaseValue) {
        guard let data = Data.fromDatabaseValue(value) else { return nil }
        self.init(data)
    }
}

extension ChainLink {
    fileprivate init?(_ row: Row) {
        guard let last = Version(value: row["last"]), let hash = SegmentHash(value: row["hash"]) else { return nil }
        self.init(version: last, hash: hash)
    }
}

extension Version {
    init?(value: DatabaseValue) {
        guard let number = Int64.fromDatabaseValue(value) else { return nil }
        self.init(recorded: number)
    }

    init?(_ db: Database, _ sql: String, _ arguments: StatementArguments = []) throws {
        guard let value = try DatabaseValue.fetchOne(db, sql: sql, arguments: arguments) else { return nil }
        self.init(value: value)
    }

    /// Nil below 0, and from 2^62 on, behind which the columns would have no room for the next.
    init?(recorded number: Int64) {
        guard (0..<(1 << 62)).contains(number) else { return nil }
        self.init(number)
    }
}
