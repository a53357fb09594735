import CXXHash
import Glibc
import HTTPMessages
import HTTPTypes

final class ParsedHead {
    let head: Request.Head
    let version: ProtocolVersion
    let isLast: Bool
    let isChunked: Bool
    let methodIndex: UInt8
    private var answer: (response: WireResponse, generation: UInt64, own: OwnFields?)?
    private static let bodyBytesMax = 4 << 10

    init(_ head: Request.Head, _ version: ProtocolVersion) {
        self.head = head
        self.version = version
        methodIndex = Answers.index(of: head.method)
        isChunked = head.list.contains { $0.name == .transferEncoding }
        isLast = head.endsConnection(isVersion10: version == .http10)
    }

    init(_ line: RequestLine, target: String, restOf other: ParsedHead) {
        head = Request.Head(method: line.method, target: target, fieldsOf: other.head)
        (version, isLast, isChunked) = (other.version, other.isLast, other.isChunked)
        methodIndex = Answers.index(of: head.method)
    }

    func answer(of generation: UInt64, to own: OwnFields?) -> WireResponse? {
        guard let answer, answer.generation == generation, answer.own == own else { return nil }
        return answer.response
    }

    func keep(_ answer: WireResponse, of generation: UInt64, to own: OwnFields?) {
        if answer.bodyCount <= Self.bodyBytesMax { self.answer = (answer, generation, own) }
    }
}

/// A second key is the bytes from the version on, with which no head begins: clients repeat what follows the target; a
/// colliding head replaces the older one, and all takes some 30 MB at most.
struct HeadCache {
    /// On a Unix socket any `Host` is allowed, and the answers must not be those of other connections.
    struct Key {
        fileprivate let bytes: UnsafeRawBufferPointer
        fileprivate let isLocal: Bool
        fileprivate let hash: UInt64

        init?(_ bytes: UnsafeRawBufferPointer, isLocal: Bool) {
            guard bytes.count <= HeadCache.bytesMax else { return nil }
            self.bytes = bytes
            self.isLocal = isLocal
            hash = storekeeper_short_hash(bytes.baseAddress, bytes.count)
        }
    }

    fileprivate struct Entry {
        let bytes: [UInt8]
        let isLocal: Bool
        let head: ParsedHead
    }

    private var entries = [Entry?](repeating: nil, count: 4096)
    /// Heads that came once: the cache takes a head when it comes again.
    private var seen = [UInt64](repeating: 0, count: 4096)
    private static let bytesMax = 1024

    private func slot(of key: Key) -> Int { Int(truncatingIfNeeded: key.hash) & (entries.count - 1) }

    subscript(key: Key) -> ParsedHead? {
        guard let entry = entries[slot(of: key)], entry.isLocal == key.isLocal, entry.bytes.count == key.bytes.count,
            let bytes = key.bytes.baseAddress, memcmp(entry.bytes, bytes, key.bytes.count) == 0
        else { return nil }
        return entry.head
    }

    mutating func insert(_ head: ParsedHead, for key: Key) {
        let slot = slot(of: key)
        guard seen[slot] == key.hash else {
            seen[slot] = key.hash
            return
        }
        entries[slot] = Entry(bytes: Array(key.bytes), isLocal: key.isLocal, head: head)
    }
}

extension Request.Head {
    /// RFC 9112, section 9.3.
    fileprivate func endsConnection(isVersion10: Bool) -> Bool {
        let options = self[values: RequestField.connection].flatMap { value in
            value.split(separator: ",").map { $0.trimmingSpaces().lowercased() }
        }
        return options.contains("close") || isVersion10 && !options.contains("keep-alive")
    }
}
