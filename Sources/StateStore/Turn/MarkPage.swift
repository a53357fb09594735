package import StateJSON

/// A page of memory that outlives the process: it names the transactions that a turn and a dry run are reducing.
///
/// A mapped file stays in the page cache when the process ends for any reason. The page has a head, a record of each
/// transaction that is being reduced, and records of suspected transactions, during which a process has ended once.
package struct MarkPage {
    /// What reduces a transaction: a turn, or the thread of dry runs beside it.
    package enum Work: CaseIterable, Sendable {
        case turn, dryRun

        fileprivate var stateOffset: Int { self == .turn ? 24 : 32 }
        /// The place of the record, before or behind those of the suspected ones.
        fileprivate var place: Int { self == .turn ? 0 : MarkPage.suspectedMax + 1 }
    }

    /// A transaction, as far as the page has room for it.
    package struct Record: Equatable, Sendable {
        package var identity: TransactionIdentity
        /// The type of its first action.
        package var type: String
        /// The idempotency key with its subject and line, or the first ID; empty where the content identifies it.
        package var name: String
    }

    /// How many bytes the page has.
    package static let size = 4096
    /// How many suspected transactions it has room for; the oldest makes way for another one.
    package static let suspectedMax = 8

    private static let mark: UInt64 = 0x3130_4B52_414D_4B53  // SKMARK01
    private static let bootOffset = 8
    private static let recordsOffset = 64
    private static let recordSize = 384
    private static let (kindOffset, typeOffset, nameOffset) = (16, 24, 152)
    private static let (typeMax, nameMax) = (128, 224)

    private let base: UnsafeMutableRawPointer

    /// Takes ``size`` bytes, which are aligned to 8.
    package init(_ base: UnsafeMutableRawPointer) { self.base = base }

    /// Empties a page that is new, or of another boot of the machine: a power cut is no fault of an action.
    package func prepare(boot: ContentHash) {
        let found = (word(0), word(Self.bootOffset), word(Self.bootOffset + 8))
        guard found != (Self.mark, boot.high, boot.low) else { return }
        base.initializeMemory(as: UInt8.self, repeating: 0, count: Self.size)
        store(Self.mark, 0)
        store(boot.high, Self.bootOffset)
        store(boot.low, Self.bootOffset + 8)
    }

    /// The transaction that was being reduced when the process ended; nil where there was none.
    package func interrupted(in work: Work) -> Record? { word(work.stateOffset) == 1 ? record(work.place) : nil }

    /// The suspected transactions by their places, from 1 on.
    package var suspected: [(place: Int, record: Record)] {
        (1...Self.suspectedMax).compactMap { place in record(place).map { (place, $0) } }
    }

    /// Notes a transaction before it is reduced.
    func begin(_ identity: TransactionIdentity, type: String, name: String, in work: Work) {
        // Whatever ends the process between two of these stores is not the action.
        store(0, work.stateOffset)
        write(identity, type: type, name: name, to: work.place)
        store(1, work.stateOffset)
    }

    /// Notes that no transaction is being reduced.
    package func end(_ work: Work) { store(0, work.stateOffset) }

    /// Adds a suspected transaction, in place of the oldest where there is no room.
    package func addSuspected(_ record: Record) {
        var records = suspected.map(\.record)
        if records.count == Self.suspectedMax { records.removeFirst() }
        records.append(record)
        for place in 1...Self.suspectedMax { removeSuspected(at: place) }
        for (index, record) in records.enumerated() {
            write(record.identity, type: record.type, name: record.name, to: index + 1)
        }
    }

    /// Removes a suspected transaction.
    package func removeSuspected(at place: Int) {
        base.storeBytes(of: 0, toByteOffset: Self.offset(place) + Self.kindOffset, as: UInt8.self)
    }

    private static func offset(_ place: Int) -> Int { recordsOffset + place * recordSize }

    private func write(_ identity: TransactionIdentity, type: String, name: String, to place: Int) {
        let offset = Self.offset(place)
        store(identity.hash.high, offset)
        store(identity.hash.low, offset + 8)
        base.storeBytes(of: identity.kind.rawValue, toByteOffset: offset + Self.kindOffset, as: UInt8.self)
        copy(type, Self.typeMax, to: offset + Self.typeOffset, count: offset + Self.kindOffset + 1)
        copy(name, Self.nameMax, to: offset + Self.nameOffset, count: offset + Self.kindOffset + 2)
    }

    private func record(_ place: Int) -> Record? {
        let offset = Self.offset(place)
        guard let kind = TransactionIdentity.Kind(rawValue: byte(offset + Self.kindOffset)) else { return nil }
        return Record(
            identity: .init(kind, ContentHash(high: word(offset), low: word(offset + 8))),
            type: text(offset + Self.typeOffset, min(Self.typeMax, Int(byte(offset + Self.kindOffset + 1)))),
            name: text(offset + Self.nameOffset, min(Self.nameMax, Int(byte(offset + Self.kindOffset + 2)))))
    }

    private func copy(_ text: String, _ most: Int, to offset: Int, count place: Int) {
        var text = text
        let count = text.withUTF8 { bytes in
            let count = min(bytes.count, most)
            UnsafeMutableRawBufferPointer(start: base + offset, count: count)
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[..<count]))
            return UInt8(count)
        }
        base.storeBytes(of: count, toByteOffset: place, as: UInt8.self)
    }

    private func text(_ offset: Int, _ count: Int) -> String {
        String(decoding: UnsafeRawBufferPointer(start: base + offset, count: count), as: UTF8.self)
    }

    private func word(_ offset: Int) -> UInt64 { base.load(fromByteOffset: offset, as: UInt64.self) }

    private func byte(_ offset: Int) -> UInt8 { base.load(fromByteOffset: offset, as: UInt8.self) }

    private func store(_ value: UInt64, _ offset: Int) {
        base.storeBytes(of: value, toByteOffset: offset, as: UInt64.self)
    }
}
