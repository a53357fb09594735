internal import Dispatch
internal import StateJSON
internal import Synchronization

/// The value of a view with arguments is kept while threads compute it or wait for it; the hub keeps its bytes.
final class CompiledView: Sendable {
    private struct Use {
        let memo: ViewMemo
        var count = 0
    }

    let view: View<StateBox>
    let number: Int
    private let loads: LoadCount
    private let plain: ViewMemo
    private let used = Mutex<[ViewArguments: Use]>([:])

    init(_ view: View<StateBox>, number: Int, _ loads: LoadCount) {
        (self.view, self.number, self.loads) = (view, number, loads)
        plain = ViewMemo(view, number: number, loads, for: .none)
    }

    func withMemo<Result>(
        for arguments: ViewArguments, _ body: (ViewMemo) throws -> Result
    ) rethrows -> Result {
        guard !arguments.isEmpty else { return try body(plain) }
        let memo = used.withLock { used in
            used[arguments, default: Use(memo: ViewMemo(view, number: number, loads, for: arguments))].count += 1
            return used[arguments]?.memo
        }
        defer {
            // The value ends outside the lock: it is an adopter's, and may read the view.
            _ = used.withLock { used in
                used[arguments]?.count -= 1
                return used[arguments]?.count == 0 ? used.removeValue(forKey: arguments) : nil
            }
        }
        return try body(memo ?? plain)
    }

    /// False for a view with arguments: clients choose them, so a pool computes it.
    func isQuick(_ arguments: ViewArguments, in snapshot: Snapshot) -> Bool {
        arguments.isEmpty && plain.isQuick(in: snapshot)
    }

    func arguments(_ parameters: JSONValue?, subject: String?) -> ViewArguments {
        ViewArguments(
            parameters: view.parameters.map { _ in parameters ?? [:] }, subject: view.takesSubject ? subject : nil)
    }
}

/// How often the functions of a domain were loaded again; a value of a view is that of the functions which have made it.
final class LoadCount: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .acquiring) }

    /// Counts a load, behind the exchange of the functions.
    func add() { count.add(1, ordering: .acquiringAndReleasing) }
}

final class ViewMemo: Sendable {
    private struct Moment: Equatable {
        let change: Cursor
        let load: Int

        func isBehind(_ other: Moment) -> Bool {
            load < other.load
                || load == other.load && change.epoch == other.change.epoch && change.version < other.change.version
        }
    }

    private struct Known {
        let moment: Moment
        let value: ViewValue
        var bytes: [UInt8]?
    }

    /// An evaluation for one version, for whose end other readers of the version wait.
    private struct UnderWay {
        let moment: Moment
        let evaluation: DispatchGroup
    }

    private struct Memo {
        var known: Known?
        var underWay: UnderWay?
        /// How many of the last evaluations, one after the other, have each taken less than ``quickTime``.
        var quickCount = 0
    }

    private enum Step {
        case known(ViewValue)
        case wait(DispatchGroup)
        case evaluate(DispatchGroup)
    }

    /// The time within which a thread that serves other clients may evaluate a view.
    private static let quickTime = Duration.microseconds(100)
    private static let quickCountMin = 4

    private let view: View<StateBox>
    private let number: Int
    private let loads: LoadCount
    private let arguments: ViewArguments
    private let memo = Mutex(Memo())

    init(_ view: View<StateBox>, number: Int, _ loads: LoadCount, for arguments: ViewArguments) {
        self.view = view
        (self.number, self.loads) = (number, loads)
        self.arguments = arguments
    }

    /// The view's value; that of a past state is not cached.
    ///
    /// A fork has versions of its own and shares the cache, so that the epoch tells the values apart.
    func value(in snapshot: Snapshot, marking mark: ReductionMark?) -> ViewValue {
        while true {
            // The functions that evaluate are at least as new as their count, so a value is never taken for a newer one.
            guard let moment = moment(of: snapshot) else { return evaluate(snapshot, mark).value }
            switch step(moment) {
            case .known(let value): return value
            case .wait(let evaluation): evaluation.wait()
            case .evaluate(let evaluation):
                let (value, isKept) = evaluate(snapshot, mark)
                // The old value ends outside the lock: it is an adopter's, and may read the view.
                _ = memo.withLock { memo -> Known? in
                    if memo.underWay?.evaluation === evaluation { memo.underWay = nil }
                    // A reader of an older snapshot must not replace the newer value.
                    if let known = memo.known?.moment, moment.isBehind(known) { return nil }
                    return isKept ? exchange(&memo.known, with: Known(moment: moment, value: value)) : nil
                }
                evaluation.leave()
                return value
            }
        }
    }

