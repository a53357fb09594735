internal import Glibc

/// A thread that stays, which neither Dispatch nor Synchronization offers, and that blocks all signals for others to
/// handle; its owner calls ``join()`` or ``detach()``, once.
package struct SystemThread: Sendable {
    package struct Unavailable: Error, Sendable {
        /// errno(3).
        package var code: Int32
    }

    private let thread: pthread_t

    /// The thread owns what the body captures: the caller may use it again only if this initializer throws, which the
    /// compiler cannot check across the C call.
    ///
    /// Of two busy threads on one processor, one at niceness 5 has a quarter of the time (setpriority(2)).
    package init(niceness: Int32 = 0, _ body: @escaping () -> Void) throws(Unavailable) {
        let body = {
            if niceness > 0 { setpriority(numericCast(PRIO_PROCESS.rawValue), 0, niceness) }
            body()
        }
        let context = Unmanaged.passRetained(Body(body))  // The thread releases it, or the code below if none starts.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, context.toOpaque())
        guard code == 0 else {
            context.release()
            throw Unavailable(code: code)
        }
        self.thread = thread
    }

    package func join() {
        let result = pthread_join(thread, nil)
        precondition(result == 0, "a thread is joined once, and not by itself")
    }

    package func detach() { pthread_detach(thread) }

    @Sendable
    package static func processorTime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    private final class Body {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }
}
