package import StateJSON

/// A query on the members of a value.
///
/// The store sees this protocol only, because a program with the client links the store, and not the library of the
/// queries' patterns.
package protocol MembersQuery: Sendable {
    /// The text that tells the query from every other one.
    var identity: String { get }

    var bytesCount: Int { get }

    /// The answer as compact UTF-8 JSON, or nil without a value; O(n) in the bytes of the value. Throws for a value
    /// without members, and for a query that looks at too many values.
    func answered(to texts: MemberTexts, _ order: MemberOrder?) throws -> [UInt8]?

    /// The members that the query lets through, to be kept while the value changes; nil for an array, whose members
    /// have no names, and without a value.
    func kept(of texts: MemberTexts, _ order: @escaping MemberOrder) throws -> (any KeptMembers)?
}

/// Hands out a value as texts of JSON: an object can come as several objects, which have its members in their order,
/// and a place without a value comes as none.
package typealias MemberTexts = (_ take: ([UInt8]) throws -> Void) throws -> Void

/// The place of a member among the members of its object, by its name; nil for a name that no member has.
package typealias MemberOrder = @Sendable (String) -> EntityKey?

/// The kept members in order, an object because a value would be copied at each change; one thread at a time calls it.
package protocol KeptMembers: AnyObject, Sendable {
    var bytesCount: Int { get }
    var answerCountMax: Int { get }

    /// Takes the values that members have now; where it throws, nothing has changed. False where the answer is the
    /// same. A member that comes, goes or moves costs O(log n) comparisons and a move of the order. `stepsMax` bounds
    /// the values that the filter looks at.
    func update(_ members: [ChangedMember], stepsMax: Int?) throws -> Bool

    /// The answer; O(n) in its bytes. `before` is the last answer, empty where it is not there; a member without a
    /// value throws ``MemberIsGone``.
    func answer(from before: [UInt8], _ value: (_ name: String) throws -> [UInt8]?) throws -> [UInt8]
}

/// A member that is kept and is not there: the kept members are of another value.
package struct MemberIsGone: Error {
    package init() {}
}

package struct ChangedMember: Sendable {
    package let name: JSONKey
    package let order: EntityKey
    /// The value now, or nil for a member that is not there.
    package let value: JSONValue?
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
