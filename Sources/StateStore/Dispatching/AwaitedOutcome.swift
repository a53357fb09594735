internal import Dispatch
internal import Synchronization

/// The outcome of a transaction whose caller waits for it.
///
/// One thread gives it, another may wait. Where it is there before the caller waits, as in a store without a journal, no
/// semaphore is made.
final class AwaitedOutcome: Sendable {
    private let given = Mutex<(outcome: Outcome?, isGiven: DispatchSemaphore?)>((nil, nil))

    func take(_ outcome: Outcome) {
        let isGiven = given.withLock { given in
            given.outcome = outcome
            return given.isGiven
        }
        isGiven?.signal()
    }

    func wait() -> Outcome {
        let isGiven: DispatchSemaphore? = given.withLock { given in
            guard given.outcome == nil else { return nil }
            let isGiven = DispatchSemaphore(value: 0)
            given.isGiven = isGiven
            return isGiven
        }
        isGiven?.wait()
        return given.withLock { $0.outcome ?? .draining }
    }
}
