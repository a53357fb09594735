import Glibc

/// The thread of one loop.
struct LoopThread {
    private let thread: pthread_t

    /// Starts a thread that runs the body once.
    ///
    /// The thread owns what the body captures: the caller may use it again only if this initializer throws. The
    /// compiler cannot check that across the C call. The thread blocks all signals, so that the other threads of the
    /// process handle them.
    init(_ body: @escaping () -> Void) throws(ServerError) {
        let context = Unmanaged.passRetained(Body(body))  // The thread releases it, or the code below if none starts.
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

    /// Waits until the thread has ended.
    func join() {
        let result = pthread_join(thread, nil)
        precondition(result == 0, "a loop thread is joined once, and not by itself")
    }

    private final class Body {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }
}
