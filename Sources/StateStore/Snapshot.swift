internal import StateJSON

/// The state at one version, for anybody to read, on any thread, for as long as they like.
package struct Snapshot: Sendable {
    /// Which instant it is.
    package let cursor: Cursor
    private let select: @Sendable (Selection, Int) throws -> Selected

    /// The value of a selection, or nil where there is nothing.
    ///
    /// It costs what the selection holds.
    ///
    /// - Throws: `EncodingError` when a view's value cannot be encoded; a committed state always can.
    package func encoded(_ selection: Selection) throws -> Encoded? {
        try select(selection, .max).text.map(Encoded.init)
    }

    /// What stands at a selection, unless it is put together of more than `countMax` things.
    func selected(_ selection: Selection, countMax: Int) throws -> Selected { try select(selection, countMax) }

    /// The whole state as JSON, from which ``Model/state(from:)`` makes it again.
    package func whole() throws -> [UInt8] {
        try select(.pointer(.root), .max).text ?? []
    }
}

extension Snapshot {
    /// A snapshot of a state that a model describes.
    package init<State>(_ state: State, of model: Model<State>, at cursor: Cursor) {
        self.cursor = cursor
        select = { try model.select($0, in: state, stamps: nil, countMax: $1) }
    }

    /// A snapshot of a state whose views may be known already.
    init<State>(_ moment: Moment<State>, of model: Model<State>, epoch: Epoch) {
        cursor = Cursor(epoch, moment.version)
        select = { try model.select($0, in: moment.state, stamps: moment.stamps, countMax: $1) }
    }
}

/// An encoded value with its content tag.
package final class Encoded: Sendable {
    /// Compact UTF-8 JSON.
    package let bytes: [UInt8]
    /// The strong hash of exactly these bytes.
    package let tag: String

    /// Hashes and keeps the bytes.
    ///
    /// O(n).
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
        tag = ContentHash(bytes).text
    }

    /// The value as a tree.
    ///
    /// O(n).
    var value: JSONValue? {
        // It was encoded here and is JSON.
        try? JSONValue(parsing: bytes, depthMax: .max)
    }
}
