import CMicroHTTPD
import Glibc
import HTTPMessages

/// The one thread that serves: it waits, takes what others have left, and lets libmicrohttpd make a pass.
///
/// Everything here runs on the loop thread, so nothing is locked. Other threads reach it through the ``LoopMailbox``,
/// and exchanges are known to them by number only: no pointer into libmicrohttpd leaves this thread.
final class EventLoop {
    let configuration: ServerConfiguration
    let handlers: Handlers
    let mailbox: LoopMailbox
    let poller: Poller
    let reader = RequestReader()
    let heads = HeadCache()
    private let gauges: LoopGauges
    private let log: UnsafeMutablePointer<MicroHTTPDLog>

    /// The exchanges that are being worked on, by number.
    var pending: [UInt64: ClientConnection] = [:]
    /// The connections that libmicrohttpd has given up, by the number of the exchange that it gave them up for.
    var parked: [UInt64: ParkedConnection] = [:]
    /// The one that is being handed back at this moment.
    var returning: ParkedConnection?
    /// The streams that can take more, and those that have been silent, since their owner was last told.
    var writable: [Exchange] = []
    var silent: [Exchange] = []
    /// The connections above the cap that are to be told so, by number.
    var overCapacity: [UInt64: ClientConnection] = [:]
    /// The connections that continue to send in a later iteration.
    var paused = SendQueue()
    var alarms = Alarms()
    var statistics = Statistics()
    /// Requests whose line has been received and whose end has not been reported.
    var inFlightCount = 0
    /// How many of the exchanges at work are held in libmicrohttpd's ready list rather than suspended.
    var heldWorkCount = 0
    var stage = Stage.serving
    /// Whom to tell that the loop has ended.
    var whenStopped: [@Sendable () -> Void] = []

    var listener: ListeningSocket?
    /// Whether the poller watches the listening socket.
    var isListening = false
    private var startedDaemon: Daemon?
    private var lastNumber: UInt64
    private let numberStride: UInt64
    private var items: [LoopMailbox.Item] = []
    private var published = Statistics()
    private var iterationTime: ContinuousClock.Instant?
    /// Whether the present pass has moved anything besides looking at held connections.
    var iterationMoved = false
    /// Whether the present pass has taken in a request.
    var iterationReceived = false
    private var iterationCount = 0

    /// Makes a loop that waits on the wakeUp of this mailbox.
    ///
    /// - Parameter index: which of the server's loops it is.
    init(
        configuration: ServerConfiguration, index: Int, handlers: Handlers, mailbox: LoopMailbox, gauges: LoopGauges,
        listener: ListeningSocket
    ) throws(ServerError) {
        // No two loops give out the same number.
        lastNumber = UInt64(index)
        numberStride = UInt64(max(1, configuration.loops))
        self.configuration = configuration
        self.handlers = handlers
        self.mailbox = mailbox
        self.gauges = gauges
        self.listener = listener
        poller = try Poller()
        log = .allocate(capacity: 1)
        log.initialize(to: MicroHTTPDLog(write: writeLogLine, context: nil))
    }

    deinit {
        log.deinitialize(count: 1)
        log.deallocate()
    }

    /// Starts libmicrohttpd; before the thread starts.
    func start() throws(ServerError) {
        log.pointee.context = Unmanaged.passUnretained(self).toOpaque()
        let daemon = try Daemon(configuration: configuration, loop: self, log: log)
        do {
            try poller.watchDaemon(daemon.epollDescriptor)
            try poller.watchWakeUp(mailbox.wakeUp)
            if let listener { try poller.watchListener(listener.descriptor) }
        } catch {
            daemon.stop()
            throw error
        }
        isListening = true
        startedDaemon = daemon
    }

    var daemon: Daemon {
        guard let startedDaemon else { preconditionFailure("libmicrohttpd is started before the loop's thread") }
        return startedDaemon
    }

    /// Serves until a stop has been asked for and carried out.
    func run() {
        repeat {
            sleep()
            iterationTime = nil
            takeMail()
            handleDueAlarms()
            resumePaused()
            runIteration()
            reportStreams()
        } while !hasStopped()

        precondition(pending.isEmpty, "a stop answers every exchange first: libmicrohttpd aborts on suspended ones")
        stopAccepting()
        for connection in Array(parked.values) { close(connection) }
        daemon.stop()
        for case .stop(_, let done) in mailbox.close() { whenStopped.append(done) }
        publish()
        for done in whenStopped { done() }
    }

