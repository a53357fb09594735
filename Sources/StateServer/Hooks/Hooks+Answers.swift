internal import Dispatch
internal import HTTPClient
internal import HTTPMessages
internal import Logging
internal import StateHTTP
internal import StateStore
internal import Synchronization

extension Hooks {
    func end(_ id: String, _ number: Int, _ outcome: HTTPPool.Outcome) {
        guard let (run, site) = underWay(id, number), let delivery = run.delivery else { return }
        switch outcome {
        case .success(let answer) where 200..<300 ~= answer.status:
            dispatch(answer.body, of: run, delivery, number, site)
        case .success(let answer) where answer.status == 410: pause(id, "the receiver has answered 410 (Gone)")
        case .success(let answer):
            fail(id, "the receiver has answered \(answer.status)", retryAfter: answer.retryAfter)
        case .failure(.cancelled): change(id) { $0.abandon() }
        case .failure(let failure): fail(id, failure.sentence(settings))
        }
    }

    private func dispatch(
        _ answer: [UInt8], of run: HookRun, _ delivery: HookRun.Delivery, _ number: Int, _ site: Site
    ) {
        let id = run.entry.id
        guard let commit = delivery.commit else { return finish(id, delivery, site) }
        do throws(Problem) {
            guard
                let transaction = try site.contract.transaction(
                    inAnswer: answer, of: run.view, to: commit, delivery: delivery.id)
            else { return finish(id, delivery, site) }
            let (root, count) = (commit.root ?? commit.id, transaction.items.count)
            let begun = commit.root == nil ? commit.version : nil
            let hasLeft = state.withLock {
                $0.budget.spend(count, of: root, begunAt: begun, max: settings.cascadeDepthMax)
            }
            guard hasLeft else {
                return finish(
                    id, delivery, site,
                    refused:
                        "cascade-over-budget: hooks have answered the cascade of \(root) with \(settings.cascadeDepthMax) actions, which is its budget: a hook wakes itself"
                )
            }
            site.store.enqueue(
                PendingTransaction(transaction, client: run.entry.subject) { [self] outcome in
                    queue.async {
                        let refusal = outcome.refusal
                        // The delivery comes again and is counted then, or it was counted before.
                        if refusal?.isRetried == true || outcome.isReplay {
                            self.state.withLock { $0.budget.giveBack(count, of: root) }
                        }
                        guard self.underWay(id, number) != nil else { return }
                        guard let refusal, refusal.isRetried else {
                            return self.finish(id, delivery, site, refused: refusal?.sentence)
                        }
                        self.fail(id, "the actions in the answer are not recorded: \(refusal.sentence)")
                    }
                })
            site.store.flush()
        } catch { finish(id, delivery, site, refused: "\(error.code): \(error.detail)") }
    }

    private func underWay(_ id: String, _ number: Int) -> (HookRun, Site)? {
        state.withLock { state in
            guard let run = state.runs[id], run.attempt == number, let site = state.site else { return nil }
            return (run, site)
        }
    }

    private func change(_ id: String, _ body: (inout HookRun) -> Void) {
        state.withLock { state in
            guard var run = state.runs[id] else { return }
            body(&run)
            (state.runs[id], state.mustWrite) = (run, true)
        }
    }

    private func finish(_ id: String, _ delivery: HookRun.Delivery, _ site: Site, refused: String? = nil) {
        let refused = refused.map(HookProgress.shown)
        metrics.hookDelivered(isRefused: refused != nil)
        if let refused {
            let cause = delivery.cursor.description
            logger.log(.warning, "actions of a hook refused", ["hook": id, "cause": cause, "reason": refused])
        }
        change(id) { run in
            run.finish(delivery)
            if let refused, let commit = delivery.commit {
                run.note(refused: refused, of: commit, at: delivery.cursor)
            }
        }
        step(id, site)
    }

    func fail(_ id: String, _ reason: String, retryAfter seconds: Int = 0) {
        let reason = HookProgress.shown(reason)
        metrics.hookFailed()
        var isFirst = false
        change(id) { run in
            isFirst = run.fail(
                reason, at: platform.now(), date: platform.time(), random: platform.random(0.75...1),
                retryAfter: seconds)
        }
        logger.log(isFirst ? .warning : .debug, "hook failed", ["hook": id, "reason": reason])
    }

    private func pause(_ id: String, _ reason: String) {
        fail(id, reason)
        logger.log(.warning, "hook paused", ["hook": id, "reason": reason])
        do throws(SettingsFault) {
            try file.change(id) { $0.paused = reason }
        } catch {
            logger.log(.error, "hook not paused", ["hook": id, "reason": error.description])
        }
    }
}

extension HTTPConnection.Failure {
    fileprivate func sentence(_ settings: Settings) -> String {
        switch self {
        case .cancelled: "the delivery has been ended"
        case .timedOut: "the receiver has not answered within \(settings.hookSecondsMax) s"
        case .tooLong: "the answer has more than \(settings.hookAnswerBytesMax) bytes"
        case .unreachable(let reason): "the receiver cannot be reached: \(reason)"
        case .disconnected(let reason): "the receiver has not answered: \(reason)"
        }
    }
}

extension Outcome {
    fileprivate var refusal: (isRetried: Bool, sentence: String)? {
        switch self {
        case .committed: nil
        case .wouldCommit, .nothingCommitted: (false, "there was nothing to commit")
        case .rejected(let rejection, _): (false, "\(rejection.code): \(rejection.detail)")
        case .preconditionFailed(let failure): (false, "precondition-failed: \(failure.pointer) is not as expected")
        case .keyReused: (false, "key-reused: another answer is committed")
        case .failed(let detail): (false, "internal: \(detail)")
        case .full: (true, "too many actions wait, or too many idempotency keys are kept")
        case .notRecorded, .unknown: (true, "the journal has failed")
        case .draining: (true, "the server is stopping")
        }
    }
}
