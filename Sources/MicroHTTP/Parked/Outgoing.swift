import Glibc

/// Bytes on their way to one client, and how many of them its socket has taken.
///
/// The arrays are shared with all other connections that get the same bytes.
struct Outgoing {
    /// The result of a call of `send(by:)`.
    enum Progress {
        /// The socket has taken all bytes.
        case done
        /// The socket has no more room.
        case full
        /// The socket has taken as many bytes as one call may send, and may have more room.
        case paused
        /// The connection is broken.
        case broken
    }

    /// The result of writing to a socket.
    enum Taken {
        /// It took this many bytes.
        case bytes(Int)
        /// It has no room.
        case none
        /// It is broken.
        case broken
    }

    /// The most bytes that one call sends: about 100 microseconds of copying.
    ///
    /// A chunk may have megabytes, and a fast client makes room as fast as the loop sends. Without this limit, the loop
    /// would serve no other client before all of the chunk is sent.
    static let sendBytesMax = 256 << 10

    /// The first bytes, which are few.
    private let head: [UInt8]
    private let body: [UInt8]
    /// The last bytes, which are few.
    private var tail: [UInt8] = []
    private(set) var sentCount = 0

    /// Makes one of which nothing is sent.
    ///
    /// - Parameter head: a few bytes before the others.
    init(_ bytes: [UInt8], after head: [UInt8] = []) {
        self.head = head
        body = bytes
    }

    private var count: Int { head.count + body.count + tail.count }

    /// How many bytes the socket has not taken.
    var unsentCount: Int { count - sentCount }

    /// Counts the bytes as unread, as long as the result lives; nil for few bytes.
    func hold(in memory: MemoryBudget, for client: String) -> MemoryBudget.Holding? { memory.hold(body, for: client) }

    /// The same bytes, and a few behind them.
    func followed(by more: Outgoing) -> Outgoing {
        var all = self
        all.tail += more.head + more.body + more.tail
        return all
    }

    /// The next bytes, of one array.
    private var next: ArraySlice<UInt8> {
        if sentCount < head.count { return head[sentCount...] }
        let bodySentCount = sentCount - head.count
        return bodySentCount < body.count ? body[bodySentCount...] : tail[(bodySentCount - body.count)...]
    }

    /// Sends what is left, up to a number of bytes.
    ///
    /// - Parameter socket: takes bytes, perhaps fewer than it is given.
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

    /// Gives bytes to a socket, without blocking.
    static func send(_ bytes: UnsafeRawBufferPointer, to socket: Int32) -> Taken {
        let count = Glibc.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        if count >= 0 { return .bytes(count) }
        return errno == EAGAIN ? .none : errno == EINTR ? .bytes(0) : .broken
    }
}
