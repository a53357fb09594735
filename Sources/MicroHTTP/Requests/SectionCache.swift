import CXXHash
import HTTPMessages
import HTTPTypes

/// A cache of parsed header sections by their bytes, for GETs whose targets differ.
///
/// A client that reads one object after the other, or follows a history by a cursor, repeats its fields and not its target,
/// so that the head cache never has its heads. A hit spares the reading of each field.
///
/// The cache is direct-mapped and fixed in size: a colliding section replaces the older one. Only the loop thread uses it.
final class SectionCache {
    /// A parsed header section.
    final class Entry {
        /// The bytes, with a byte more on a Unix socket.
        fileprivate let key: [UInt8]
        let fields: [HTTPField]
        let known: RequestFields
        let framing: BodyFraming
        /// Whether no request follows on the connection.
        let isLast: Bool
        /// What the handlers remember of the section.
        let memo = HeadMemo()

        fileprivate init(key: [UInt8], _ head: Request.Head, framing: BodyFraming, isLast: Bool) {
            self.key = key
            fields = head.list
            known = head.known
            self.framing = framing
            self.isLast = isLast
        }
    }

    @exclusivity(unchecked) private var entries = [Entry?](repeating: nil, count: 1024)
    /// The hashes of sections that were received at least once: the cache stores a section when it is received again.
    @exclusivity(unchecked) private var seen = [UInt64](repeating: 0, count: 1024)
    /// The hash of the section that ``entry(of:_:)`` was last called with.
    @exclusivity(unchecked) private var hash: UInt64 = 0
    /// The cache does not store longer sections.
    private static let bytesMax = 1024

    /// Returns the entry of the header section with these bytes, if there is one.
    func entry(of connection: ClientConnection, _ section: HeadBytes) -> Entry? {
        guard section.bytes.count < Self.bytesMax else { return nil }
        // Most connections repeat their section: to compare it with the last one needs no hash.
        if let entry = entries[connection.sectionSlot], section.isSpelled(entry.key) { return entry }
        hash = storekeeper_short_hash(section.bytes.baseAddress, section.bytes.count)
        guard let entry = entries[slot], section.isSpelled(entry.key) else { return nil }
        connection.sectionSlot = slot
        return entry
    }

    /// Stores the section that ``entry(of:_:)`` has not found, if it was received before.
    func store(_ section: HeadBytes, of head: Request.Head, _ framing: BodyFraming, isLast: Bool) {
        guard section.bytes.count < Self.bytesMax else { return }
        guard seen[slot] == hash else {
            seen[slot] = hash
            return
        }
        entries[slot] = Entry(key: section.key, head, framing: framing, isLast: isLast)
    }

    private var slot: Int { Int(truncatingIfNeeded: hash) & (entries.count - 1) }
}
