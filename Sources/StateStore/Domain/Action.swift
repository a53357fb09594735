package import StateJSON

/// A description of a change as plain data, decoded from the payload of a POST or made in process.
public protocol Action: Codable, Sendable {
    /// The name under which clients dispatch it, such as `tasks/add`: slice, slash, verb.
    static var type: String { get }
}

extension Action {
    /// Decodes an action from its payload; an action without fields may come without a payload.
    ///
    /// - Throws: ``JSONFault`` with the pointer into the payload's document and what was expected there.
    package static func decode(payload: JSONNode?) throws(JSONFault) -> Self {
        guard let payload else { return try JSON.decode(from: Array("{}".utf8)) }
        return try payload.decode()
    }
}

/// An action that can check itself before any reducer gets it.
///
/// ``Middleware/validation`` calls ``validate()``.
public protocol ValidatedAction: Action {
    /// Checks the fields against each other and against their ranges.
    ///
    /// - Throws: ``Rejection``, best of kind ``Rejection/Kind/invalid`` with the pointer of the field.
    func validate() throws(Rejection)
}

/// The refusal of an action by a reducer or a middleware.
///
/// The store commits nothing; the client reads the code and the sentence.
public struct Rejection: Error, Sendable, Equatable {
    /// The kinds of rejection, each with its HTTP status.
    public enum Kind: Sendable {
        /// The action does not fit the current state, but may fit another: 409.
        case conflict
        /// The action can never be right: 422.
        case invalid
    }

    /// A stable name for programs, such as `tasks.duplicate`.
    public var code: String
    /// A sentence for people: what happened, to what, and what was expected.
    public var detail: String
    /// Whether the action conflicts with the state or is invalid in every state.
    public var kind: Kind
    /// The JSON Pointer to the part of the payload at fault; nil where the fault is not in one part.
    public var pointer: String?

    /// Makes a rejection; by default a conflict with the current state.
    public init(_ code: String, _ detail: String, kind: Kind = .conflict, pointer: String? = nil) {
        self.code = code
        self.detail = detail
        self.kind = kind
        self.pointer = pointer
    }
}
