import CXXHash
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
        let version: ProtocolVersion
        /// Whether no request follows on the connection.
        let isLast: Bool
        /// The reusable answer, with the generation for which it counts.
        @exclusivity(unchecked) fileprivate var answer: (response: WireResponse, generation: UInt64)?
        /// The client that the head names to a server that trusts its peer, once it has been looked for.
        private var named: String??

        fileprivate init(
            key: [UInt8], request: Request, framing: BodyFraming, version: ProtocolVersion, isLast: Bool
        ) {
            self.key = key
            head = Request.Head(
                method: request.method, target: request.target, fields: request.head.list, known: request.head.known,
                isLocal: request.head.isLocal, memo: HeadMemo())
            self.framing = framing
            self.version = version
            self.isLast = isLast
        }

        /// Returns the client that the head names, for a connection of a trusted proxy.
        ///
        /// It depends on the head only, so requests with equal heads can share it; whether a peer is trusted depends on the
        /// connection.
        func namedClient(by proxies: TrustedProxies) -> String? {
            if let named { return named }
            let found = proxies.client(by: head)
            named = .some(found)
            return found
        }

        /// Returns the request with this client's address.
        func request(client: String) -> Request { Request(head, client: client) }

        /// Returns the answer of this generation, if there is one.
        func answer(of generation: UInt64) -> WireResponse? {
            guard let answer, answer.generation == generation else { return nil }
            return answer.response
        }
    }

    // Only the loop thread uses these, one after the other: a check at each access would take a hundredth of a GET.
    @exclusivity(unchecked) private var entries = [Entry?](repeating: nil, count: 8192)
    /// About how many bytes the entries occupy.
    private var cachedBytes = 0
    private static let cachedBytesMax = 32 << 20
    /// The hashes of heads that were received at least once: the cache stores a head when it is received again.
    @exclusivity(unchecked) private var seen = [UInt64](repeating: 0, count: 8192)
    /// The hash of the head that was looked for last; nil where that has been found, or is too long to be stored.
    @exclusivity(unchecked) private var hash: UInt64?
    /// The cache does not store heads with longer keys.
    private static let bytesMax = 1024
    /// The cache does not store answers with longer bodies, which could be many megabytes together.
    private static let bodyBytesMax = 16 << 10

    /// Returns the entry of the head with these bytes, if there is one.
    func entry(of connection: ClientConnection, _ head: HeadBytes) -> Entry? {
        hash = nil
        // Most connections repeat their head: to compare it with the last one needs no hash.
        if let entry = entries[connection.headSlot], head.isSpelled(entry.key) { return entry }
        guard head.bytes.count <= Self.bytesMax else { return nil }
        let hash = storekeeper_short_hash(head.bytes.baseAddress, head.bytes.count)
        guard let entry = entries[slot(of: hash)], head.isSpelled(entry.key) else {
            self.hash = hash
            return nil
        }
        connection.headSlot = slot(of: hash)
        return entry
    }

    /// Stores the parsed form of the head that ``entry(of:_:)`` has not found, if that head was received before.
    ///
    /// It counts once for each call of `entry`, so that no other head is stored in the place of that one.
    func store(
        _ head: HeadBytes, _ request: Request, _ framing: BodyFraming, _ version: ProtocolVersion, isLast: Bool
    ) -> Entry? {
        guard let hash = hash.take() else { return nil }
        let slot = slot(of: hash)
        guard seen[slot] == hash else {
            seen[slot] = hash
            return nil
        }
        let entry = Entry(key: head.key, request: request, framing: framing, version: version, isLast: isLast)
        count(head.bytes.count + 1024)
        entries[slot] = entry
        return entry
    }

    /// Stores the reusable answer to a head, unless its body is long.
    func store(_ answer: WireResponse, _ bodyCount: Int, of generation: UInt64, for entry: Entry) {
        guard bodyCount <= Self.bodyBytesMax else { return }
        count(bodyCount)
        entry.answer = (answer, generation)
    }

    /// Counts cached bytes and empties the cache when they exceed the limit.
    private func count(_ bytes: Int) {
        cachedBytes += bytes
        guard cachedBytes > Self.cachedBytesMax else { return }
        entries = [Entry?](repeating: nil, count: entries.count)
        cachedBytes = bytes
    }

    private func slot(of hash: UInt64) -> Int { Int(truncatingIfNeeded: hash) & (entries.count - 1) }
}
