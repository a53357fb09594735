import Glibc

/// The heads that do not fit the small daemon, and the connections that move because of them.
///
/// The observer sees each head before libmicrohttpd does. Where a head is long or has many parts, the small daemon is told
/// that the input has ended and forgets the connection; the loop has a duplicate of the socket by then, hands it to the
/// large daemon, and gives it the bytes again that have been received.
struct LongHeads {
    /// A connection on its way to the large daemon.
    private struct Move {
        let descriptor: Int32
        let bytes: [UInt8]
    }

    private var moves: [Move] = []
    /// The bytes that a moved connection gets before those of its socket, by descriptor.
    private var replays: [Int32: [UInt8]] = [:]
    /// A longer head goes to the large daemon.
    private static let bytesMax = 2048
    /// A head of up to this many bytes has too few parts to be counted.
    private static let uncountedBytesMax = 320
    private static let linesMax = 40
    private static let parametersMax = 30

    var isEmpty: Bool { moves.isEmpty }

    /// Looks at received bytes, which begin or continue a head in the small daemon.
    ///
    /// - Returns: whether libmicrohttpd gets the bytes; otherwise the connection moves.
    mutating func take(_ bytes: UnsafeRawBufferPointer, of connection: ClientConnection) -> Bool {
        if connection.partialHead.isEmpty {
            // Nearly all heads end here: a GET is all of what has come, and short.
            if bytes.count <= Self.uncountedBytesMax, Self.endsHead(bytes) { return true }
            guard let fits = Self.fits(bytes) else {
                connection.partialHead = Array(bytes)[...]
                return true
            }
            return fits || !move(connection, Array(bytes))
        }
        connection.partialHead += bytes
        let fits = connection.partialHead.withUnsafeBytes { Self.fits($0) }
        guard let fits else { return true }
        let head = connection.partialHead
        connection.partialHead = []
        return fits || !move(connection, Array(head))
    }

    /// Moves a connection whose head has been received whole, behind an earlier request, and does not fit.
    ///
    /// - Returns: whether it moves.
    mutating func moveKept(_ connection: ClientConnection) -> Bool {
        guard !connection.partialHead.isEmpty, !connection.isRefused else { return false }
        let head = connection.partialHead
        guard head.withUnsafeBytes({ Self.fits($0) }) == false else { return false }
        connection.partialHead = []
        return move(connection, Array(head))
    }

    private mutating func move(_ connection: ClientConnection, _ bytes: [UInt8]) -> Bool {
        let descriptor = fcntl(connection.descriptor, F_DUPFD_CLOEXEC, 0)
        // Without a descriptor for the move, the head has to do with the memory that there is.
        guard descriptor >= 0 else { return false }
        connection.isRefused = true
        moves.append(Move(descriptor: descriptor, bytes: bytes))
        return true
    }

    /// Removes and returns the descriptors that the large daemon gets, which ``replay(on:into:)`` has bytes for.
    mutating func takeMoves() -> [Int32] {
        defer { moves = [] }
        for move in moves { replays[move.descriptor] = move.bytes }
        return moves.map(\.descriptor)
    }

    /// Copies bytes that a moved connection has received before it moved; returns how many, 0 for none.
    mutating func replay(on descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard !replays.isEmpty, let bytes = replays.removeValue(forKey: descriptor) else { return 0 }
        let count = min(buffer.count, bytes.count)
        buffer.copyBytes(from: bytes[..<count])
        if count < bytes.count { replays[descriptor] = Array(bytes[count...]) }
        return count
    }

    /// Forgets the bytes for a descriptor that is being closed.
    mutating func forget(_ descriptor: Int32) { if !replays.isEmpty { replays[descriptor] = nil } }

    // MARK: Heads

    /// Whether the first head in the bytes fits the small daemon; nil where it fits so far and has not ended.
    private static func fits(_ bytes: UnsafeRawBufferPointer) -> Bool? {
        guard let base = bytes.baseAddress else { return nil }
        let count = min(bytes.count, bytesMax)
        var (line, lines) = (0, 0)
        while line < count, let found = memchr(base + line, 0x0A, count - line) {
            let end = UnsafeRawPointer(found) - base
            // A line of CR LF alone ends the head.
            if end == line + 1, line > 0, bytes[line] == 0x0D {
                return end <= uncountedBytesMax || hasFewParameters(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
            }
            lines += 1
            if lines > linesMax { return false }
            line = end + 1
        }
        return bytes.count > bytesMax ? false : nil
    }

    private static func hasFewParameters(_ head: UnsafeRawBufferPointer) -> Bool {
        head.count { $0 == UInt8(ascii: "&") } <= parametersMax
    }

    private static func endsHead(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let end = bytes.count
        return end > 3 && bytes[end - 1] == 0x0A && bytes[end - 2] == 0x0D && bytes[end - 3] == 0x0A
            && bytes[end - 4] == 0x0D
    }
}
