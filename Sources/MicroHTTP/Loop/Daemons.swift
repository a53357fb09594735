/// The two daemons of a loop: one for nearly all connections, and one with much memory for those with long heads.
///
/// libmicrohttpd clears a connection's memory for each request, so much memory would cost every request: 32 KiB in place of
/// 8 KiB are 0.5 us of a GET's 7 us. A connection starts in the small daemon and moves when a long head arrives on it:
/// see ``LongHeads``.
struct Daemons {
    let small: Daemon
    let large: Daemon

    /// Starts both, before the loop thread starts.
    init(
        configuration: ServerConfiguration, receiver: RequestReceiver, log: LoopLog
    ) throws(ServerError) {
        small = try Daemon(
            configuration: configuration, memoryBytes: ServerConfiguration.connectionMemoryBytes, receiver: receiver,
            log: log)
        do {
            large = try Daemon(
                configuration: configuration, memoryBytes: ServerConfiguration.longHeadMemoryBytes, receiver: receiver,
                log: log)
        } catch {
            small.stop()
            throw error
        }
    }

    /// Processes all connections that are ready; never blocks.
    ///
    /// - Parameter isLargeUsed: whether the large daemon has connections; without any its run only costs a system call.
    func run(isLargeUsed: Bool) {
        small.run()
        if isLargeUsed { large.run() }
    }

    /// The milliseconds after which the loop has to call `run` even if no event occurs; nil if it need not.
    var timeoutMilliseconds: UInt64? {
        switch (small.timeoutMilliseconds, large.timeoutMilliseconds) {
        case (let first?, let second?): min(first, second)
        case (let first, let second): first ?? second
        }
    }

    /// Closes all connections; none may be suspended.
    func stop() {
        small.stop()
        large.stop()
    }
}
