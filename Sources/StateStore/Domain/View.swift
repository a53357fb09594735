internal import StateJSON
internal import Synchronization

/// A named selection written in Swift: derived state.
///
/// It is evaluated at most once per version however many ask, over HTTP or in process, and not again until something
/// that it reads has changed.
public struct View<State: Sendable>: Reducer {
    /// The name under `/v1/views`.
    public let name: String
    let reads: [JSONPointer]
    let evaluate: @Sendable (State) -> ViewValue
    /// What is wrong with it, found out on the initial state.
    private var fault: (@Sendable (State) -> String?)?

    /// Derives a value from the state, purely.
    ///
    /// `reads` names the parts it looks at, as JSON Pointers: a commit elsewhere does not evaluate it again. Left out,
    /// every commit may.
    ///
    /// - Precondition: each of `reads` is empty or begins with `/`.
    public init<Value: Encodable & Sendable>(
        _ name: String, reads: [String] = [""], _ derive: @escaping @Sendable (State) -> Value
    ) {
        self.init(name: name, reads: reads.map { JSONPointer(stringLiteral: $0) }) { ViewValue(derive($0)) }
    }

    /// Derives a value from what a protocol shows of the state: a facet.
    ///
    /// ```swift
    /// View("count", of: (any KnowsTheCount).self, reads: ["/counter"]) { $0.counter }
    /// ```
    ///
    /// A state that does not conform is found at start.
    public init<Facet, Value: Encodable & Sendable>(
        _ name: String, of facet: Facet.Type, reads: [String] = [""],
        _ derive: @escaping @Sendable (Facet) -> Value
    ) {
        self.init(name: name, reads: reads.map { JSONPointer(stringLiteral: $0) }) { state in
            guard let facet = state as? Facet else {
                preconditionFailure("\(State.self) is no \(Facet.self), which was checked at start")
            }
            return ViewValue(derive(facet))
        }
        fault = { $0 is Facet ? nil : "the view \"\(name)\" looks at \(State.self) as \(Facet.self), which it is not" }
    }

    private init(name: String, reads: [JSONPointer], evaluate: @escaping @Sendable (State) -> ViewValue) {
        self.name = name
        self.reads = reads
        self.evaluate = evaluate
    }

    /// Enters the view.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.views.append(self)
        if let initial = (State.self as? any StateType.Type)?.init() as? State, let fault = fault?(initial) {
            declaration.faults.append(fault)
        }
    }

    /// The same view of a larger state that has this one as a slice: `open` of `tasks` becomes `tasks.open`.
    func lifted<Outer: Sendable>(into slice: String, _ path: any KeyPath<Outer, State> & Sendable) -> View<Outer> {
        View<Outer>(
            name: "\(slice).\(name)", reads: reads.map { JSONPointer([slice] + $0.tokens) },
            evaluate: { [evaluate] in evaluate($0[keyPath: path]) })
    }
}

/// A view's value, and how it is written.
struct ViewValue: Sendable {
    let value: any Sendable
    let write: @Sendable () throws -> [UInt8]

    init<Value: Encodable & Sendable>(_ value: Value) {
        self.value = value
        write = { try JSON.encode(value) }
    }
}

/// When what each view reads last changed, by the view's number; 0 where it has not changed since the start.
typealias ViewVersions = [Version]

/// The newest value of a view, for all who ask.
final class ViewMemo<State: Sendable>: Sendable {
    private struct Known {
        let viewVersion: Version
        let value: ViewValue
        var text: [UInt8]?
    }

    let view: View<State>
    /// Its place among the model's views.
    let number: Int
    private let known = Mutex<Known?>(nil)

    init(_ view: View<State>, number: Int) {
        self.view = view
        self.number = number
    }

    /// The view's value.
    ///
    /// - Parameter viewVersion: when what it reads last changed; nil for a state of long ago, which is evaluated for itself.
    func value(in state: State, viewVersion: Version?) -> ViewValue {
        guard let viewVersion else { return view.evaluate(state) }
        // Evaluated under the lock: who asks at the same moment waits for this value rather than making another.
        return known.withLock { known in
            if let known, known.viewVersion == viewVersion { return known.value }
            let value = view.evaluate(state)
            // A reader that is late must not push out what newer ones share.
            if known?.viewVersion ?? 0 <= viewVersion { known = Known(viewVersion: viewVersion, value: value) }
            return value
        }
    }

    /// The value's JSON.
    func text(in state: State, viewVersion: Version?) throws -> [UInt8] {
        let value = value(in: state, viewVersion: viewVersion)
        if let text = known.withLock({ known in known?.viewVersion == viewVersion ? known?.text : nil }) { return text }
        let text = try value.write()
        known.withLock { known in if known?.viewVersion == viewVersion { known?.text = text } }
        return text
    }
}
