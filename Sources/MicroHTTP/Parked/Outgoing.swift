import Glibc

/// The arrays are shared with all other connections that get the same bytes.
struct Outgoing {
    enum Progress {
        case done
        case full
        /// The socket has taken as many bytes as one call may send, and may have more room.
        case paused
        case broken
    }

    /// About 100 microseconds of copying: a fast client makes room as fast as the loop sends, and others would wait.
    static let sendBytesMax = 256 << 10

    private let head: [UInt8]
    private let body: [UInt8]
    private var tail: [UInt8] = []
    private(set) var sentCount = 0

    init(_ bytes: [UInt8], after head: [UInt8] = []) {
        self.head = head
        body = bytes
    }

    private var count: Int { head.count + body.count + tail.count }

    var unsentCount: Int { count - sentCount }

    func hold(in memory: MemoryBudget, for client: String) -> MemoryBudget.Holding? { memory.hold(body, for: client) }

    func followed(by more: Outgoing) -> Outgoing {
        var all = self
        all.tail += more.head + more.body + more.tail
        return all
    }

    private var next: ArraySlice<UInt8> {
        if sentCount < head.count { return head[sentCount...] }
        let bodySentCount = sentCount - head.count
        return bodySentCount < body.count ? body[bodySentCount...] : tail[(bodySentCount - body.count)...]
    }

    /// The socket returns how many bytes it has taken, or -1 for the reason in `errno`.
    mutating func send(by socket: (UnsafeRawBufferPointer) -> Int) -> Progress {
        let end = min(count, sentCount + Self.sendBytesMax)
        while sentCount < end {
            let taken = next.prefix(end - sentCount).withUnsafeBytes(socket)
            if taken >= 0 {
                sentCount += taken
            } else if errno != EINTR {
                return errno == EAGAIN ? .full : .broken
            }
        }
        return sentCount < count ? .paused : .done
    }

    static func send(_ bytes: UnsafeRawBufferPointer, to socket: Int32) -> Int {
        Glibc.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    }
}
