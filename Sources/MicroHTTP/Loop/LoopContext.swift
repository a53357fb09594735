import HTTPMessages

/// The objects that the parts of a loop share: configuration, handlers, clock, alarms, statistics, stage, poller and daemon.
///
/// Only the loop thread uses it.
final class LoopContext {
    // exclusivity unchecked: only the loop thread uses the variables, and a check takes as long as ten accesses.

    let configuration: ServerConfiguration
    let handlers: Handlers
    let poller: Poller
    let memory: MemoryBudget
    let answers: AnswerCounts
    @exclusivity(unchecked) var clients = ClientCounts()
    /// How many requests have heads that were accepted and no complete answers.
    @exclusivity(unchecked) var inFlightCount = 0
    @exclusivity(unchecked) var statistics = Statistics()
    @exclusivity(unchecked) var stage = Stage.serving
    @exclusivity(unchecked) private var alarms = Alarms()
    @exclusivity(unchecked) private var startedDaemon: Daemon?
    @exclusivity(unchecked) private var iterationTime: LoopInstant?
    /// The date of answers.
    @exclusivity(unchecked) var date = HTTPDate()
    /// Whether the current iteration has done more than to look at held connections.
    @exclusivity(unchecked) private(set) var hasProgressed = false
    /// Whether the current iteration has received a request.
    @exclusivity(unchecked) private(set) var hasReceived = false

    init(
        configuration: ServerConfiguration, handlers: Handlers, memory: MemoryBudget, answers: AnswerCounts
    ) throws(ServerError) {
        self.configuration = configuration
        self.handlers = handlers
        self.memory = memory
        self.answers = answers
        poller = try Poller()
    }

    // MARK: The daemon

    /// The daemon, which starts before the loop thread.
    var daemon: Daemon {
        guard let startedDaemon else { preconditionFailure("libmicrohttpd is started before the loop's thread") }
        return startedDaemon
    }

    func use(_ daemon: Daemon) { startedDaemon = daemon }

    // MARK: The iteration

    /// The time of the current iteration: the loop reads the clock at most once in each.
    func time() -> LoopInstant {
        if let iterationTime { return iterationTime }
        let now = LoopInstant.now
        iterationTime = now
        return now
    }

    /// Drops the time of the last iteration, before the loop waits.
    func forgetTime() { iterationTime = nil }

    /// Resets what is noted of an iteration, before libmicrohttpd runs.
    func beginRun() {
        hasProgressed = false
        hasReceived = false
    }

    func noteProgress() { hasProgressed = true }
    func noteRequest() { hasReceived = true }

    // MARK: Alarms

    /// The instant of the earliest alarm.
    var nextAlarm: LoopInstant? { alarms.next }

    /// Sets an alarm after a duration from the time of the iteration.
    func setAlarm(_ subject: Alarms.Subject, after duration: Duration) { alarms.set(subject, at: time() + duration) }

    func setAlarm(_ subject: Alarms.Subject, at instant: LoopInstant) { alarms.set(subject, at: instant) }

    func takeDueAlarms(now: LoopInstant) -> [Alarms.Subject] { alarms.takeDue(now: now) }

    func sweepAlarms(subjectsCount: @autoclosure () -> Int, exists: (Alarms.Subject) -> Bool) {
        alarms.sweep(subjectsCount: subjectsCount, exists: exists)
    }

    // MARK: Responses

    /// The response, or the refusal of a long one where there is no memory for it.
    func admitted(_ response: WireResponse) -> WireResponse {
        guard response.bodyCount > MemoryBudget.smallBytesMax, memory.isExceeded else { return response }
        return WireResponse(handlers.refuse(.memoryExhausted, nil))
    }
}
