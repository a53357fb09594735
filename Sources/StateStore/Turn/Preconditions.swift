package import StateJSON

/// Checks the preconditions of a turn's transactions, each against the state before its transaction.
///
/// The value at a pointer is encoded, hashed and parsed at most once for each version, however many transactions name it.
struct Preconditions<State: StateType>: Sendable {
    /// The value at a pointer.
    private struct Found {
        let encoded: Encoded?
        /// Parsed when a comparison needs it.
        private var parsed: JSONValue?

        init(_ encoded: Encoded?) { self.encoded = encoded }

        mutating func equals(_ expected: JSONValue, _ bytes: [UInt8]) throws -> Bool {
            guard let encoded else { return false }
            guard encoded.bytes != bytes else { return true }
            guard JSONText.maySayTheSame(encoded.bytes, bytes) else { return false }
            let value = try parsed ?? JSONValue(parsing: encoded.bytes, depthMax: 1000)
            parsed = value
            return value == expected
        }
    }

    private let layout: any LayoutNode<State>
    /// The version that the values in `found` belong to.
    private var version: Version?
    private var found: [JSONPointer: Found] = [:]

    init(_ node: any LayoutNode<State>) { layout = node }

    /// The first condition that does not hold in a state, or nil where all hold.
    mutating func failure(
        of transaction: Transaction, in state: State, at version: Version
    ) throws -> PreconditionFailure? {
        if self.version != version {
            found = [:]
            self.version = version
        }
        if let tagGuard = transaction.tagGuard {
            let actual = tagGuard.isHidden ? nil : try find(tagGuard.pointer, in: state).encoded
            guard tagGuard.tags.contains(actual?.tag) else {
                let expected: [String] =
                    switch tagGuard.tags {
                    case .any: ["*"]
                    case .tags(let tags): tags.map { "\"\($0)\"" }
                    }
                return PreconditionFailure(
                    pointer: tagGuard.pointer, expected: try JSON.encode(expected), actual: actual)
            }
        }
        for expectation in transaction.expectations {
            let bytes = expectation.value.text
            guard !expectation.isHidden else {
                return PreconditionFailure(pointer: expectation.pointer, expected: bytes, actual: nil)
            }
            var actual = try find(expectation.pointer, in: state)
            let holds = try actual.equals(expectation.value, bytes)
            found[expectation.pointer] = actual
            guard holds else {
                return PreconditionFailure(pointer: expectation.pointer, expected: bytes, actual: actual.encoded)
            }
        }
        return nil
    }

    private mutating func find(_ pointer: JSONPointer, in state: State) throws -> Found {
        if let known = found[pointer] { return known }
        let new = Found(try layout.select(state, pointer.tokens[...]).map(Encoded.init))
        found[pointer] = new
        return new
    }
}

/// A condition that did not hold.
package struct PreconditionFailure: Sendable {
    /// The size in bytes up to which ``actual`` holds the value: each failure of a bulk load holds one.
    package static let actualBytesMax = 4096

    package let pointer: JSONPointer
    /// UTF-8 JSON of the expected value, or an array of the expected tags as a header field spells them.
    package let expected: [UInt8]
    /// UTF-8 JSON of the value; nil where there is no value, and where it is larger than ``actualBytesMax``.
    package let actual: [UInt8]?
    /// The size of the value in bytes; nil where there is no value.
    package let actualBytes: Int?
    /// The content tag of the value; nil where there is no value.
    package let actualTag: String?

    init(pointer: JSONPointer, expected: [UInt8], actual: Encoded?) {
        self.pointer = pointer
        self.expected = expected
        self.actual = actual.flatMap { $0.bytes.count > Self.actualBytesMax ? nil : $0.bytes }
        actualBytes = actual?.bytes.count
        actualTag = actual?.tag
    }
}
