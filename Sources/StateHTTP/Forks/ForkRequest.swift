package import HTTPMessages
package import StateStore

/// A request about forks.
package enum ForkRequest: Sendable {
    /// Make a fork; then ``Contract/response(toNew:latest:)``.
    case make(ForkOrder)
    /// List the forks; then ``Contract/response(toList:style:latest:)``.
    case list(Style)
    /// Describe a fork; then ``Contract/response(to:style:latest:)``.
    case describe(String, Style)
    /// End a fork.
    case remove(String)
    /// Hand a request on to a fork, as one to a whole store.
    case inside(String, Request)
}

/// A client's order of a fork.
package struct ForkOrder: Sendable {
    package struct Insertion: Sendable {
        package var after: Cursor
        package var type: String
        package var id: String?
        /// The action as it is recorded, UTF-8 JSON.
        package var action: [UInt8]
    }

    /// The cursor of the state to begin with; nil for that of `to`.
    package var from: Cursor?
    /// The cursor of the last commit to run; nil for the latest.
    package var to: Cursor?
    package var skipped: [String]
    /// In the order of their cursors.
    package var insertions: [Insertion]
    package var style: Style
}

/// The description of a fork for clients.
package struct ForkDescription: Sendable {
    package var name: String
    package var from: Cursor
    package var to: Cursor
    /// The fork's own latest cursor.
    package var latest: Cursor
    package var expiry: Timestamp
    package var fork: Fork

    package init(name: String, from: Cursor, to: Cursor, latest: Cursor, expiry: Timestamp, fork: Fork) {
        self.name = name
        self.from = from
        self.to = to
        self.latest = latest
        self.expiry = expiry
        self.fork = fork
    }
}

/// A search for the first commit after which a test holds.
package struct BisectRequest: Sendable {
    package var test: ValueTest
    /// The version at which the test does not hold; nil for the oldest that is kept.
    package var from: Cursor?
    /// The version at which it holds; nil for the latest.
    package var to: Cursor?
    package var store: VisibleStore
    package var style: Style
}
