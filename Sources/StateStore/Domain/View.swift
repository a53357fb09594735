package import StateJSON

/// A named selection that the domain computes from the state.
///
/// The store evaluates a view at most once per version, however many clients and subscribers read it, and not again until
/// something that the view reads has changed.
public struct View<State: Sendable>: Reducer {
    package let name: String
    package private(set) var reads: [JSONPointer]
    /// Nil if the view names what it reads by pointer.
    fileprivate var paths: [any PartialKeyPath<State> & Sendable]?
    /// The Swift type of the value; nil if it cannot be read from JSON.
    package let valueType: (any (Decodable & Sendable).Type)?
    package private(set) var parameters: ViewParameters?
    package private(set) var takesSubject = false
    let evaluate: @Sendable (State, ViewArguments) throws -> ViewValue
    fileprivate var fault: (@Sendable (State) -> String?)?
}

extension View {
    /// Declares a view that a pure function computes from the state.
    ///
    /// `reads` names the parts of the state that the view reads, as JSON Pointers: a commit that changes none of them does
    /// not make the store evaluate the view again. By default the view reads the whole state. A store does not start where the
    /// domain declares no such part.
    ///
    /// - Precondition: each of `reads` is empty or begins with `/`.
    public init<Value: Encodable & Sendable>(
        _ name: String, reads: [String] = [""], _ derive: @escaping @Sendable (State) -> Value
    ) {
        self.init(name, reads: reads.map { JSONPointer(stringLiteral: $0) }) { state, _ in derive(state) }
    }

    /// Declares a view that a pure function computes from parts of the state.
    ///
    /// ```swift
    /// View("open", reading: [\.table]) { state in state.table.filter { !$0.entity.done }.map(\.id) }
    /// ```
    ///
    /// A commit that changes none of these parts does not make the store evaluate the view again. A store does not start where
    /// one of them is not declared as a `Slice`, `Entities` or `Field`.
    public init<Value: Encodable & Sendable>(
        _ name: String, reading paths: [any PartialKeyPath<State> & Sendable],
        _ derive: @escaping @Sendable (State) -> Value
    ) {
        self.init(name, paths: paths) { state, _ in derive(state) }
    }

    /// Declares a view that a pure function computes from the state and the parameters of a request.
    ///
    /// ```swift
    /// struct Open: Codable, Sendable { var owner: String }
    /// View("open", parameters: Open.self) { state, open in
    ///     state.table.filter { $0.entity.owner == open.owner && !$0.entity.done }.map(\.id)
    /// }
    /// ```
    ///
    /// A client gives the members in the address, `/v1/views/open?owner=ann`; one without a value is nil. Each is a text, a
    /// number, a whole number or a boolean. A server does not start where a member is something else, or has a name that the
    /// HTTP contract has for a parameter of its own.
    ///
    /// - Parameter paths: the parts of the state that the view reads; nil for the whole state.
    public init<Parameters: Codable & Sendable, Value: Encodable & Sendable>(
        _ name: String, parameters: Parameters.Type, reading paths: [any PartialKeyPath<State> & Sendable]? = nil,
        _ derive: @escaping @Sendable (State, Parameters) -> Value
    ) {
        self.init(name, .typed(parameters), paths: paths) { state, arguments in
            derive(state, try JSON.decode(from: arguments.parameters))
        }
    }

    /// Declares a view that a pure function computes from the state, the parameters of a request and the client's subject.
    ///
    /// Nobody gets a value that was computed for another subject.
    ///
    /// - Parameter paths: the parts of the state that the view reads; nil for the whole state.
    public init<Parameters: Codable & Sendable, Value: Encodable & Sendable>(
        _ name: String, parameters: Parameters.Type, reading paths: [any PartialKeyPath<State> & Sendable]? = nil,
        _ derive: @escaping @Sendable (State, Parameters, ViewContext) -> Value
    ) {
        self.init(name, .typed(parameters), paths: paths, takesSubject: true) { state, arguments in
            derive(state, try JSON.decode(from: arguments.parameters), ViewContext(subject: arguments.subject))
        }
    }

