import CMicroHTTPD

/// The receiver of libmicrohttpd's own messages.
///
/// libmicrohttpd keeps the pointer for the life of its daemon, which the loop that owns this object outlives. Only the
/// loop thread uses it after the start.
final class LoopLog {
    private let write: @Sendable (String) -> Void
    /// The C structure that libmicrohttpd is given.
    let pointer: UnsafeMutablePointer<MicroHTTPDLog>

    init(_ write: @escaping @Sendable (String) -> Void) {
        self.write = write
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
        write(text)
    }
}

/// Called with a formatted line, which ends with a line feed.
private func writeLine(_ context: UnsafeMutableRawPointer?, _ line: UnsafePointer<CChar>?) {
    guard let context, let line else { return }
    Unmanaged<LoopLog>.fromOpaque(context).takeUnretainedValue().take(line)
}
