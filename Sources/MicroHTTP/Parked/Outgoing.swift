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

    enum Taken {
        case bytes(Int)
        case none
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

    mutating func send(
        atMost bytesMax: Int = sendBytesMax, by socket: (UnsafeRawBufferPointer) -> Taken
    ) -> Progress {
        let end = min(count, sentCount + min(bytesMax, unsentCount))
        while sentCount < end {
            let taken = next.prefix(end - sentCount).withUnsafeBytes(socket)
            switch taken {
            case .bytes(let count): sentCount += count
            case .none: return .full
            case .broken: return .broken
            }
        }
        return sentCount < count ? .paused : .done
    }

    static func send(_ bytes: UnsafeRawBufferPointer, to socket: Int32) -> Taken {
        let count = Glibc.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        if count >= 0 { return .bytes(count) }
        return errno == EAGAIN ? .none : errno == EINTR ? .bytes(0) : .broken
    }
}
