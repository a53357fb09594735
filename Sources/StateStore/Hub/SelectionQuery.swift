/// A query on the members of a value.
///
/// The store sees queries by this protocol only: a program with the client links the store, and not the library of the
/// queries' patterns.
package protocol MembersQuery: Sendable {
    /// The text that tells the query from every other one.
    var identity: String { get }

    /// The answer for a value, as compact UTF-8 JSON; O(n) in the bytes of the value.
    ///
    /// - Parameter json: valid UTF-8 JSON.
    /// - Throws: for a value without members, and for a query that looks at too many values.
    func answered(to json: [UInt8]) throws -> [UInt8]
}

/// A query as a part of a selection: equal by its text.
package struct SelectionQuery: Hashable, Sendable {
    package let query: any MembersQuery

    package init(_ query: any MembersQuery) { self.query = query }

    package static func == (left: SelectionQuery, right: SelectionQuery) -> Bool {
        left.query.identity.utf8.elementsEqual(right.query.identity.utf8)
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(query.identity) }
}

extension Selection {
    /// The selection whose value is asked, for a query; the selection itself for any other.
    package var base: Selection { if case .query(_, of: let base) = self { base } else { self } }

    package var isQuery: Bool { if case .query = self { true } else { false } }
}