    /// Nil for a past state.
    private func moment(of snapshot: Snapshot) -> Moment? {
        snapshot.change(ofView: number).map { Moment(change: $0, load: loads.value) }
    }

    private func step(_ moment: Moment) -> Step {
        // Two views that read each other on two threads must not wait for each other, and a view that reads itself is evaluated
        // again for each of its readers, because the one that reads it now may be on the way.
        let isRead = ViewEvaluation.current != nil
        return memo.withLock { memo in
            if let known = memo.known, known.moment == moment, !isRead || !(known.value.value is ViewReadsItself) {
                return .known(known.value)
            }
            // One evaluation for the same arguments runs at a time, for whichever version.
            if !isRead, let underWay = memo.underWay, underWay.moment == moment || !arguments.isEmpty {
                return .wait(underWay.evaluation)
            }
            let evaluation = DispatchGroup()
            evaluation.enter()
            memo.underWay = UnderWay(moment: moment, evaluation: evaluation)
            return .evaluate(evaluation)
        }
    }

    func isQuick(in snapshot: Snapshot) -> Bool {
        let moment = moment(of: snapshot)
        return memo.withLock { memo in
            if let known = memo.known, known.moment == moment { return known.bytes != nil }
            return memo.underWay == nil && memo.quickCount >= Self.quickCountMin
        }
    }

    /// `isKept` is false for a view that is set aside, because it may pass later.
    private func evaluate(_ snapshot: Snapshot, _ mark: ReductionMark?) -> (value: ViewValue, isKept: Bool) {
        do {
            let value = try marking(mark, snapshot) {
                let begun = ContinuousClock.now
                // The time decides which thread evaluates the view next, and nothing that a client can see.
                defer {
                    let isQuick = ContinuousClock.now - begun < Self.quickTime
                    memo.withLock { $0.quickCount = isQuick ? min($0.quickCount + 1, Self.quickCountMin) : 0 }
                }
                return try ViewEvaluation.value(of: self) { try view.evaluate(snapshot.state, arguments) }
            }
            return (value ?? ViewValue(ViewReadsItself(name: view.name)), true)
        } catch {
            return (ViewValue(json: .failure(error as? ViewFault ?? ViewFault("\(error)"))), false)
        }
    }

    private func marking<Value>(
        _ mark: ReductionMark?, _ snapshot: Snapshot, _ body: () throws -> Value
    ) throws -> Value {
        guard let mark else { return try body() }
        return try mark.viewing(
            view.name, arguments, at: snapshot.version, changed: snapshot.change(ofView: number)?.version, body)
    }

    func bytes(in snapshot: Snapshot, marking mark: ReductionMark?) throws -> [UInt8] {
        let moment = moment(of: snapshot)
        if let bytes = memo.withLock({ $0.known?.moment == moment ? $0.known?.bytes : nil }) { return bytes }
        // The function and the encoding are the adopter's: one mark is around both.
        return try marking(mark, snapshot) {
            let value = value(in: snapshot, marking: nil)
            let begun = ContinuousClock.now
            let bytes = try value.write()
            let time = ContinuousClock.now - begun
            // A quick encoding says nothing about the evaluation.
            memo.withLock { memo in
                if time >= Self.quickTime { memo.quickCount = 0 }
                if memo.known?.moment == moment { memo.known?.bytes = bytes }
            }
            return bytes
        }
    }
}

/// A view that is being evaluated on a thread, and its reader: a function that reads its own view would never return.
final class ViewEvaluation: Sendable {
    @TaskLocal static var current: ViewEvaluation?

    private let view: any AnyObject & Sendable
    private let reader: ViewEvaluation?
    private let readsItself = Atomic(false)

    private init(_ view: any AnyObject & Sendable, readBy reader: ViewEvaluation?) {
        (self.view, self.reader) = (view, reader)
    }

    static func value<Value>(of view: any AnyObject & Sendable, _ evaluate: () throws -> Value) rethrows -> Value? {
        if let current, current.reads(view) { return nil }
        let evaluation = ViewEvaluation(view, readBy: current)
        let value = try $current.withValue(evaluation) { try evaluate() }
        return evaluation.readsItself.load(ordering: .relaxed) ? nil : value
    }

    /// Whether a view reads itself by way of this evaluation; each one on the way then has no value.
    private func reads(_ view: any AnyObject & Sendable) -> Bool {
        guard self.view === view || reader?.reads(view) == true else { return false }
        readsItself.store(true, ordering: .relaxed)
        return true
    }
}

struct ViewReadsItself: Error, CustomStringConvertible {
    let name: String

    var description: String { "the view \"\(name)\" reads itself, so it has no value" }
}
