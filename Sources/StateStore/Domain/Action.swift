package import StateJSON

/// A description of a change as plain data, decoded from the payload of a POST or made in process.
public protocol Action: Codable, Sendable {
    /// The name under which clients dispatch it, such as `tasks/add`: slice, slash, verb.
    ///
    /// Without one of its own, an action has the name of its Swift type, as ``defaultType`` says.
    static var type: String { get }

    /// Whether only the domain dispatches the action: its effects, subscribers, middleware and commands, what its reducers
    /// schedule, the process, and a hook whose grant names the whole type.
    ///
    /// Clients find an internal action in the log, but no catalogue lists it, and a POST of it is one of an unknown type,
    /// whatever the client's grant allows. By default an action is not internal.
    static var isInternal: Bool { get }
}

extension Action {
    /// The name of the Swift type without its module: `tasks/add` for `Tasks.Add`, and `addTask` for `AddTask`.
    ///
    /// Journals and clients name the type, so an action that is to be renamed in Swift later needs a `type` of its own.
    public static var type: String { defaultType }

    /// False: clients may dispatch the action.
    public static var isInternal: Bool { false }

    /// The name of the Swift type, each part with a small first letter and a slash between two.
    static var defaultType: String {
        // Types inside functions have parts that no programmer has named.
        let parts = String(reflecting: Self.self).split(separator: ".").dropFirst().filter {
            !$0.contains("(") && !$0.contains(" ")
        }
        return parts.map { $0.prefix(1).lowercased() + $0.dropFirst() }.joined(separator: "/")
    }
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

/// An action that names the places of the state that it changes or looks at.
///
/// A client may dispatch it only where it may see all of them: an answer, and a copy, would show the others.
package protocol PlacedAction: Action {
    /// The places, each with the pointer of its name in the payload; a misspelled one is left to ``ValidatedAction/validate()``.
    var places: [(name: JSONPointer, place: JSONPointer)] { get }
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
        /// The action makes a commit that the journal cannot take: 413.
        case tooLarge
        /// The action names something that is not there: 404.
        case missing
        /// The client has its share of something that all have together: 429.
        case tooMany
    }

    /// A stable name for programs, such as `tasks.duplicate`.
    public var code: String
    /// A sentence for people: what happened, to what, and what was expected.
    public var detail: String
    /// Whether the action conflicts with the state or is invalid in every state.
    public var kind: Kind
    /// The JSON Pointer to the part of the payload at fault, or nil if the fault is not in one part.
    public var pointer: String?

    /// Makes a rejection; by default a conflict with the current state.
    public init(_ code: String, _ detail: String, kind: Kind = .conflict, pointer: String? = nil) {
        self.code = code
        self.detail = detail
        self.kind = kind
        self.pointer = pointer
    }

    package static func unknownAction(_ type: String) -> Rejection {
        Rejection("unknown-action", "no reducer handles \"\(type)\"", kind: .invalid)
    }
}