    /// A number that no exchange or connection of this server has had.
    func nextNumber() -> UInt64 {
        lastNumber += numberStride
        return lastNumber
    }

    /// The moment of the present round: one look at the clock serves all that happens in it.
    func timeOfIteration() -> ContinuousClock.Instant {
        if let iterationTime { return iterationTime }
        let now = ContinuousClock.now
        iterationTime = now
        return now
    }

    private func runIteration() {
        iterationMoved = false
        iterationReceived = false
        daemon.run()
        if iterationReceived { handlers.iterationEnded() }
        if !isListening { listenIfPossible() }
        if statistics != published { publish() }
        alarms.sweep(subjectsCount: pending.count + overCapacity.count + parked.count) { subject in
            switch subject {
            case .exchange(let number): pending[number] != nil || parked[number] != nil
            case .parked(let number), .silence(let number): parked[number] != nil
            case .overCapacity(let number): overCapacity[number] != nil
            case .listening: true
            }
        }
    }

    /// Asks those who own streams what comes next.
    private func reportStreams() {
        if !writable.isEmpty { handlers.writable(exchange(&writable, with: [])) }
        if !silent.isEmpty { handlers.silent(exchange(&silent, with: [])) }
    }

    private func publish() {
        published = statistics
        gauges.publish(statistics)
    }

    // MARK: Waiting

    /// Waits until there is something to do, and does what has happened on the sockets that are the loop's own.
    private func sleep() {
        var milliseconds = waitMilliseconds()
        iterationCount &+= 1
        if !paused.isEmpty {
            // The loop looks for events of all clients between two parts of a long answer.
            milliseconds = 0
        } else if milliseconds == 0 {
            // libmicrohttpd has more to do at once. Its own events it looks up itself; the others can wait a few
            // passes.
            guard iterationCount.isMultiple(of: 16) else { return }
        } else if !mailbox.prepareToWait() {
            milliseconds = 0
        }
        poller.wait(milliseconds: milliseconds, newClients: acceptClients, event: parkedEvent)
    }

    private func waitMilliseconds() -> Int32 {
        var limit = Int32.max
        if let timeout = daemon.timeoutMilliseconds {
            if timeout > 0 {
                limit = Int32(clamping: timeout)
            } else if heldWorkCount == 0 || iterationMoved {
                return 0
            } else {
                // Held connections are always ready, so libmicrohttpd would spin (Libmicrohttpd page, 13). The last
                // pass moved nothing else: the answers' wakeUp or a client's event is what to wait for. Should
                // something have been overlooked, it waits for a millisecond, and only until the held ones are
                // suspended.
                limit = 1
            }
        }
        for instant in [alarms.next, stage.deadline] {
            guard let instant else { continue }
            let left = ContinuousClock.now.duration(to: instant) / .milliseconds(1)
            limit = min(limit, left <= 0 ? 0 : Int32(clamping: Int64(left.rounded(.up))))
        }
        return limit == Int32.max ? -1 : limit
    }

    // MARK: What others have left

    private func takeMail() {
        mailbox.take(into: &items)
        guard !items.isEmpty else { return }
        for item in items {
            switch item {
            case .deliver(let transmission): deliver(transmission)
            case .stopAccepting: stopAccepting()
            case .stop(let grace, let done):
                whenStopped.append(done)
                stopAccepting()
                beginDraining(grace: grace)
            }
        }
        items.removeAll(keepingCapacity: true)
    }

    private func handleDueAlarms() {
        guard alarms.next != nil else { return }
        let now = ContinuousClock.now
        while let subject = alarms.popDue(now: now) {
            switch subject {
            case .exchange(let number):
                if let connection = pending[number] { expire(connection, .deadline) }
                parkedAlarm(number, subject)
            case .silence(let number), .parked(let number): parkedAlarm(number, subject)
            case .listening: listenIfPossible()
            case .overCapacity(let number):
                // It ends like a client that left. One that is just being answered ends by itself.
                if let connection = overCapacity[number] { shutdown(connection.descriptor, Int32(SHUT_RD)) }
            }
        }
    }
}

/// Called with libmicrohttpd's own messages, already formatted.
private func writeLogLine(_ context: UnsafeMutableRawPointer?, _ line: UnsafePointer<CChar>?) {
    guard let context, let line else { return }
    var text = String(cString: line)
    if text.hasSuffix("\n") { text.removeLast() }
    Unmanaged<EventLoop>.fromOpaque(context).takeUnretainedValue().handlers.debugLog(text)
}
