internal import Glibc

/// Standard input by lines.
struct StandardInput {
    private var buffer: [UInt8] = []
    /// The index in `buffer` after the lines that were returned.
    private var start = 0
    private var isAtEnd = false

    /// Returns the next line without its line feed, or nil at the end; the last line need not have a line feed.
    mutating func nextLine() throws -> [UInt8]? {
        var searched = start
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                defer { start = end + 1 }
                return Array(buffer[start..<end])
            }
            guard !isAtEnd else {
                defer { start = buffer.count }
                return start < buffer.count ? Array(buffer[start...]) : nil
            }
            buffer.removeSubrange(..<start)
            start = 0
            searched = buffer.count
            try fill()
        }
    }

    private mutating func fill() throws {
        let count = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1 << 18) { room in
            var count = 0
            repeat { count = read(STDIN_FILENO, room.baseAddress, room.count) } while count < 0 && errno == EINTR
            if count > 0 { buffer.append(contentsOf: UnsafeBufferPointer(rebasing: room[..<count])) }
            return count
        }
        guard count >= 0 else { throw Failure("cannot read standard input: \(String(cString: strerror(errno)))") }
        isAtEnd = count == 0
    }
}

/// Standard output with a buffer of 256 KiB.
struct StandardOutput {
    private var buffer: [UInt8] = []

    /// Appends bytes to the buffer, and writes the buffer when it is full.
    mutating func write(_ bytes: [UInt8]) throws {
        buffer.append(contentsOf: bytes)
        if buffer.count >= 1 << 18 { try flush() }
    }

    /// Writes the buffer.
    mutating func flush() throws {
        var written = 0
        while written < buffer.count {
            let count = buffer[written...].withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            guard count >= 0 || errno == EINTR else {
                throw Failure("cannot write to standard output: \(String(cString: strerror(errno)))")
            }
            written += max(count, 0)
        }
        buffer.removeAll(keepingCapacity: true)
    }
}
