import CMicroHTTPD
import Glibc
import HTTPMessages

/// A loop: it waits for events, takes its mail, handles alarms, and lets libmicrohttpd run.
///
/// All of it runs on the loop thread, so that it needs no locks; only the initializer and ``start()`` run before that
/// thread exists. Other threads reach the loop through its ``LoopMailbox``. They identify exchanges by number: no
/// pointer into libmicrohttpd leaves the loop thread.
final class EventLoop {
    // exclusivity unchecked: only the loop thread uses the variables, and a check takes as long as ten accesses.

    let context: LoopContext
    let mailbox: LoopMailbox
    private let acceptor: ClientAcceptor
    let pending: PendingExchanges
    let parked: ParkedConnections
    let open: OpenConnections
    let postponed: PostponedRequests
    let idle: IdleConnections
    /// libmicrohttpd keeps the pointer for the life of its daemon, which the loop outlives.
    private let log = UnsafeMutablePointer<MicroHTTPDLog>.allocate(capacity: 1)

    @exclusivity(unchecked) var heads: RequestHeads
    let received = ReceivedHead()
    let isStrict = LibraryVersion.current.isStrict
    /// The last number that an exchange of this loop got; no other loop gives it.
    @exclusivity(unchecked) var lastNumber: UInt64
    let numberStride: UInt64

    @exclusivity(unchecked) private var items: [LoopMailbox.Item] = []
    @exclusivity(unchecked) private var iterationCount = 0
    private var whenStopped: [@Sendable () -> Void] = []
    private static let cuttingTime = Duration.milliseconds(250)

    init(
        configuration: ServerConfiguration, index: Int, handlers: Handlers, memory: MemoryBudget, mailbox: LoopMailbox,
        gauges: LoopGauges, listeners: [ListeningSocket]
    ) throws(ServerError) {
        self.mailbox = mailbox
        context = try LoopContext(configuration: configuration, handlers: handlers, memory: memory, gauges: gauges)
        idle = IdleConnections(context)
        open = OpenConnections(context)
        postponed = PostponedRequests(context, open: open)
        acceptor = ClientAcceptor(context, listeners: listeners, open: open)
        pending = PendingExchanges(context, open: open)
        parked = ParkedConnections(context, open: open)
        heads = RequestHeads(configuration)
        lastNumber = UInt64(index)
        numberStride = UInt64(max(1, configuration.loops))
    }

    deinit { log.deallocate() }

    func start() throws(ServerError) {
        log.initialize(to: MicroHTTPDLog(write: writeLine, context: Unmanaged.passUnretained(self).toOpaque()))
        let daemon = try Daemon(self, log)
        do {
            try context.poller.watch(daemon.epollDescriptor, isEdgeTriggered: false)
            try context.poller.watch(mailbox.wakeUp, isEdgeTriggered: true)
            try acceptor.start()
        } catch {
            daemon.stop()
            throw error
        }
        context.daemon = daemon
    }

    /// Follows ``start()`` where the loop's thread could not be started.
    func abandon() { context.daemon?.stop() }

    func run() {
        mailbox.noteThread()
        repeat {
            context.forgetTime()
            wait()
            takeMail()
            handleDueAlarms()
            parked.resumePaused()
            if context.stage.isStopping { cutIfDue() }
            (context.hasProgressed, context.hasReceived) = (false, false)
            acceptor.addWaiting()
            postponed.beginIteration()
            context.daemon?.run()
            if context.hasReceived { context.handlers.iterationEnded() }
            if !acceptor.isListening { acceptor.listenIfPossible() }
            if context.alarms.mayBeOver { sweepAlarms() }
            // Streams without a chunk come first. A stream gets one chunk between two reports, so the chunks end.
            if parked.hasReports, !mailbox.hasChunks { parked.reportStreams() }
        } while !hasStopped()

        precondition(pending.count == 0, "a stop answers every exchange first: libmicrohttpd aborts on suspended ones")
        acceptor.stop()
        parked.closeAll()
        context.daemon?.stop()
        for case .stop(_, let done) in mailbox.close() { whenStopped.append(done) }
        for done in whenStopped { done() }
    }

    fileprivate func log(_ line: UnsafePointer<CChar>) {
        var text = String(cString: line)
        if text.hasSuffix("\n") { text.removeLast() }
        // libmicrohttpd tells of a request that it refuses by itself in no other way.
        if text.hasPrefix("Error processing request") { context.gauges.refused.add(1) }
        context.handlers.debugLog(text)
    }

    // MARK: Waiting

    private func wait() {
        var milliseconds = waitMilliseconds()
        iterationCount &+= 1
        if parked.hasPaused || acceptor.hasWaiting || postponed.isAny {
            // The loop looks for events of all clients between two shares of a long answer, of new clients, or of one
            // client's requests.
            milliseconds = 0
        } else if milliseconds == 0 {
            // libmicrohttpd has more to do at once. It polls its own events; the loop's may wait some iterations.
            guard iterationCount.isMultiple(of: 16) else { return }
        } else if !mailbox.prepareToWait() {
            milliseconds = 0
        }
        context.poller.wait(
            milliseconds: milliseconds, newClients: acceptor.acceptClients, event: { parked.handle($0, $1) })
    }

