/// The streams that are writable or have a heartbeat due, since the handlers were last called with them.
struct StreamReports {
    private var writable: [Exchange] = []
    private var silent: [Exchange] = []

    /// Whether there is nothing to report.
    var isEmpty: Bool { writable.isEmpty && silent.isEmpty }

    mutating func noteWritable(_ exchange: Exchange) { writable.append(exchange) }
    mutating func noteSilent(_ exchange: Exchange) { silent.append(exchange) }

    /// Calls the handlers with the noted streams, each stream once.
    mutating func send(to handlers: Handlers) {
        if !writable.isEmpty { handlers.writable(exchange(&writable, with: [])) }
        if !silent.isEmpty { handlers.silent(exchange(&silent, with: [])) }
    }
}
