/// Bytes on their way to one client, and how many of them its socket has taken.
///
/// The array is shared with all other connections that get the same bytes.
struct Outgoing {
    /// What a call of `send(by:)` has achieved.
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

    /// What a socket did with bytes.
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

    private let bytes: [UInt8]
    private(set) var sentCount = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// How many bytes the socket has not taken.
    var unsentCount: Int { bytes.count - sentCount }

    /// Counts the bytes as unread, as long as the result lives; nil for few bytes.
    func hold(in memory: MemoryBudget) -> MemoryBudget.Holding? { memory.hold(bytes) }

    /// The bytes that the socket has not taken, and further ones behind them.
    func followed(by more: [UInt8]) -> Outgoing { Outgoing(Array(bytes[sentCount...]) + more) }

    /// Sends what is left, up to ``sendBytesMax`` bytes.
    ///
    /// - Parameter socket: takes bytes, perhaps fewer than it is given.
    mutating func send(by socket: (UnsafeRawBufferPointer) -> Taken) -> Progress {
        let end = min(bytes.count, sentCount + Self.sendBytesMax)
        while sentCount < end {
            let taken = bytes.withUnsafeBytes { socket(UnsafeRawBufferPointer(rebasing: $0[sentCount..<end])) }
            switch taken {
            case .bytes(let count): sentCount += count
            case .none: return .full
            case .broken: return .broken
            }
        }
        return sentCount < bytes.count ? .paused : .done
    }
}

/// The parked connections whose sending is paused, in the order of their turns.
///
/// A paused connection has no event to wait for: its socket may have room already, and the poller, edge-triggered,
/// reports only changes. The loop therefore resumes paused connections by itself, some in each iteration.
struct SendQueue {
    /// How many connections one iteration resumes: at most 8 MiB, some milliseconds.
    static let resumedMax = 32

    private var numbers: [UInt64] = []

    var isEmpty: Bool { numbers.isEmpty }

    /// Adds a connection behind all others.
    mutating func append(_ number: UInt64) { numbers.append(number) }

    /// Removes and returns the connections whose turn is in this iteration; O(n) in the number of paused connections.
    mutating func next() -> [UInt64] {
        let turn = Array(numbers.prefix(Self.resumedMax))
        numbers.removeFirst(turn.count)
        return turn
    }
}
