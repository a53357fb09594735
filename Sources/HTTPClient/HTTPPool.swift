internal import CCurl
internal import Synchronization

/// Has all requests on one thread, which calls ``run()``; any may call the other methods.
package final class HTTPPool: Sendable {
    package typealias Outcome = Result<HTTPConnection.Response, HTTPConnection.Failure>

    private struct Job: Sendable {
        let request: HTTPConnection.Request
        let isWanted: @Sendable () -> Bool
        let done: @Sendable (Outcome) -> Void
    }

    private let curl: Curl
    // unsafe: `run` alone uses it, but for curl_multi_wakeup, which any thread may call.
    private nonisolated(unsafe) let multi: UnsafeMutableRawPointer
    private let requestsMax: Int
    private let waiting = Mutex<[Job]>([])
    private let isStopped = Atomic(false)

    /// Requests above `requestsMax` wait for one to end.
    package convenience init(requestsMax: Int) throws(HTTPConnection.Missing) {
        try self.init(requestsMax: requestsMax, Transfer.open())
    }

    init(requestsMax: Int, _ curl: Curl) throws(HTTPConnection.Missing) {
        self.curl = curl
        guard let multi = curl.multi_init() else {
            throw HTTPConnection.Missing(description: "libcurl does not start")
        }
        self.multi = multi
        self.requestsMax = requestsMax
    }

    deinit { _ = curl.multi_cleanup(multi) }

    /// `isWanted` is asked some ten times a second, and false ends the request as one whose time is up; `done` is
    /// called once, on the thread of ``run()``, which waits meanwhile.
    package func send(
        _ request: HTTPConnection.Request, while isWanted: @escaping @Sendable () -> Bool,
        then done: @escaping @Sendable (Outcome) -> Void
    ) {
        waiting.withLock { $0.append(Job(request: request, isWanted: isWanted, done: done)) }
        _ = curl.multi_wakeup(multi)
    }

    /// Each request that is not answered is cancelled.
    package func stop() {
        isStopped.store(true, ordering: .releasing)
        _ = curl.multi_wakeup(multi)
    }

    package func run() {
        var active: [UnsafeMutableRawPointer: (transfer: Transfer, job: Job)] = [:]
        var (idle, due): ([Transfer], [Job]) = ([], [])
        var asked = ContinuousClock.now
        while !isStopped.load(ordering: .acquiring) {
            if due.isEmpty { due = waiting.withLock { exchange(&$0, with: []) }.reversed() }
            while active.count < requestsMax, let job = due.popLast() {
                guard job.isWanted() else {
                    job.done(.failure(.cancelled))
                    continue
                }
                do {
                    let transfer = try idle.popLast() ?? Transfer(curl)
                    try transfer.prepare(job.request, HTTPConnection.TLS())
                    let code = curl.multi_add_handle(multi, transfer.easy)
                    // No message would come of a handle that is not in.
                    guard code == CURLM_OK else {
                        let reason = curl.multi_strerror(code).map { String(cString: $0) } ?? "unknown"
                        throw HTTPConnection.Failure.unreachable(reason: reason)
                    }
                    active[transfer.easy] = (transfer, job)
                } catch {
                    job.done(.failure(error as? HTTPConnection.Failure ?? .unreachable(reason: "\(error)")))
                }
            }
            var (running, left): (Int32, Int32) = (0, 0)
            _ = curl.multi_perform(multi, &running)
            while let message = curl.multi_info_read(multi, &left) {
                guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
                    let (transfer, job) = active.removeValue(forKey: easy)
                else { continue }
                let code = message.pointee.data.result
                let outcome = Result { () throws(HTTPConnection.Failure) in try transfer.outcome(code) }
                end(transfer, &idle)
                job.done(outcome)
            }
            if asked.duration(to: .now) > .milliseconds(100) {
                asked = .now
                for (easy, (transfer, job)) in active where !job.isWanted() {
                    active[easy] = nil
                    end(transfer, &idle)
                    job.done(.failure(.timedOut))
                }
            }
            let mayBegin = active.count < requestsMax && (!due.isEmpty || waiting.withLock { !$0.isEmpty })
            if !mayBegin { _ = curl.multi_poll(multi, nil, 0, 100, nil) }
        }
        for (transfer, job) in active.values {
            end(transfer, &idle)
            job.done(.failure(.cancelled))
        }
        for job in due.reversed() + waiting.withLock({ exchange(&$0, with: []) }) { job.done(.failure(.cancelled)) }
    }

    private func end(_ transfer: Transfer, _ idle: inout [Transfer]) {
        _ = curl.multi_remove_handle(multi, transfer.easy)
        transfer.reset()
        idle.append(transfer)
    }
}
