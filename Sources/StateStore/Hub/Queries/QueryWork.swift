internal import Threads

package struct QueryWork: Sendable {
    /// Whether somebody still waits for the answer after so much processor time.
    package var isWanted: @Sendable (Duration) -> Bool = { _ in true }
    /// Whether the thread serves others, and compiles no pattern.
    package var servesOthers = false
    package var client = ""
    package var memory = ClientMemory()
    package var processorTime: @Sendable () -> Duration = SystemThread.processorTime

    @TaskLocal package static var current = QueryWork()

    package init() {}
}

package enum QueryStop: Error, Sendable, Equatable {
    /// It has looked at more values, or gathered more, or taken more processor time than it may.
    case values, time
    /// The page has to end, and its sort values are too long for a `next`.
    case page
    case abandoned
    /// A pattern has to be compiled by a thread that does not serve others.
    case elsewhere
    case memory(ClientMemory.Refusal)

    /// Whether another evaluation of the same members may have an answer.
    var isOfThread: Bool { if case .memory = self { true } else { self == .abandoned || self == .elsewhere } }
}
