package import StateJSON

/// A description of a change: plain data, decoded from the payload of a POST or made in process.
public protocol Action: Codable, Sendable {
    /// The name under which clients dispatch it, such as `tasks/add`: slice, slash, verb.
    static var type: String { get }
}

extension Action {
    /// Decodes an action from its payload; one without fields may come without it.
    ///
    /// - Throws: ``JSONFault`` with the place in the payload's document and what was expected there.
    package static func decode(payload: JSONNode?) throws(JSONFault) -> Self {
        guard let payload else { return try JSON.decode(from: Array("{}".utf8)) }
        return try payload.decode()
    }
}

/// An action that can say what is wrong with it by itself, before any reducer sees it.
///
/// ``Middleware/validation`` asks it.
public protocol ValidatedAction: Action {
    /// Checks the fields against each other and against their ranges.
    ///
    /// - Throws: ``Rejection``, best of kind ``Rejection/Kind/invalid`` with the pointer of the field.
    func validate() throws(Rejection)
}

/// The answer of a reducer or a middleware that does not take an action.
///
/// Nothing is committed; the client reads the code and the sentence.
public struct Rejection: Error, Sendable, Equatable {
    /// Why, in the terms of HTTP.
    public enum Kind: Sendable {
        /// The action does not fit the present state; it may fit another: 409.
        case conflict
        /// The action can never be right: 422.
        case invalid
    }

    /// A stable name for programs, such as `tasks.duplicate`.
    public var code: String
    /// A sentence for people: what happened, to what, what was expected.
    public var detail: String
    /// Why, in the terms of HTTP.
    public var kind: Kind
    /// The part of the payload at fault, where it is one part.
    public var pointer: String?

    /// Makes a rejection.
    public init(_ code: String, _ detail: String, kind: Kind = .conflict, pointer: String? = nil) {
        self.code = code
        self.detail = detail
        self.kind = kind
        self.pointer = pointer
    }
}
