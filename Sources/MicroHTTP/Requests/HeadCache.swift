import CMicroHTTPD
import CXXHash
import Glibc
import HTTPMessages

/// A cache of parsed request heads by their bytes, with the reusable answers to them.
///
/// A client tends to repeat its head: a client that polls always, a client that writes as long as its bodies have one
/// length. A hit costs a hash and a comparison of the bytes instead of the parsing of each field; within one generation
/// it also finds the answer.
///
/// The cache is direct-mapped and fixed in size: a colliding head replaces the older one. Only the loop thread uses it.
final class HeadCache {
    /// A parsed head.
    final class Entry {
        fileprivate let key: [UInt8]
        let head: Request.Head
        let framing: BodyFraming
        /// Whether no request follows on the connection.
        let isLast: Bool
        /// The reusable answer, with the generation for which it counts.
        @exclusivity(unchecked) fileprivate var answer: (prepared: PreparedResponse, generation: UInt64)?
        /// The client that the head names to a server that trusts its peer, once it has been looked for.
        private var named: String??

        fileprivate init(key: [UInt8], request: Request, framing: BodyFraming, isLast: Bool) {
            self.key = key
            head = Request.Head(
                method: request.method, target: request.target, fields: request.fields, known: request.head.known,
                isLocal: request.head.isLocal, memo: HeadMemo())
            self.framing = framing
            self.isLast = isLast
        }

        /// Returns the client that the head names, for a connection of a trusted proxy.
        ///
        /// It depends on the head only, so requests with equal heads can share it; whether a peer is trusted depends on the
        /// connection.
        func namedClient(by proxies: TrustedProxies) -> String? {
            if let named { return named }
            let found = proxies.client(by: head.fields)
            named = .some(found)
            return found
        }

        /// Returns the request with this client's address.
        func request(client: String) -> Request { Request(head, client: client) }

        /// Returns the answer of this generation, if there is one.
        func answer(of generation: UInt64) -> PreparedResponse? {
            guard let answer, answer.generation == generation else { return nil }
            return answer.prepared
        }
    }

    // Only the loop thread uses these, one after the other: a check at each access would take a hundredth of a GET.
    @exclusivity(unchecked) private var entries = [Entry?](repeating: nil, count: 8192)
    /// About how many bytes the entries occupy.
    private var cachedBytes = 0
    private static let cachedBytesMax = 32 << 20
    /// The hashes of heads that were received at least once: the cache stores a head when it is received again.
    @exclusivity(unchecked) private var seen = [UInt64](repeating: 0, count: 8192)
    @exclusivity(unchecked) private var key: [UInt8] = []
    @exclusivity(unchecked) private var hash: UInt64 = 0
    /// The cache does not store longer heads.
    private static let bytesMax = 1024
    /// The cache does not store answers with longer bodies, which could be many megabytes together.
    private static let bodyBytesMax = 16 << 10

    /// Returns the entry of the head with these bytes, if there is one.
    ///
    /// - Parameters:
    ///   - connection: the connection, with the target as received; libmicrohttpd has decoded its own copy (Libmicrohttpd
    ///     page, 19).
    ///   - version: the version, which begins the part of the head after the target.
    func entry(
        of connection: ClientConnection, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>
    ) -> Entry? {
        guard let head = HeadBytes(of: connection, method: method, version: version) else {
            key.removeAll(keepingCapacity: true)
            return nil
        }
        // Most connections repeat their head: to compare it with the last one needs no key.
        if let entry = entries[connection.headSlot], head.isSpelled(entry.key), hasFields(of: entry, connection) {
            return entry
        }
        guard fillKey(head) else { return nil }
        guard let entry = entries[slot], entry.key == key, hasFields(of: entry, connection) else { return nil }
        connection.headSlot = slot
        return entry
    }

    /// Whether the current head of a connection has as many fields as an entry with the same bytes.
    ///
    /// A NUL in a head looks like an end that libmicrohttpd has marked, but it makes fewer lines and so fewer fields.
    private func hasFields(of entry: Entry, _ connection: ClientConnection) -> Bool {
        RequestReader.fieldsCount(of: connection.handle) == entry.head.fields.count
    }

