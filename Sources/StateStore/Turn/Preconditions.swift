package import StateJSON

/// Checks the preconditions of a turn's transactions.
///
/// A long value of a tree is neither encoded nor hashed, and any other value at most once for each version, however
/// many transactions name it.
final class Preconditions {
    private struct Found {
        let encoded: Encoded?
        var parsed: JSONValue?

        mutating func equals(_ expected: JSONValue, _ bytes: [UInt8]) throws -> Bool {
            guard let encoded else { return false }
            guard encoded.json != bytes[...] else { return true }
            guard JSONText.maySayTheSame(encoded.body, bytes) else { return false }
            let value = try parsed ?? JSONValue(parsing: encoded.body, depthMax: 1000)
            parsed = value
            return value == expected
        }
    }

    private static let keptMax = 4
    /// The bytes of values above which the ones before are forgotten, also within a turn.
    private static let foundBytesMax = 16 << 20

    private var version: Version?
    private var found: [JSONPointer: Found] = [:]
    private var foundBytes = 0

    func isWorthKeeping(at version: Version) -> Bool {
        self.version == version && (1...Self.keptMax).contains(found.count)
    }

    func failure(of transaction: Transaction, in snapshot: Snapshot) throws -> PreconditionFailure? {
        if version != snapshot.version {
            (found, foundBytes) = ([:], 0)
            version = snapshot.version
        }
        if let tagGuard = transaction.tagGuard, let failure = try failure(of: tagGuard, in: snapshot) { return failure }
        for expectation in transaction.expectations {
            if let failure = try failure(of: expectation, in: snapshot) { return failure }
        }
        return nil
    }

    private func failure(
        of expectation: Transaction.Expectation, in snapshot: Snapshot
    ) throws -> PreconditionFailure? {
        let (pointer, wanted) = (expectation.pointer, expectation.wanted)
        guard !expectation.isHidden else {
            return PreconditionFailure(pointer: pointer, expected: try Self.text(of: wanted), actual: nil)
        }
        let tree = snapshot.state.document?.tree(at: pointer.tokens[...])
        let long = tree.flatMap { $0.isLong ? $0 : nil }
        switch wanted {
        case .nothing where snapshot.tree(at: pointer) == nil: return nil
        case .anyValue where snapshot.tree(at: pointer) != nil, .tags(.any) where snapshot.tree(at: pointer) != nil:
            return nil
        case .value(let value):
            if let tree, expectation.known.flatMap({ $0.tree === tree ? $0.holds : nil }) ?? tree.equals(value) {
                return nil
            }
        case .tags(let tags):
            // The tag of the published value is made before the turn. A commit since has made another value.
            if let long, long.isTagged, tags.contains(long.tag) { return nil }
        case .nothing, .anyValue: break
        }
        if let long { return PreconditionFailure(pointer: pointer, expected: try Self.text(of: wanted), actual: long) }
        var actual = try find(pointer, in: snapshot)
        let holds =
            switch wanted {
            case .value(let value): try actual.equals(value, value.text)
            case .tags(let tags): tags.contains(actual.encoded?.tag)
            case .nothing, .anyValue: false
            }
        found[pointer] = actual
        guard !holds else { return nil }
        return PreconditionFailure(pointer: pointer, expected: try Self.text(of: wanted), actual: actual.encoded)
    }

    private static func text(of wanted: Transaction.Expectation.Wanted) throws -> [UInt8]? {
        switch wanted {
        case .value(let value): value.text
        case .tags(.any): try JSON.encode(["*"])
        case .tags(.tags(let tags)): try JSON.encode(tags.map { "\"\($0)\"" })
        case .nothing, .anyValue: nil
        }
    }

    private func find(_ pointer: JSONPointer, in snapshot: Snapshot) throws -> Found {
        if let known = found[pointer] { return known }
        let new = Found(encoded: try snapshot.tree.selected(pointer.tokens[...]).bytes.map(Encoded.init))
        if foundBytes > Self.foundBytesMax { (found, foundBytes) = ([:], 0) }
        foundBytes += new.encoded?.body.count ?? 0
        found[pointer] = new
        return new
    }
}

package struct PreconditionFailure: Sendable {
    /// The size in bytes up to which ``actual`` holds the value: each failure of a bulk load holds one.
    package static let actualBytesMax = 4096

    package let pointer: JSONPointer
    /// UTF-8 JSON of the expected value, or an array of the expected tags as a header field spells them; nil if nothing
    /// or anything may be there, and if there was no room for it.
    package private(set) var expected: [UInt8]?
    package private(set) var actual: [UInt8]?
    package let actualBytes: Int?
    /// The content tag of the value, or nil without a value; the first access to that of a long one costs O(n).
    package var actualTag: String? { tree?.tag ?? tag }
    private let tag: String?
    private let tree: JSONTree?
    var lacksTag: Bool { tree.map { !$0.isTagged } ?? false }

    init(pointer: JSONPointer, expected: [UInt8]?, actual: Encoded?) {
        self.pointer = pointer
        self.expected = expected
        self.actual = actual.flatMap { $0.json.count > Self.actualBytesMax ? nil : $0.bytes }
        actualBytes = actual?.json.count
        (tag, tree) = (actual?.tag, nil)
    }

    init(pointer: JSONPointer, expected: [UInt8]?, actual: JSONTree) {
        (self.pointer, self.expected, actualBytes, tag, tree) = (pointer, expected, actual.bytesCount, nil, actual)
    }

    var withoutValues: PreconditionFailure {
        var failure = self
        (failure.expected, failure.actual) = (nil, nil)
        return failure
    }
}
