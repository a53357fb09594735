import Glibc

/// The time for which a function has had a processor on this thread: a busy machine does not change it.
public func processorTime(of body: () throws -> Void) rethrows -> Duration {
    func now() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
    let begun = now()
    try body()
    return now() - begun
}
