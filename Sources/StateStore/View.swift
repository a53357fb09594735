internal import StateJSON

/// A named selection written in Swift: derived state.
public struct View<State: Sendable>: Reducer {
    /// The name under `/v1/views`.
    public let name: String
    let reads: [JSONPointer]
    let evaluate: @Sendable (State) throws -> [UInt8]

    /// Derives a value from the state, purely.
    ///
    /// `reads` names the parts it looks at, as JSON Pointers: a commit elsewhere does not evaluate it again. Left out,
    /// every commit may.
    ///
    /// - Precondition: each of `reads` is empty or begins with `/`.
    public init<Value: Encodable & SendableMetatype>(
        _ name: String, reads: [String] = [""], _ derive: @escaping @Sendable (State) -> Value
    ) {
        self.name = name
        self.reads = reads.map { JSONPointer(stringLiteral: $0) }
        evaluate = { try JSON.encode(derive($0)) }
    }

    private init(name: String, reads: [JSONPointer], evaluate: @escaping @Sendable (State) throws -> [UInt8]) {
        self.name = name
        self.reads = reads
        self.evaluate = evaluate
    }

    /// Enters the view.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.views.append(self)
    }

    /// The same view of a larger state that has this one as a slice: `open` of `tasks` becomes `tasks.open`.
    func lifted<Outer: Sendable>(into slice: String, _ path: any KeyPath<Outer, State> & Sendable) -> View<Outer> {
        View<Outer>(
            name: "\(slice).\(name)", reads: reads.map { JSONPointer([slice] + $0.tokens) },
            evaluate: { [evaluate] in try evaluate($0[keyPath: path]) })
    }
}
