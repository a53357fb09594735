import Glibc

/// A thread for one loop.
struct LoopThread {
    private let thread: pthread_t

    /// Starts a thread that runs the body once.
    ///
    /// What the body captures belongs to the thread from then on. The C call hides that from the compiler, which would
    /// also refuse the one use that is right: cleaning up after a thread that could not be started. Signals are blocked
    /// in the thread: they are for the threads of whoever owns the process.
    init(_ body: @escaping () -> Void) throws(ServerError) {
        let context = Unmanaged.passRetained(Body(body))  // Released by the thread, or below if there is none.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, context.toOpaque())
        guard result == 0 else {
            context.release()
            throw .unavailable(reason: "pthread_create: \(ServerError.words(for: result))")
        }
        self.thread = thread
    }

    /// Waits for its end.
    func join() {
        let result = pthread_join(thread, nil)
        precondition(result == 0, "a loop thread is joined once, and not by itself")
    }

    private final class Body {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }
}