    /// Stores the parsed form of the head that `entry` was last called with, if that head was received before.
    func store(_ request: Request, _ framing: BodyFraming, isLast: Bool) -> Entry? {
        guard !key.isEmpty else { return nil }
        guard seen[slot] == hash else {
            seen[slot] = hash
            return nil
        }
        let entry = Entry(key: key, request: request, framing: framing, isLast: isLast)
        count(key.count + 1024)
        entries[slot] = entry
        return entry
    }

    /// Stores the reusable answer to a head, unless its body is long.
    func store(_ prepared: PreparedResponse, _ bodyCount: Int, of generation: UInt64, for entry: Entry) {
        guard bodyCount <= Self.bodyBytesMax else { return }
        count(bodyCount)
        entry.answer = (prepared, generation)
    }

    /// Counts cached bytes and empties the cache when they exceed the limit.
    private func count(_ bytes: Int) {
        cachedBytes += bytes
        guard cachedBytes > Self.cachedBytesMax else { return }
        entries = [Entry?](repeating: nil, count: entries.count)
        cachedBytes = bytes
    }

    private var slot: Int { Int(truncatingIfNeeded: hash) & (entries.count - 1) }

    /// Fills `key` and `hash`; returns false for a head that the cache does not store.
    private func fillKey(_ head: HeadBytes) -> Bool {
        key.removeAll(keepingCapacity: true)
        guard head.count <= Self.bytesMax else { return false }
        head.fill(&key)
        hash = key.withUnsafeBytes { storekeeper_short_hash($0.baseAddress, $0.count) }
        return true
    }
}

/// The bytes that identify a head, in libmicrohttpd's memory.
///
/// They are those that libmicrohttpd leaves after parsing, with NULs at the ends of names and values at the same places for
/// the same head, and the target as received. Heads of Unix sockets have keys of their own, because any `Host` is allowed in
/// them, and their answers must not be those of other connections.
private struct HeadBytes {
    /// The method with the NUL behind it, which separates it from the target.
    private let method: UnsafeRawBufferPointer
    private let target: [UInt8]
    /// The version and all fields: libmicrohttpd has replaced the space before the version by a NUL, which is left out.
    private let rest: UnsafeRawBufferPointer
    private let isLocal: Bool

    /// Makes the bytes of a connection's current head; nil where libmicrohttpd has not left them in one piece.
    init?(of connection: ClientConnection, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>) {
        let end = UnsafePointer(method + Int(microhttpd_head_size(connection.handle)))
        guard version > method, version < end else { return nil }
        self.method = UnsafeRawBufferPointer(start: method, count: strlen(method) + 1)
        target = connection.target.bytes
        rest = UnsafeRawBufferPointer(start: version, count: end - version)
        isLocal = connection.isLocal
    }

    /// How long a key of them is.
    var count: Int { method.count + target.count + rest.count + (isLocal ? 1 : 0) }

    /// Makes a key of them.
    func fill(_ key: inout [UInt8]) {
        key.append(contentsOf: method)
        key.append(contentsOf: target)
        key.append(contentsOf: rest)
        // The key of another head ends with the bytes of the empty line.
        if isLocal { key.append(1) }
    }

    /// Whether a key is the one that ``fill(_:)`` makes.
    func isSpelled(_ key: [UInt8]) -> Bool {
        guard key.count == count, !isLocal || key.last == 1 else { return false }
        return key.withUnsafeBytes { key in
            target.withUnsafeBytes { target in
                method.isAt(0, of: key) && target.isAt(method.count, of: key)
                    && rest.isAt(method.count + target.count, of: key)
            }
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these bytes stand at a place of longer ones.
    fileprivate func isAt(_ place: Int, of bytes: UnsafeRawBufferPointer) -> Bool {
        guard let own = baseAddress, let other = bytes.baseAddress else { return isEmpty }
        return memcmp(own, other + place, count) == 0
    }
}
