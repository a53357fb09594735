internal import Dispatch
internal import StateJSON
internal import Synchronization

/// A named selection that the domain computes from the state.
///
/// The store evaluates a view at most once per version, however many clients and subscribers read it, and not again until
/// something that the view reads has changed.
public struct View<State: Sendable>: Reducer {
    let name: String
    private(set) var reads: [JSONPointer]
    /// The declared parts that the view reads, as it names them by key path, or nil if it names them by pointer.
    private var paths: [any PartialKeyPath<State> & Sendable]?
    /// The Swift type of the value, or nil if it cannot be read from JSON.
    let valueType: (any (Decodable & Sendable).Type)?
    let evaluate: @Sendable (State) -> ViewValue
    private var fault: (@Sendable (State) -> String?)?

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
        self.init(name, Value.self as? any (Decodable & Sendable).Type, reads.map { JSONPointer(stringLiteral: $0) }) {
            ViewValue(derive($0))
        }
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
        self.init(name, Value.self as? any (Decodable & Sendable).Type, []) { ViewValue(derive($0)) }
        self.paths = paths
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
        self.init(name, Value.self as? any (Decodable & Sendable).Type, reads.map { JSONPointer(stringLiteral: $0) }) {
            state in
            guard let facet = state as? Facet else {
                preconditionFailure("\(State.self) is no \(Facet.self), which was checked at start")
            }
            return ViewValue(derive(facet))
        }
        fault = { $0 is Facet ? nil : "the view \"\(name)\" looks at \(State.self) as \(Facet.self), which it is not" }
    }

    fileprivate init(
        _ name: String, _ valueType: (any (Decodable & Sendable).Type)?, _ reads: [JSONPointer],
        _ evaluate: @escaping @Sendable (State) -> ViewValue
    ) {
        self.name = name
        self.valueType = valueType
        self.reads = reads
        self.evaluate = evaluate
    }

    init(_ view: JSONDomain.Viewed) where State == JSONState {
        self.init(view.name, nil, view.reads) { [look = view.look] state in
            ViewValue(json: Result { () throws(ViewFault) in try look(state.tree) })
        }
    }

    /// Adds the view to a declaration.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.views.append(self)
        if let initial = (State.self as? any StateType.Type)?.init() as? State, let fault = fault?(initial) {
            declaration.faults.append(fault)
        }
    }

    /// The view with the pointers of the parts that it names by key path.
    func resolved(by members: [LayoutField<State>]) -> (view: View, faults: [String]) {
        guard let paths else { return (self, []) }
        var view = self
        var faults: [String] = []
        view.paths = nil
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
    func lifted<Outer: Sendable>(into slice: String, _ path: any KeyPath<Outer, State> & Sendable) -> View<Outer> {
        View<Outer>("\(slice).\(name)", valueType, reads.map { JSONPointer([slice] + $0.tokens) }) { [evaluate] in
            evaluate($0[keyPath: path])
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

/// The reason why the function of a view has no value.
package struct ViewFault: Error {
    package let sentence: String

    package init(_ sentence: String) { self.sentence = sentence }
}

final class ViewMemo<State: StateType>: Sendable {
    private struct Known {
        let change: Cursor
        let value: ViewValue
        var bytes: [UInt8]?
    }

    /// An evaluation for one version, for whose end other readers of the version wait.
    private struct UnderWay {
        let change: Cursor
        let evaluation: DispatchGroup
    }

    private struct Memo {
        var known: Known?
        var underWay: UnderWay?
        /// How many of the last evaluations, one after the other, have each taken less than ``quickTime``.
        var quickCount = 0
        var isSlow = false
    }

    private enum Step {
        case known(ViewValue)
        case wait(DispatchGroup)
        case evaluate(DispatchGroup)
    }

    /// The time within which a thread that serves other clients may evaluate a view.
    private static var quickTime: Duration { .microseconds(100) }
    /// The time from which on a view is not evaluated in a pass of the watches, where others wait.
    private static var slowTime: Duration { .milliseconds(5) }
    private static var quickCountMin: Int { 4 }

    let view: View<State>
    /// The view's index in ``Snapshot/viewVersions``.
    let number: Int
    private let memo = Mutex(Memo())

    init(_ view: View<State>, number: Int) {
        self.view = view
        self.number = number
    }

    /// The view's value; that of a past state is not cached.
    ///
    /// A fork has versions of its own and shares the cache, so that the epoch tells the values apart.
    func value(in snapshot: Snapshot<State>, marking mark: ReductionMark?) -> ViewValue {
        guard let change = snapshot.change(ofView: number) else { return evaluate(snapshot, mark).value }
        while true {
            switch step(change) {
            case .known(let value): return value
            case .wait(let evaluation): evaluation.wait()
            case .evaluate(let evaluation):
                let (value, isKept) = evaluate(snapshot, mark)
                // The old value ends outside the lock: it is an adopter's, and may read the view.
                _ = memo.withLock { memo -> Known? in
                    if memo.underWay?.evaluation === evaluation { memo.underWay = nil }
                    // A reader of an older snapshot must not replace the newer value.
                    if let known = memo.known?.change, known.epoch == change.epoch, known.version > change.version {
                        return nil
                    }
                    return isKept ? exchange(&memo.known, with: Known(change: change, value: value)) : nil
                }
                evaluation.leave()
                return value
            }
        }
    }

    private func step(_ change: Cursor) -> Step {
        // Two views that read each other on two threads must not wait for each other.
        let mayWait = ViewEvaluation.current == nil
        return memo.withLock { memo in
            if let known = memo.known, known.change == change { return .known(known.value) }
            if mayWait, let underWay = memo.underWay, underWay.change == change {
                return .wait(underWay.evaluation)
            }
            let evaluation = DispatchGroup()
            evaluation.enter()
            memo.underWay = UnderWay(change: change, evaluation: evaluation)
            return .evaluate(evaluation)
        }
    }

    /// Whether a thread that serves other clients may ask for the bytes: they are there, or the last evaluations were quick.
    func isQuick(in snapshot: Snapshot<State>) -> Bool {
        let change = snapshot.change(ofView: number)
        return memo.withLock { memo in
            if let known = memo.known, known.change == change { return known.bytes != nil }
            return memo.underWay == nil && memo.quickCount >= Self.quickCountMin
        }
    }

    /// Whether the bytes are not there, and the last evaluation has taken long.
    func isSlow(in snapshot: Snapshot<State>) -> Bool {
        let change = snapshot.change(ofView: number)
        return memo.withLock { memo in
            if let known = memo.known, known.change == change, known.bytes != nil { return false }
            return memo.isSlow
        }
    }

    /// Notes how long an evaluation has taken.
    ///
    /// The time decides which thread evaluates the view next, and nothing that a client can see.
    private func noteTime(_ time: Duration) {
        memo.withLock { memo in
            memo.quickCount = time < Self.quickTime ? min(memo.quickCount + 1, Self.quickCountMin) : 0
            memo.isSlow = time >= Self.slowTime
        }
    }

    /// The value, and whether the cache may keep it: a view that is set aside may pass later.
    private func evaluate(_ snapshot: Snapshot<State>, _ mark: ReductionMark?) -> (value: ViewValue, isKept: Bool) {
        do {
            let value = try marking(mark, snapshot) {
                let begun = ContinuousClock.now
                defer { noteTime(ContinuousClock.now - begun) }
                return ViewEvaluation.value(of: self) { view.evaluate(snapshot.state) }
            }
            return (value ?? ViewValue(ViewReadsItself(name: view.name)), true)
        } catch {
            return (ViewValue(json: .failure(error as? ViewFault ?? ViewFault("\(error)"))), false)
        }
    }

    private func marking<Value>(
        _ mark: ReductionMark?, _ snapshot: Snapshot<State>, _ body: () throws -> Value
    ) throws -> Value {
        guard let mark else { return try body() }
        return try mark.viewing(
            view.name, at: snapshot.version, changed: snapshot.change(ofView: number)?.version, body)
    }

    func bytes(in snapshot: Snapshot<State>, marking mark: ReductionMark?) throws -> [UInt8] {
        let change = snapshot.change(ofView: number)
        if let bytes = memo.withLock({ $0.known?.change == change ? $0.known?.bytes : nil }) { return bytes }
        // The function and the encoding are the adopter's: one mark is around both.
        return try marking(mark, snapshot) {
            let value = value(in: snapshot, marking: nil)
            let begun = ContinuousClock.now
            let bytes = try value.write()
            let time = ContinuousClock.now - begun
            // A quick encoding says nothing about the evaluation.
            if time >= Self.quickTime {
                memo.withLock { ($0.quickCount, $0.isSlow) = (0, $0.isSlow || time >= Self.slowTime) }
            }
            memo.withLock { if $0.known?.change == change { $0.known?.bytes = bytes } }
            return bytes
        }
    }
}
