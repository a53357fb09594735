import Glibc

/// The bytes that identify a head, or the part of one behind its target: as they were received.
///
/// Those of Unix sockets have keys of their own, because any `Host` is allowed in them, and their answers must not be those
/// of other connections.
struct HeadBytes {
    let bytes: UnsafeRawBufferPointer
    private let isLocal: Bool

    init(_ bytes: UnsafeRawBufferPointer, of connection: ClientConnection) {
        self.bytes = bytes
        isLocal = connection.isLocal
    }

    /// A key of them: the bytes, and one more on a Unix socket.
    ///
    /// The key of another head ends with an empty line.
    var key: [UInt8] { Array(bytes) + (isLocal ? [1] : []) }

    /// Whether a key is ``key``.
    func isSpelled(_ key: [UInt8]) -> Bool {
        guard key.count == bytes.count + (isLocal ? 1 : 0), !isLocal || key.last == 1 else { return false }
        guard let base = bytes.baseAddress else { return true }
        return key.withUnsafeBytes { $0.baseAddress.map { memcmp(base, $0, bytes.count) == 0 } ?? false }
    }
}
