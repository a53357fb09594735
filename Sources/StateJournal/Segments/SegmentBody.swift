internal import StateJSON
package import StateStore

/// The form of a segment's body: a head, the sizes of the records, and a record for each commit.
///
/// | part | content |
/// | --- | --- |
/// | head | the number of this form; the algorithm of the hash; the fence, which is the term of the writer, or 0; the members that occur in any record; the number of commits; the time of the first commit |
/// | sizes | the size of each record in bytes, from which a reader finds one record without reading the others; absent for one commit |
/// | record | the members that it has; the number of its model, and its time; action, patch and changed pointers; IDs; causation; subject; trace; key; named members, each with its size |
///
/// A record whose commit has the types of an earlier one of the segment has that commit as its model: it takes the types
/// from it, the changed pointers if they are equal, and of action and patch all that is equal at the start and at the end. A
/// model has no model itself, so that a commit is read from at most two records. A model has its types and its first pointer
/// in front, and takes from ``ByteWriter/fillAction(type:)`` and ``ByteWriter/fillPatch(path:)`` what others take from it.
/// Pointers and IDs that occur in the patch or in the action are places there. The version is not recorded, nor is an ID that
/// is the commit's own cursor.
package enum SegmentBody {
    static let form: UInt8 = 1

    /// Bounds what is read for one commit.
    package static let commitsMax = 256
    /// A larger commit has a segment of its own.
    static let bytesMax = 64 << 10

    static let scheduleName = "schedule"

    struct Members: OptionSet {
        let rawValue: UInt64
        static let model = Members(rawValue: 1 << 0)
        /// One client ID, which is the commit's ID.
        static let clientID = Members(rawValue: 1 << 1)
        /// Any other client IDs.
        static let clientIDs = Members(rawValue: 1 << 2)
        static let cause = Members(rawValue: 1 << 3)
        static let root = Members(rawValue: 1 << 4)
        static let key = Members(rawValue: 1 << 5)
        static let by = Members(rawValue: 1 << 6)
        static let trace = Members(rawValue: 1 << 7)
        /// A reader passes over unknown ones.
        static let named = Members(rawValue: 1 << 8)
        static let all = Members(rawValue: (1 << 9) - 1)
    }

    struct KeyMembers: OptionSet {
        let rawValue: UInt64
        static let isChange = KeyMembers(rawValue: 1 << 0)
        static let client = KeyMembers(rawValue: 1 << 1)
        /// An ID that is not that of the commit, or not the cursor of the version.
        static let id = KeyMembers(rawValue: 1 << 2)
        /// A version that is not that of the commit.
        static let version = KeyMembers(rawValue: 1 << 3)
        static let all = KeyMembers(rawValue: (1 << 4) - 1)
    }

    /// The index after the last commit.
    package static func end(of commits: [Commit], from start: Int) -> Int {
        var (end, bytes) = (start, 0)
        while end < commits.count, end - start < commitsMax {
            bytes += commits[end].action.count + commits[end].patch.count
            if bytes > bytesMax, end > start { break }
            end += 1
        }
        return end
    }
}

extension ByteWriter {
    mutating func fillAction(type: String) {
        removeAll()
        raw(#"{"type":""#)
        raw(type)
        raw(#"","payload":{}}"#)
    }

    mutating func fillPatch(path: UnsafeRawBufferPointer) {
        removeAll()
        raw(#"[{"op":"replace","path":""#)
        raw(path.bindMemory(to: UInt8.self))
        raw(#"","value":}]"#)
    }
}

/// Covers the segment, its versions and the hash before it by XXH3 with 128 bits; it detects damage, a missing segment
/// and one of another history, but no forgery: XXH3 is not cryptographic.
package struct SegmentHash: Hashable, Sendable {
    private let content: ContentHash

    /// The number that segments have for this algorithm in their bodies and that the hash covers.
    package static let algorithm: UInt8 = 1

    package init(beginning epoch: Epoch, version: Version) {
        let name = Array(epoch.text.utf8)
        let none = SegmentHash(content: ContentHash(high: 0, low: 0))
        self.init(after: none, first: version, last: version, body: name.span.bytes)
    }

    /// O(n) in the size of the body, about 10 GB a second.
    package init(after predecessor: SegmentHash, first: Version, last: Version, body: RawSpan) {
        // The hash of the text stands in a block of a fixed size, so that no byte of the text can pass for a number.
        let hash = body.withUnsafeBytes { ContentHash($0) }
        let block = (
            UInt64(SegmentHash.algorithm).littleEndian, predecessor.content.high.littleEndian,
            predecessor.content.low.littleEndian,
            first.littleEndian, last.littleEndian, hash.high.littleEndian, hash.low.littleEndian,
            UInt64(body.byteCount).littleEndian
        )
        content = withUnsafeBytes(of: block) { ContentHash($0) }
    }

    private init(content: ContentHash) { self.content = content }

    /// Nil for any number of bytes but 16.
    package init?(_ bytes: some Swift.Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        content = ContentHash(
            high: bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) },
            low: bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) })
    }

