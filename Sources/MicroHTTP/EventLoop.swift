import CMicroHTTPD
import Glibc
import HTTPMessages

/// The one thread that serves: it waits, takes what others have left, and lets libmicrohttpd make a pass.
///
/// Everything here runs on the loop thread, so nothing is locked. Other threads reach it through the ``Inbox``, and
/// exchanges are known to them by number only: no pointer into libmicrohttpd leaves this thread.
final class EventLoop {
    let configuration: ServerConfiguration
    let handlers: Handlers
    let inbox: Inbox
    let poller: Poller
    let reader = RequestReader()
    private let gauges: Gauges
    private let log: UnsafeMutablePointer<MicroHTTPDLog>

    /// The exchanges that are owed an answer, by number.
    var pending: [UInt64: ClientConnection] = [:]
    /// The connections above the cap that are to be told so, by number.
    var surplus: [UInt64: ClientConnection] = [:]
    var alarms = Alarms()
    var statistics = Statistics()
    /// Requests whose line has been received and whose end has not been reported.
    var inFlightCount = 0
    /// How many of the exchanges at work are held in libmicrohttpd's ready list rather than suspended.
    var heldWorkCount = 0
    var stage = Stage.serving
    /// Whom to tell that the loop has ended.
    var whenStopped: [@Sendable () -> Void] = []

    private var listener: ListeningSocket?
    private var lastNumber: UInt64 = 0
    private var items: [Inbox.Item] = []
    private var published = Statistics()
    private var passTime: ContinuousClock.Instant?
    /// Whether the present pass has moved anything besides looking at held connections.
    var passMoved = false
    /// Whether the present pass has taken in a request.
    var passReceived = false
    /// Whether the present pass has closed a connection at libmicrohttpd's limit.
    var passMadeRoom = false
    private var passCount = 0

    /// Makes a loop that waits on the bell of this inbox.
    init(
        configuration: ServerConfiguration, handlers: Handlers, inbox: Inbox, gauges: Gauges, listener: ListeningSocket
    ) throws(ServerError) {
        self.configuration = configuration
        self.handlers = handlers
        self.inbox = inbox
        self.gauges = gauges
        self.listener = listener
        poller = try Poller()
        log = .allocate(capacity: 1)
        log.initialize(to: MicroHTTPDLog(write: writeRemark, context: nil))
    }

    deinit {
        log.deinitialize(count: 1)
        log.deallocate()
    }

    /// Starts libmicrohttpd; before the thread starts.
    func makeDaemon(listener: ListeningSocket) throws(ServerError) -> Daemon {
        log.pointee.context = Unmanaged.passUnretained(self).toOpaque()
        let daemon = try Daemon(configuration: configuration, listener: listener, loop: self, log: log)
        do {
            try poller.watchDaemon(daemon.epollDescriptor)
            try poller.watchBell(inbox.bell)
        } catch {
            daemon.stop()
            throw error
        }
        return daemon
    }

    /// Serves until a stop has been asked for and carried out.
    func run(_ daemon: Daemon) {
        repeat {
            sleep(daemon)
            takeInbox(daemon)
            ringAlarms()
            makePass(daemon)
        } while !hasStopped()

        precondition(pending.isEmpty, "a stop answers every exchange first: libmicrohttpd aborts on suspended ones")
        stopAccepting(daemon)
        daemon.stop()
        for case .stop(_, let done) in inbox.close() { whenStopped.append(done) }
        publish()
        for done in whenStopped { done() }
    }

    /// A number that no exchange or connection of this server has had.
    func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    /// The moment of the present pass: one look at the clock serves all that happens in it.
    func timeOfPass() -> ContinuousClock.Instant {
        if let passTime { return passTime }
        let now = ContinuousClock.now
        passTime = now
        return now
    }

    private func makePass(_ daemon: Daemon) {
        passTime = nil
        passMoved = false
        passReceived = false
        passMadeRoom = false
        daemon.run()
        if passReceived { handlers.passEnded() }
        if statistics != published { publish() }
        alarms.sweep(livingCount: pending.count + surplus.count) { subject in
            switch subject {
            case .exchange(let number): pending[number] != nil
            case .surplusConnection(let number): surplus[number] != nil
            }
        }
    }

    private func publish() {
        published = statistics
        gauges.publish(statistics)
    }

    // MARK: Waiting

    /// Waits until there is something to do, and ends the waits whose client has hung up meanwhile.
    private func sleep(_ daemon: Daemon) {
        var milliseconds = sleepMilliseconds(daemon)
        passCount &+= 1
        if milliseconds == 0 {
            // libmicrohttpd has more to do at once. Its own events it looks up itself; hang-ups can wait a few passes.
            guard passCount.isMultiple(of: 16) else { return }
        } else if !inbox.prepareToSleep() {
            milliseconds = 0
        }
        poller.wait(milliseconds: milliseconds) { hungUp($0) }
    }

    private func sleepMilliseconds(_ daemon: Daemon) -> Int32 {
        // At its limit libmicrohttpd takes the listening socket out of its epoll set, and puts it back only at the
        // beginning of a pass, while connections are freed at the end: without one more pass nobody would be let in.
        if passMadeRoom { return 0 }
        var limit = Int32.max
        if let timeout = daemon.timeoutMilliseconds {
            if timeout > 0 {
                limit = Int32(clamping: timeout)
            } else if heldWorkCount == 0 || passMoved {
                return 0
            } else {
                // Held connections are always ready, so libmicrohttpd would spin (MICROHTTPD.md 13). The last pass
                // moved nothing else: the answers' bell or a client's event is what to wait for. Should something
                // have been overlooked, it waits for a millisecond, and only until the held ones are suspended.
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

    private func takeInbox(_ daemon: Daemon) {
        inbox.take(into: &items)
        guard !items.isEmpty else { return }
        for item in items {
            switch item {
            case .answer(let exchange, let response): settle([exchange], response)
            case .answers(let exchanges, let response): settle(exchanges, response)
            case .stopAccepting: stopAccepting(daemon)
            case .stop(let grace, let done):
                whenStopped.append(done)
                stopAccepting(daemon)
                beginDraining(grace: grace)
            }
        }
        items.removeAll(keepingCapacity: true)
    }

    private func stopAccepting(_ daemon: Daemon) {
        guard let listener else { return }
        daemon.quiesce()
        close(listener.descriptor)
        self.listener = nil
    }

    private func ringAlarms() {
        guard alarms.next != nil else { return }
        let now = ContinuousClock.now
        while let subject = alarms.popDue(now: now) {
            switch subject {
            case .exchange(let number):
                if let connection = pending[number] { expire(connection, .deadline) }
            case .surplusConnection(let number):
                // It ends like a client that left. One that is just being answered ends by itself.
                if let connection = surplus[number] { shutdown(connection.descriptor, Int32(SHUT_RD)) }
            }
        }
    }
}

/// Called with libmicrohttpd's own messages, already formatted.
private func writeRemark(_ context: UnsafeMutableRawPointer?, _ line: UnsafePointer<CChar>?) {
    guard let context, let line else { return }
    var text = String(cString: line)
    if text.hasSuffix("\n") { text.removeLast() }
    Unmanaged<EventLoop>.fromOpaque(context).takeUnretainedValue().handlers.remark(text)
}
