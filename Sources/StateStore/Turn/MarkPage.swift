package import StateJSON

/// Memory that outlives the process: it names the transactions and the views that are being computed.
///
/// A mapped file stays in the page cache when the process ends for any reason. The page has a head, a record for each of the
/// threads that compute, and records of what is suspected, during which a process has ended once.
package struct MarkPage {
    /// A transaction or a view, as far as the page has room for it.
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

    /// How many bytes the page has.
    package static let size = 24_576
    /// How many suspected records it has room for; the oldest makes way for another one.
    package static let suspectedMax = 8
    /// How many threads can record at the same time what they compute.
    package static let slotsMax = 48

    private static let mark: UInt64 = 0x3230_4B52_414D_4B53  // SKMARK02
    private static let bootOffset = 8
    private static let slotsOffset = 64
    private static let recordsOffset = slotsOffset + slotsMax * 8
    private static let recordSize = 384
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

    /// The record of what a thread was computing when the process ended, or nil.
    package func interrupted(in slot: Int) -> Record? {
        word(Self.stateOffset(slot)) == 1 ? record(Self.place(ofSlot: slot)) : nil
    }

    /// The suspected records by their places, from 1 on.
    package var suspected: [(place: Int, record: Record)] {
        (1...Self.suspectedMax).compactMap { place in record(place).map { (place, $0) } }
    }

    func begin(_ record: Record, in slot: Int) {
        // Whatever ends the process between two of these stores is not what is computed.
        base.storeBytes(of: 0, toByteOffset: Self.stateOffset(slot), as: UInt64.self)
        write(record, to: Self.place(ofSlot: slot))
        base.storeBytes(of: 1, toByteOffset: Self.stateOffset(slot), as: UInt64.self)
    }

    /// Records that nothing is being computed.
    package func end(_ slot: Int) { base.storeBytes(of: 0, toByteOffset: Self.stateOffset(slot), as: UInt64.self) }

    private static func stateOffset(_ slot: Int) -> Int { slotsOffset + slot * 8 }

    private static func place(ofSlot slot: Int) -> Int { suspectedMax + 1 + slot }

    /// Adds a suspected record, in place of the oldest where there is no room.
    package func addSuspected(_ record: Record) {
        var records = suspected.map(\.record)
        if records.count == Self.suspectedMax { records.removeFirst() }
        records.append(record)
        for place in 1...Self.suspectedMax { removeSuspected(at: place) }
        for (index, record) in records.enumerated() { write(record, to: index + 1) }
    }

    /// Removes a suspected record.
    package func removeSuspected(at place: Int) {
        base.storeBytes(of: 0, toByteOffset: Self.offset(place) + Self.kindOffset, as: UInt8.self)
    }

    private static func offset(_ place: Int) -> Int { recordsOffset + (place - 1) * recordSize }

    private func write(_ record: Record, to place: Int) {
        let offset = Self.offset(place)
        base.storeBytes(of: record.identity.hash.high, toByteOffset: offset, as: UInt64.self)
        base.storeBytes(of: record.identity.hash.low, toByteOffset: offset + 8, as: UInt64.self)
        base.storeBytes(of: record.version, toByteOffset: offset + Self.versionOffset, as: UInt64.self)
        base.storeBytes(of: record.identity.kind.rawValue, toByteOffset: offset + Self.kindOffset, as: UInt8.self)
        copy(record.type, Self.typeMax, to: offset + Self.typeOffset, count: offset + Self.kindOffset + 1)
        copy(record.name, Self.nameMax, to: offset + Self.nameOffset, count: offset + Self.kindOffset + 2)
    }

    private func record(_ place: Int) -> Record? {
        let offset = Self.offset(place)
        guard let kind = TransactionIdentity.Kind(rawValue: byte(offset + Self.kindOffset)) else { return nil }
        return Record(
            identity: .init(kind, ContentHash(high: word(offset), low: word(offset + 8))),
            type: text(offset + Self.typeOffset, min(Self.typeMax, Int(byte(offset + Self.kindOffset + 1)))),
            name: text(offset + Self.nameOffset, min(Self.nameMax, Int(byte(offset + Self.kindOffset + 2)))),
            version: word(offset + Self.versionOffset))
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
