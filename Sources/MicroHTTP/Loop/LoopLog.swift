import CMicroHTTPD

/// The receiver of libmicrohttpd's own messages.
///
/// libmicrohttpd keeps the pointer for the life of its daemon, which the loop that owns this object outlives. Only the
/// loop thread uses it after the start.
final class LoopLog {
    private let context: LoopContext
    let pointer: UnsafeMutablePointer<MicroHTTPDLog>

    init(_ context: LoopContext) {
        self.context = context
        pointer = .allocate(capacity: 1)
        pointer.initialize(to: MicroHTTPDLog(write: writeLine, context: nil))
        pointer.pointee.context = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        pointer.deinitialize(count: 1)
        pointer.deallocate()
    }

    fileprivate func take(_ line: UnsafePointer<CChar>) {
        var text = String(cString: line)
        if text.hasSuffix("\n") { text.removeLast() }
        // libmicrohttpd tells of a request that it refuses by itself in no other way.
        if text.hasPrefix("Error processing request") { context.statistics.refused += 1 }
        context.handlers.debugLog(text)
    }
}

private func writeLine(_ context: UnsafeMutableRawPointer?, _ line: UnsafePointer<CChar>?) {
    guard let context, let line else { return }
    Unmanaged<LoopLog>.fromOpaque(context).takeUnretainedValue().take(line)
}