    /// Declares a view that a pure function computes from the state and the client's subject.
    ///
    /// ```swift
    /// View("mine") { state, context in state.table.filter { $0.entity.owner == context.subject }.map(\.entity) }
    /// ```
    ///
    /// Nobody gets a value that was computed for another subject.
    ///
    /// - Parameter paths: the parts of the state that the view reads; nil for the whole state.
    public init<Value: Encodable & Sendable>(
        _ name: String, reading paths: [any PartialKeyPath<State> & Sendable]? = nil,
        _ derive: @escaping @Sendable (State, ViewContext) -> Value
    ) {
        self.init(name, paths: paths, takesSubject: true) { state, arguments in
            derive(state, ViewContext(subject: arguments.subject))
        }
    }

    private init<Value: Encodable & Sendable>(
        _ name: String, _ parameters: ViewParameters? = nil, reads: [JSONPointer] = [.root],
        paths: [any PartialKeyPath<State> & Sendable]? = nil, takesSubject: Bool = false,
        deriving derive: @escaping @Sendable (State, ViewArguments) throws -> Value
    ) {
        self.init(
            name: name, reads: reads, paths: paths, valueType: Value.self as? any (Decodable & Sendable).Type,
            parameters: parameters, takesSubject: takesSubject
        ) { ViewValue(try derive($0, $1)) }
    }

    /// Declares a view of a facet: a pure function computes it from what a protocol shows of the state.
    ///
    /// ```swift
    /// View("count", of: (any KnowsTheCount).self, reads: ["/counter"]) { $0.counter }
    /// ```
    ///
    /// A store whose state does not conform to the protocol does not start.
    public init<Facet, Value: Encodable & Sendable>(
        _ name: String, of facet: Facet.Type, reads: [String] = [""],
        _ derive: @escaping @Sendable (Facet) -> Value
    ) {
        self.init(name, reads: reads.map { JSONPointer(stringLiteral: $0) }) { state, _ in
            guard let facet = state as? Facet else {
                preconditionFailure("\(State.self) is not a \(Facet.self), which was checked at start")
            }
            return derive(facet)
        }
        fault = { $0 is Facet ? nil : "the view \"\(name)\" looks at \(State.self) as \(Facet.self), which it is not" }
    }

    package init(
        _ name: String, reads: [JSONPointer], parameters: ViewParameters?, takesSubject: Bool,
        look: @escaping @Sendable (JSONTree, ViewArguments) throws(ViewFault) -> [UInt8]
    ) where State == JSONTree {
        self.init(name: name, reads: reads, valueType: nil, parameters: parameters, takesSubject: takesSubject) {
            state, arguments in
            ViewValue(json: Result { () throws(ViewFault) in try look(state, arguments) })
        }
    }

    /// Adds the view to a declaration.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.views.append(self)
        if let initial = (State.self as? any StateType.Type)?.init() as? State, let fault = fault?(initial) {
            declaration.faults.append(fault)
        }
    }

    func resolved(by members: [SliceMember<State>]) -> (view: View, faults: [String]) {
        guard let paths else { return (self, []) }
        var view = self
        var faults: [String] = []
        (view.paths, view.reads) = (nil, [])
        for path in paths {
            let names = members.filter { $0.path == path }.map(\.name)
            if names.isEmpty {
                faults.append("the view \"\(name)\" reads \(path), which \(State.self) does not declare")
            }
            view.reads += names.map { JSONPointer([$0]) }
        }
        return (view, faults)
    }

    /// The view of a larger state that has this view's state as a slice: `open` of `tasks` becomes `tasks.open`.
    func lifted<Outer: Sendable>(
        into slice: [String], named name: String, _ get: @escaping @Sendable (Outer) -> State
    ) -> View<Outer> {
        View<Outer>(
            name: name, reads: reads.map { JSONPointer(slice + $0.tokens) }, valueType: valueType,
            parameters: parameters, takesSubject: takesSubject
        ) { [evaluate] in
            try evaluate(get($0), $1)
        }
    }
}

struct ViewValue: Sendable {
    let value: any Sendable
    let write: @Sendable () throws -> [UInt8]

    init<Value: Encodable & Sendable>(_ value: Value) {
        self.value = value
        write = { try JSON.encode(value) }
    }

    init(json: Result<[UInt8], ViewFault>) {
        value = json
        write = { try json.get() }
    }

    init(_ fault: ViewReadsItself) {
        value = fault
        write = { throw fault }
    }
}

package struct ViewFault: Error {
    package let sentence: String

    package init(_ sentence: String) { self.sentence = sentence }
}
