internal import Segments
internal import StateJSON
internal import StateStore

/// The record that a fence has of its journal: its history, its newest writer, and the end of what that writer has
/// acknowledged.
///
/// As bytes it is twelve little-endian numbers of 64 bits: a mark, the number of this form, the sequence, the term, the
/// version, the stage, the hash of the segment, the epoch's sixteen characters, and the XXH3-128 hash of all that.
struct FenceRecord: Hashable, Sendable {
    enum Stage: UInt64 {
        /// The journal is being made: it may be missing, and has acknowledged nothing.
        case beginning = 0
        /// A writer has it open, or has ended without closing it.
        case open = 1
        case closed = 2
    }

    static let form: UInt64 = 1
    static let size = 96
    private static let mark: UInt64 = 0x3145_434E_4546_4B53  // SKFENCE1

    var epoch: Epoch
    /// The number of the writer: each opening for writing has a higher one than the one before.
    var term: UInt64
    var link: ChainLink
    var stage: Stage
    /// How many records the file has had before.
    var sequence: UInt64 = 0

    private typealias Words = (
        UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64
    )

    func withBytes<Value>(_ body: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value {
        let hash = link.hash.withBytes { ($0.word(0), $0.word(1)) }
        var text = epoch.text
        let name = text.withUTF8 { UnsafeRawBufferPointer($0).words }
        var words: Words = (
            Self.mark.littleEndian, Self.form.littleEndian, sequence.littleEndian, term.littleEndian,
            link.version.littleEndian, stage.rawValue.littleEndian, hash.0, hash.1, name.0, name.1, 0, 0
        )
        let check = withUnsafeBytes(of: words) { ContentHash(UnsafeRawBufferPointer(rebasing: $0[..<80])) }
        (words.10, words.11) = (check.high.littleEndian, check.low.littleEndian)
        return try withUnsafeBytes(of: words, body)
    }

    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.size else { return nil }
        let check = ContentHash(UnsafeRawBufferPointer(rebasing: bytes[..<80]))
        let number = { UInt64(littleEndian: bytes.word($0)) }
        guard number(10) == check.high, number(11) == check.low, number(0) == Self.mark, number(1) == Self.form,
            let stage = Stage(rawValue: number(5)), let hash = SegmentHash(bytes[48..<64]),
            let epoch = Epoch(String(decoding: bytes[64..<80], as: UTF8.self))
        else { return nil }
        self.init(
            epoch: epoch, term: number(3), link: ChainLink(version: number(4), hash: hash), stage: stage,
            sequence: number(2))
    }

    init(epoch: Epoch, term: UInt64, link: ChainLink, stage: Stage, sequence: UInt64 = 0) {
        self.epoch = epoch
        self.term = term
        self.link = link
        self.stage = stage
        self.sequence = sequence
    }
}

extension UnsafeRawBufferPointer {
    fileprivate func word(_ index: Int) -> UInt64 { loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self) }

    fileprivate var words: (UInt64, UInt64) { (word(0), word(1)) }
}
