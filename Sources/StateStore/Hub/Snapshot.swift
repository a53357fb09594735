internal import StateJSON

/// The state at one version, for any reader on any thread, whatever the type of the state.
package protocol AnySnapshot: AnyObject, Sendable {
    /// The history and the version of the state.
    var cursor: Cursor { get }

    /// The value of a selection, unless it is put together of more than `countMax` parts.
    ///
    /// It costs what the selection holds.
    ///
    /// - Throws: `EncodingError` when a view's value cannot be encoded; a committed state always can.
    func selected(_ selection: Selection, countMax: Int) throws -> SelectedValue
}

extension AnySnapshot {
    /// The encoded value of a selection, or nil where the selection has no value.
    ///
    /// It costs what the selection holds.
    ///
    /// - Throws: `EncodingError` when a view's value cannot be encoded.
    package func encoded(_ selection: Selection) throws -> Encoded? {
        try selected(selection, countMax: .max).text.map(Encoded.init)
    }

    /// The whole state as JSON, from which ``CompiledDomain/state(from:)`` makes it again.
    ///
    /// - Throws: never for a committed state.
    package func whole() throws -> [UInt8] {
        try selected(.pointer(.root), countMax: .max).text ?? []
    }
}

/// The typed state at one version.
///
/// An object: a reader, a subscriber and the next turn share it without a copy of the state.
final class Snapshot<State: StateType>: AnySnapshot {
    let state: State
    let cursor: Cursor
    /// The version at which each view's sources last changed; empty for a past state, whose views are evaluated anew.
    let viewVersions: ViewVersions
    private let model: CompiledDomain<State>

    init(_ state: State, of model: CompiledDomain<State>, at cursor: Cursor, viewVersions: ViewVersions) {
        self.state = state
        self.cursor = cursor
        self.viewVersions = viewVersions
        self.model = model
    }

    var version: Version { cursor.version }

    func selected(_ selection: Selection, countMax: Int) throws -> SelectedValue {
        try model.select(
            selection, in: state, viewVersions: viewVersions.isEmpty ? nil : viewVersions, countMax: countMax)
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
        // The store has encoded these bytes, so they are JSON.
        try? JSONValue(parsing: bytes, depthMax: .max)
    }
}

/// The value of a selection at one version.
package struct Reading: Sendable {
    /// The instant of the value.
    package let cursor: Cursor
    /// Nil where the selection has no value.
    package let encoded: Encoded?

    /// Makes a reading.
    package init(cursor: Cursor, encoded: Encoded?) {
        self.cursor = cursor
        self.encoded = encoded
    }
}
