internal import Dispatch
internal import Synchronization

/// A value that one thread gives and another waits for, without a semaphore where it is there already.
final class Awaited<Value: Sendable>: Sendable {
    private let given = Mutex<(value: Value?, isGiven: DispatchSemaphore?)>((nil, nil))

    func take(_ value: Value) {
        let isGiven = given.withLock { given in
            given.value = value
            return given.isGiven
        }
        isGiven?.signal()
    }

    func wait() -> Value {
        let isGiven: DispatchSemaphore? = given.withLock { given in
            guard given.value == nil else { return nil }
            let isGiven = DispatchSemaphore(value: 0)
            given.isGiven = isGiven
            return isGiven
        }
        isGiven?.wait()
        guard let value = given.withLock({ $0.value }) else { preconditionFailure("a value is there once it is given") }
        return value
    }
}
