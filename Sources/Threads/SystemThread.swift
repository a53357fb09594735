internal import Glibc

/// A thread of one's own: neither Dispatch nor Synchronization offers one that stays.
///
/// It blocks all signals, so that the other threads of the process handle them. Its owner calls ``join()`` or ``detach()``, once.
package struct SystemThread: Sendable {
    /// Why there is no thread: the system has no more.
    package struct Unavailable: Error, Sendable {
        /// The code of the system: errno(3).
        package var code: Int32
    }

    private let thread: pthread_t

    /// Starts a thread that runs the body once.
    ///
    /// The thread owns what the body captures: the caller may use it again only if this initializer throws. The compiler
    /// cannot check that across the C call.
    ///
    /// - Parameter niceness: 0 to 19; of two busy threads on one processor, one at 5 has a quarter of the time (setpriority(2)).
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

    /// Waits until the thread has ended.
    package func join() {
        let result = pthread_join(thread, nil)
        precondition(result == 0, "a thread is joined once, and not by itself")
    }

    /// Lets the thread end by itself.
    package func detach() { pthread_detach(thread) }

    /// The time for which the current thread has had a processor.
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
