package import StateJSON

/// Memory that outlives the process and names what is being computed: a mapped file stays in the page cache when the
/// process ends for any reason.
package struct MarkPage {
    package struct Record: Equatable, Sendable {
        package var identity: TransactionIdentity
        /// The type of its first action, or `view`.
        package var type: String
        /// The idempotency key with its subject and line, the first ID, or the view; empty where the content identifies it.
        package var name: String
        /// The version of the state that a view was computed from; 0 for a transaction.
        package var version: Version

        package init(identity: TransactionIdentity, type: String, name: String, version: Version = 0) {
            (self.identity, self.type, self.name, self.version) = (identity, type, name, version)
        }
    }

    package static let size = 24_576
    package static let slotsMax = 48

    private static let mark: UInt64 = 0x3230_4B52_414D_4B53  // SKMARK02
    private static let bootOffset = 8
    private static let slotsOffset = 64
    private static let recordSize = 384
    // An earlier program has eight records of another kind before these.
    private static let recordsOffset = slotsOffset + slotsMax * 8 + 8 * recordSize
    private static let (kindOffset, typeOffset, nameOffset, versionOffset) = (16, 24, 152, 376)
    private static let (typeMax, nameMax) = (128, 224)

    private let base: UnsafeMutableRawPointer

    /// Takes ``size`` bytes, which are aligned to 8.
    package init(_ base: UnsafeMutableRawPointer) { self.base = base }

    /// Empties a page that is new, or of another boot of the machine: a power cut is no fault of an action.
    package func prepare(boot: ContentHash) {
        let found = (word(0), word(Self.bootOffset), word(Self.bootOffset + 8))
        guard found != (Self.mark, boot.high, boot.low) else { return }
        base.initializeMemory(as: UInt8.self, repeating: 0, count: Self.size)
        base.storeBytes(of: Self.mark, toByteOffset: 0, as: UInt64.self)
        base.storeBytes(of: boot.high, toByteOffset: Self.bootOffset, as: UInt64.self)
        base.storeBytes(of: boot.low, toByteOffset: Self.bootOffset + 8, as: UInt64.self)
    }

    package func interrupted(in slot: Int) -> Record? {
        guard word(Self.stateOffset(slot)) == 1 else { return nil }
        let offset = Self.offset(slot)
        guard let kind = TransactionIdentity.Kind(rawValue: byte(offset + Self.kindOffset)) else { return nil }
        return Record(
            identity: .init(kind, ContentHash(high: word(offset), low: word(offset + 8))),
            type: text(offset + Self.typeOffset, min(Self.typeMax, Int(byte(offset + Self.kindOffset + 1)))),
            name: text(offset + Self.nameOffset, min(Self.nameMax, Int(byte(offset + Self.kindOffset + 2)))),
            version: word(offset + Self.versionOffset))
    }

    func begin(_ record: Record, in slot: Int) {
        // Whatever ends the process between two of these stores is not what is computed.
        base.storeBytes(of: 0, toByteOffset: Self.stateOffset(slot), as: UInt64.self)
        write(record, at: Self.offset(slot))
        base.storeBytes(of: 1, toByteOffset: Self.stateOffset(slot), as: UInt64.self)
    }

    package func end(_ slot: Int) { base.storeBytes(of: 0, toByteOffset: Self.stateOffset(slot), as: UInt64.self) }

    private static func stateOffset(_ slot: Int) -> Int { slotsOffset + slot * 8 }

    private static func offset(_ slot: Int) -> Int { recordsOffset + slot * recordSize }

    private func write(_ record: Record, at offset: Int) {
        base.storeBytes(of: record.identity.hash.high, toByteOffset: offset, as: UInt64.self)
        base.storeBytes(of: record.identity.hash.low, toByteOffset: offset + 8, as: UInt64.self)
        base.storeBytes(of: record.version, toByteOffset: offset + Self.versionOffset, as: UInt64.self)
        base.storeBytes(of: record.identity.kind.rawValue, toByteOffset: offset + Self.kindOffset, as: UInt8.self)
        copy(record.type, Self.typeMax, to: offset + Self.typeOffset, count: offset + Self.kindOffset + 1)
        copy(record.name, Self.nameMax, to: offset + Self.nameOffset, count: offset + Self.kindOffset + 2)
    }

    private func copy(_ text: String, _ most: Int, to offset: Int, count place: Int) {
        let count = min(text.utf8.count, most)
        text.withBytes { if let start = $0.baseAddress { (base + offset).copyMemory(from: start, byteCount: count) } }
        base.storeBytes(of: UInt8(count), toByteOffset: place, as: UInt8.self)
    }

    private func text(_ offset: Int, _ count: Int) -> String {
        String(decoding: UnsafeRawBufferPointer(start: base + offset, count: count), as: UTF8.self)
    }

    private func word(_ offset: Int) -> UInt64 { base.load(fromByteOffset: offset, as: UInt64.self) }

    private func byte(_ offset: Int) -> UInt8 { base.load(fromByteOffset: offset, as: UInt8.self) }
}
