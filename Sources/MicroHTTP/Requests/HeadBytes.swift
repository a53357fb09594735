import CMicroHTTPD
import Glibc

/// The bytes that identify a head, in libmicrohttpd's memory.
///
/// They are those that libmicrohttpd leaves after parsing, with NULs at the ends of names and values at the same places for
/// the same head, and the target as received. Heads of Unix sockets have keys of their own, because any `Host` is allowed in
/// them, and their answers must not be those of other connections.
struct HeadBytes {
    /// The method with the NUL behind it, which separates it from the target.
    private let method: UnsafeRawBufferPointer
    private let target: UnsafeRawBufferPointer
    /// The version and all fields: libmicrohttpd has replaced the space before the version by a NUL, which is left out.
    let section: UnsafeRawBufferPointer
    private let isLocal: Bool

    /// Makes the bytes of a connection's current head; nil where libmicrohttpd has not left them in one piece.
    ///
    /// - Parameters:
    ///   - connection: the connection, with the target as received; libmicrohttpd has decoded its own copy (Libmicrohttpd
    ///     page, 19).
    ///   - version: the version, which begins the part of the head after the target.
    init?(of connection: ClientConnection, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>) {
        let end = UnsafePointer(method + Int(microhttpd_head_size(connection.handle)))
        guard version > method, version < end else { return nil }
        self.method = UnsafeRawBufferPointer(start: method, count: strlen(method) + 1)
        target = connection.target.bytes
        section = UnsafeRawBufferPointer(start: version, count: end - version)
        isLocal = connection.isLocal
    }

    /// How long a key of them is.
    var count: Int { method.count + target.count + section.count + (isLocal ? 1 : 0) }

    /// Writes a key of them to the beginning of a buffer of at least ``count`` bytes, and returns how many bytes.
    func write(to buffer: UnsafeMutableRawBufferPointer) -> Int {
        buffer.copyMemory(from: method)
        UnsafeMutableRawBufferPointer(rebasing: buffer[method.count...]).copyMemory(from: target)
        UnsafeMutableRawBufferPointer(rebasing: buffer[(method.count + target.count)...]).copyMemory(from: section)
        // The key of another head ends with the bytes of the empty line.
        if isLocal { buffer[count - 1] = 1 }
        return count
    }

    /// Whether a key is the one that ``write(to:)`` makes.
    func isSpelled(_ key: [UInt8]) -> Bool {
        guard key.count == count, !isLocal || key.last == 1 else { return false }
        return key.withUnsafeBytes { key in
            method.isAt(0, of: key) && target.isAt(method.count, of: key)
                && section.isAt(method.count + target.count, of: key)
        }
    }

    /// A key of the version and the fields.
    var sectionKey: [UInt8] { Array(section) + (isLocal ? [1] : []) }

    /// Whether a key is ``sectionKey``.
    func hasSection(_ key: [UInt8]) -> Bool {
        guard key.count == section.count + (isLocal ? 1 : 0), !isLocal || key.last == 1 else { return false }
        return key.withUnsafeBytes { section.isAt(0, of: $0) }
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these bytes stand at a place of longer ones.
    fileprivate func isAt(_ place: Int, of bytes: UnsafeRawBufferPointer) -> Bool {
        guard let own = baseAddress, let other = bytes.baseAddress else { return isEmpty }
        return memcmp(own, other + place, count) == 0
    }
}
