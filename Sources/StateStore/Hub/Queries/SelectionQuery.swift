package import StateJSON

/// A query on the members of a value.
///
/// The store sees queries by this protocol only: a program with the client links the store, and not the library of the
/// queries' patterns.
package protocol MembersQuery: Sendable {
    /// The text that tells the query from every other one.
    var identity: String { get }

    /// About how many bytes of memory the query itself takes.
    var bytesCount: Int { get }

    /// The answer for a value, as compact UTF-8 JSON, or nil without a value; O(n) in the bytes of the value.
    ///
    /// - Parameter order: the order of the value's own members by their names, if there is one.
    /// - Throws: for a value without members, and for a query that looks at too many values.
    func answered(to texts: MemberTexts, _ order: MemberOrder?) throws -> [UInt8]?

    /// The members that the query lets through in their order, to be kept while the value changes.
    ///
    /// - Parameter order: the order of the value's own members.
    /// - Returns: nil for an array, whose members have no names, and without a value.
    /// - Throws: as ``answered(to:_:)``.
    func kept(of texts: MemberTexts, _ order: @escaping MemberOrder) throws -> (any KeptMembers)?
}

/// Hands out a value as texts of JSON, one after the other.
///
/// An object can come as several objects, which have its members in their order. Every other value comes as one text, and a
/// place without a value as none.
package typealias MemberTexts = (_ take: ([UInt8]) throws -> Void) throws -> Void

/// The place of a member among the members of its object, by its name; nil for a name that no member has.
package typealias MemberOrder = @Sendable (String) -> EntityKey?

/// The members that a query lets through, in their order; one thread at a time calls it.
///
/// It is an object: a value behind a protocol would be copied, with all members, at each change.
package protocol KeptMembers: AnyObject, Sendable {
    /// About how many bytes of memory they take.
    var bytesCount: Int { get }
    /// The most members in an answer.
    var answerCountMax: Int { get }

    /// Takes the values that members have now; where it throws, nothing has changed.
    ///
    /// The cost is that of the filter for each of them, and O(log n) comparisons and a move of the order for one that
    /// comes, goes or moves.
    ///
    /// - Parameter stepsMax: the most values that the filter looks at; nil for as many as in a whole evaluation.
    /// - Returns: whether the answer may differ.
    func update(_ members: [ChangedMember], stepsMax: Int?) throws -> Bool

    /// The answer, as ``MembersQuery/answered(to:_:)`` has it; O(n) in its bytes.
    ///
    /// - Parameters:
    ///   - before: the last answer; empty where it is not there.
    ///   - value: the value of a member as UTF-8 JSON.
    /// - Throws: ``MemberIsGone`` for a member without a value.
    func answer(from before: [UInt8], _ value: (_ name: String) throws -> [UInt8]?) throws -> [UInt8]
}

/// A member that is kept and is not there: the kept members are of another value.
package struct MemberIsGone: Error {
    package init() {}
}

/// A member that commits have touched.
package struct ChangedMember: Sendable {
    package let name: JSONKey
    package let order: EntityKey
    /// The value now, or nil for a member that is not there.
    package let value: JSONValue?

    package init(name: JSONKey, order: EntityKey, value: JSONValue?) {
        (self.name, self.order, self.value) = (name, order, value)
    }
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

    /// About how many bytes of memory its query takes; 0 for any other selection.
    package var queryBytesCount: Int { if case .query(let query, _) = self { query.query.bytesCount } else { 0 } }

    package var isQuery: Bool { if case .query = self { true } else { false } }

    var isView: Bool { if case .view = self { true } else { false } }
}