    private func waitMilliseconds() -> Int32 {
        var limit = Int32.max
        if let timeout = context.daemon?.timeoutMilliseconds {
            if timeout > 0 {
                limit = Int32(clamping: timeout)
            } else if !pending.hasHeld || context.hasProgressed {
                return 0
            } else {
                // Held connections are always ready, so that libmicrohttpd would spin (Libmicrohttpd page, 13). As the
                // last iteration did nothing else, the loop waits for an event. Work that this condition does not cover
                // waits one millisecond, and only until the held ones are suspended.
                limit = 1
            }
        }
        var next = context.alarms.next
        if context.stage.isStopping, let deadline = context.stage.deadline { next = min(next ?? deadline, deadline) }
        if let next {
            let left = LoopInstant.now.duration(to: next) / .milliseconds(1)
            limit = min(limit, left <= 0 ? 0 : Int32(clamping: Int64(left.rounded(.up))))
        }
        return limit == Int32.max ? -1 : limit
    }

    private func handleDueAlarms() {
        guard let next = context.alarms.next, next <= context.time() else { return }
        for subject in context.alarms.takeDue(now: context.time()) {
            switch subject {
            case .exchange(let number):
                if let connection = pending.timed(number) { pending.expire(connection, .deadline) }
                if let connection = parked[number] { parked.handleAlarm(of: connection) }
            case .listening: acceptor.retry()
            case .idleConnections: idle.check()
            case .receiving: open.check()
            }
        }
    }

    private func sweepAlarms() {
        context.alarms.sweep(subjectsCount: pending.count + parked.count) { subject in
            guard case .exchange(let number) = subject else { return true }
            return pending.timed(number) != nil || parked[number] != nil
        }
    }

    // MARK: Mail

    private func takeMail() {
        mailbox.take(into: &items)
        guard !items.isEmpty else { return }
        for item in items {
            switch item {
            case .deliver(let transmission): deliver(transmission)
            case .stopAccepting: acceptor.stop()
            case .stop(let grace, let done):
                whenStopped.append(done)
                acceptor.stop()
                beginDraining(grace: grace)
            }
        }
        items.removeAll(keepingCapacity: true)
    }

    /// Exchanges whose clients have left are no longer registered.
    private func deliver(_ transmission: Transmission) {
        switch transmission {
        case .single(let exchange):
            guard let response = exchange.takeWireResponse() else { return }
            if let connection = exchange.pending {
                pending.release(
                    connection, exchange, as: .answered(response.isLong ? context.admitted(response) : response))
            } else if let connection = parked[exchange.id] {
                parked.answer(connection, response)
            }
        case .again(let exchange):
            if let connection = exchange.pending, connection.deferred != nil {
                pending.release(connection, exchange, as: .resumed(exchange))
            }
        case .answer(let exchanges, let response):
            let shared = WireResponse(response)
            for exchange in exchanges {
                if let connection = exchange.pending {
                    pending.release(connection, exchange, as: .answered(shared))
                } else if let connection = parked[exchange.id] {
                    parked.answer(connection, shared)
                }
            }
        case .cut(let exchange):
            if let connection = parked[exchange.id] { parked.cut(connection) }
        case .chunk(let exchanges, let chunk):
            for exchange in exchanges {
                guard let connection = parked[exchange.id] else { continue }
                parked.write(chunk, to: connection, exchange)
            }
        }
    }

    // MARK: Stopping

    private func beginDraining(grace: Duration) {
        let until = LoopInstant.now + grace
        switch context.stage {
        case .serving:
            context.stage = .draining(until: until)
            parked.stop(withWork: false)
        case .draining(let present):
            context.stage = .draining(until: min(present, until))
        case .cutting:
            break
        }
    }

    /// libmicrohttpd has to run behind it: it tells of no resumed connection before a wait.
    private func cutIfDue() {
        guard case .draining(let until) = context.stage, until <= .now else { return }
        context.stage = .cutting(until: .now + Self.cuttingTime)
        pending.stopAll()
        parked.stop(withWork: true)
    }

    private func hasStopped() -> Bool {
        let isInFlight = context.inFlightCount > 0 || !parked.isEmpty
        switch context.stage {
        case .serving:
            return false
        case .draining:
            return !isInFlight
        case .cutting(let until):
            // The answer of an exchange that is still pending is about to be put into the mailbox.
            return pending.count == 0 && (!isInFlight || until <= .now)
        }
    }
}

private func writeLine(_ context: UnsafeMutableRawPointer?, _ line: UnsafePointer<CChar>?) {
    guard let context, let line else { return }
    Unmanaged<EventLoop>.fromOpaque(context).takeUnretainedValue().log(line)
}