    /// Most significant first.
    package func withBytes<Value>(_ body: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value {
        try withUnsafeBytes(of: (content.high.bigEndian, content.low.bigEndian), body)
    }

    package var bytes: [UInt8] { withBytes { Array($0) } }
}

package struct SegmentFault: Error, Equatable {
    package let detail: String

    package init(_ detail: String) { self.detail = detail }

    static let cut = SegmentFault("it is cut off")
    package static let malformed = SegmentFault("its parts do not fit together")
}

/// The next segment builds on it.
package struct ChainLink: Hashable, Sendable {
    package var version: Version
    package var hash: SegmentHash

    package init(version: Version, hash: SegmentHash) { (self.version, self.hash) = (version, hash) }

    package init(beginning epoch: Epoch, version: Version) {
        self.init(version: version, hash: SegmentHash(beginning: epoch, version: version))
    }
}

/// A key can expire long after its commit is pruned.
package enum KeyTable {
    static let form: UInt8 = 1

    /// Returns the last expiry, or nil without keys, for which nothing is written.
    package static func write(
        _ keys: some Sequence<KeyRecord>, _ epoch: Epoch, to writer: inout ByteWriter
    ) -> Timestamp? {
        var expiry: Timestamp?
        for key in keys {
            if expiry == nil {
                writer.removeAll()
                writer.byte(form)
            }
            expiry = max(expiry ?? key.expiry, key.expiry)
            var members: SegmentBody.KeyMembers = key.isChange ? .isChange : []
            let hasOwnID = !JSONPointer.sameBytes(key.id, Cursor(epoch, key.version).description)
            if hasOwnID { members.insert(.id) }
            if key.client != nil { members.insert(.client) }
            writer.number(members.rawValue)
            writer.number(key.version)
            writer.string(key.key.recorded)
            writer.string(key.fingerprint)
            writer.signed(key.expiry.milliseconds)
            if hasOwnID { writer.string(key.id) }
            if let client = key.client { writer.string(client) }
        }
        return expiry
    }

    package static func read(_ bytes: UnsafeRawBufferPointer, _ epoch: Epoch) throws(SegmentFault) -> [KeyRecord] {
        var reader = ByteReader(bytes)
        guard try reader.byte() == form else { throw SegmentFault("a newer program reads them") }
        var keys: [KeyRecord] = []
        while !reader.isAtEnd {
            let members = SegmentBody.KeyMembers(rawValue: try reader.number())
            // Each key has its version here.
            guard members.isSubset(of: [.isChange, .client, .id]) else { throw .malformed }
            let version = try reader.number()
            let key = try reader.string()
            let fingerprint = try reader.string()
            let expiry = Timestamp(milliseconds: try reader.signed())
            let id = members.contains(.id) ? try reader.string() : Cursor(epoch, version).description
            let client = members.contains(.client) ? try reader.string() : nil
            keys.append(
                KeyRecord(
                    key: IdempotencyKey(recorded: key), fingerprint: fingerprint, version: version, id: id,
                    isChange: members.contains(.isChange), expiry: expiry, client: client))
        }
        return keys
    }
}
