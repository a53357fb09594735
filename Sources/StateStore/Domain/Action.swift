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

    static var defaultType: String {
        // Types inside functions have parts that no programmer has named.
        let parts = String(reflecting: Self.self).split(separator: ".").dropFirst().filter {
            !$0.contains("(") && !$0.contains(" ")
        }
        return parts.map { $0.prefix(1).lowercased() + $0.dropFirst() }.joined(separator: "/")
    }

    package var typeName: String { declared?.declaration.type ?? Self.type }

    package var isOfInternalType: Bool { declared?.declaration.isInternal ?? Self.isInternal }

    var declared: DeclaredAction? {
        // A cast would look for what the two types have in common.
        Self.self == DeclaredAction.self ? unsafeBitCast(self, to: DeclaredAction.self) : nil
    }

    var typeIdentity: ObjectIdentifier {
        declared.map { ObjectIdentifier($0.declaration) } ?? ObjectIdentifier(Self.self)
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

/// An action that names the places that it changes or looks at; a client dispatches it only where it may see them,
/// because an answer, and a copy, would show the others.
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

package struct ActionType: Sendable {
    package let name: String
    package let isInternal: Bool
    package let type: any Action.Type
    /// Nil for an action of a Swift type of its own.
    package let declaration: DeclaredAction.Declaration?
    let identity: ObjectIdentifier
    let description: String
    /// Decodes a payload, which may be nil for an action without fields; faults point into the payload's document.
    package let decode: @Sendable (JSONNode?) throws(PayloadFaults) -> any Action

    init<Typed: Action>(_ type: Typed.Type) {
        (name, isInternal, self.type, declaration) = (type.type, type.isInternal, type, nil)
        (identity, description) = (ObjectIdentifier(type), "\(type)")
        decode = { payload throws(PayloadFaults) in
            do throws(JSONFault) {
                if let payload { return try payload.decode(Typed.self) }
                return try JSON.decode(Typed.self, from: Array("{}".utf8))
            } catch { throw PayloadFaults([error]) }
        }
    }

    init(_ declaration: DeclaredAction.Declaration) {
        (name, isInternal, self.declaration) = (declaration.type, declaration.isInternal, declaration)
        (type, identity) = (DeclaredAction.self, ObjectIdentifier(declaration))
        description = "the action \(declaration.type)"
        decode = { payload throws(PayloadFaults) in
            try declaration.action(payload?.text, at: payload?.pointer ?? .root)
        }
    }

    package var takesAnyValue: Bool { declaration?.payload != nil }
}

/// The faults of a payload, of which there is at least one.
package struct PayloadFaults: Error, Sendable {
    package let faults: [JSONFault]

    package init(_ faults: [JSONFault]) {
        precondition(!faults.isEmpty, "a refused payload has a fault")
        self.faults = faults
    }

    package var first: JSONFault { faults[0] }
}

package struct DeclaredAction: Action {
    package final class Declaration: Sendable {
        package let type: String
        /// The JSON Schema of the payload, or nil for any object or no payload.
        package let payload: JSONValue?
        package let isInternal: Bool
        private let faults: @Sendable ([UInt8]) -> [JSONFault]

        /// - Parameter faults: why a payload, as UTF-8 JSON, does not fit the schema.
        package init(
            _ type: String, payload: JSONValue? = nil, isInternal: Bool = false,
            faults: @escaping @Sendable ([UInt8]) -> [JSONFault] = { _ in [] }
        ) {
            (self.type, self.payload, self.isInternal, self.faults) = (type, payload, isInternal, faults)
        }

        func action(_ payload: [UInt8]?, at place: JSONPointer) throws(PayloadFaults) -> DeclaredAction {
            let payload = payload ?? Array("{}".utf8)
            let found = faults(payload)
            guard found.isEmpty else {
                throw PayloadFaults(
                    found.map {
                        JSONFault($0.kind, at: JSONPointer(place.tokens + $0.pointer.tokens), $0.detail)
                    })
            }
            return DeclaredAction(declaration: self, payload: payload)
        }
    }

    package let declaration: Declaration
    /// Compact UTF-8 JSON; the empty object where the client has sent no payload, because a record does not tell the two apart.
    package let payload: [UInt8]

    fileprivate init(declaration: Declaration, payload: [UInt8]) {
        (self.declaration, self.payload) = (declaration, payload)
    }

    /// Never succeeds: a declared action is made by its declaration.
    package init(from decoder: any Decoder) throws {
        throw DecodingError.dataCorrupted(
            .init(codingPath: decoder.codingPath, debugDescription: "a declared action is made by its declaration"))
    }

    package func encode(to encoder: any Encoder) throws {
        try JSONValue(parsing: payload, depthMax: 1000).encode(to: encoder)
    }
}

/// An action creator that is declared under an action type, so that clients can dispatch it.
///
/// The command passes the middleware. The action that its creator makes of the state passes the middleware again, and the
/// store records only that action. Where the creator makes none, the store commits nothing.
///
/// ```swift
/// Command(DoubleIfSmall.self) { state, _ in
///     state.value < 5 ? Add(amount: state.value) : nil
/// }
/// ```
public struct Command<State: Sendable, Handled: Action>: Reducer {
    private let create: @Sendable (State, Handled) throws(Rejection) -> (any Action)?

    /// Declares a creator, which must be pure, as a reducer is.
    public init(
        _ type: Handled.Type, create: @escaping @Sendable (State, Handled) throws(Rejection) -> (any Action)?
    ) {
        self.create = create
    }

    /// Adds the creator to a declaration.
    public func declare(in declaration: inout Declaration<State>) {
        let work = Declaration<State>.Handler.Work.create { [create] (state, action) throws(Rejection) in
            guard let action = action as? Handled else { return nil }
            return try create(state, action)
        }
        declaration.handlers.append(.init(actionType: ActionType(Handled.self), work: work))
    }
}
