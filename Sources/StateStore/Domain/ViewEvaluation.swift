internal import Synchronization

/// A view that is being evaluated on a thread, and its reader: a function that reads its own view would never return.
final class ViewEvaluation: Sendable {
    @TaskLocal static var current: ViewEvaluation?

    private let view: any AnyObject & Sendable
    private let reader: ViewEvaluation?
    private let readsItself = Atomic(false)

    private init(_ view: any AnyObject & Sendable, readBy reader: ViewEvaluation?) {
        (self.view, self.reader) = (view, reader)
    }

    /// Nil if the view reads itself.
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
