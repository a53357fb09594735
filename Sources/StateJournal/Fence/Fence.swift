internal import Dispatch
internal import Glibc
internal import StateJSON
internal import StateStore
internal import Synchronization

/// A WAL whose end is gone is a valid, shorter WAL, so a journal cannot tell that it is shorter than it was.
///
/// ``raise(to:)`` writes the end of the chain after the sync of an append and before its answer: to the page cache,
/// which survives the process; the disk has it at most a second later. Two slots by turns, so that a write that is cut
/// short leaves the one before. Any thread may call any method.
final class Fence: Sendable {
    enum Content: Equatable {
        case missing
        /// There is a file without a whole record.
        case damaged
        /// `isPartial` if the other slot has none.
        case record(FenceRecord, isPartial: Bool)

        func record(in directory: DataDirectory) throws(JournalError) -> FenceRecord? {
            switch self {
            case .missing: nil
            case .damaged: throw JournalError(damaged: directory.fence, "neither of its two records is whole")
            case .record(let record, _): record
            }
        }
    }

    private struct State {
        /// Nil before ``begin(_:)``.
        var file: (descriptor: Int32, record: FenceRecord)?
        var unwritten: ChainLink?
        var isSyncDue = false
        /// Another writer has taken the journal over: this one writes no record.
        var isGivenUp = false
    }

    /// A page, so that one damaged sector leaves one record.
    private static let slotSize = 4096

    typealias WriteFile = @Sendable (Int32, UnsafeRawPointer?, Int, off_t) -> Int

    private let directory: DataDirectory
    private var path: String { directory.fence }
    private let writeFile: WriteFile
    private let state = Mutex(State())
    /// Syncs the file; the queue of snapshots can be busy for longer than a second.
    private let queue = DispatchQueue(label: "storekeeper.fence", qos: .utility)

    static func read(_ directory: DataDirectory) throws(JournalError) -> Content {
        let descriptor = open(directory.fence, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            guard errno == ENOENT else { throw Self.failure("open", directory.fence) }
            return .missing
        }
        defer { Glibc.close(descriptor) }
        var records: [FenceRecord] = []
        for slot in 0..<2 {
            var count = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: FenceRecord.size) { buffer, initializedCount in
                count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(slot * slotSize))
                initializedCount = max(0, count)
            }
            guard count >= 0 else { throw Self.failure("read", directory.fence) }
            if let found = bytes.withUnsafeBytes({ FenceRecord($0) }) { records.append(found) }
        }
        // A writer that was taken over may have written once more, with its lower term.
        let newest = records.max { ($0.term, $0.sequence) < ($1.term, $1.sequence) }
        return newest.map { .record($0, isPartial: records.count < 2) } ?? .damaged
    }

    init(of directory: DataDirectory, by writeFile: @escaping WriteFile = pwrite) {
        (self.directory, self.writeFile) = (directory, writeFile)
    }

    convenience init(
        _ directory: DataDirectory, _ record: FenceRecord, by writeFile: @escaping WriteFile = pwrite
    ) throws(JournalError) {
        self.init(of: directory, by: writeFile)
        try begin(record)
    }

    /// A process that ends meanwhile leaves the fence that was there.
    func begin(_ record: FenceRecord) throws(JournalError) {
        let new = path + ".new"
        try directory.remove(new)
        let descriptor = open(new, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Self.failure("make", new) }
        do throws(JournalError) {
            Self.keepGroup(of: path, for: descriptor)
            for slot in 0..<2 { try write(record, slot: slot, descriptor) }
            guard fsync(descriptor) == 0 else { throw Self.failure("sync", new) }
            try directory.rename(new, to: path)
            try directory.sync(directory.path)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
        let old = state.withLock { exchange(&$0.file, with: (descriptor: descriptor, record: record)) }
        if let old { Glibc.close(old.descriptor) }
    }

    deinit {
        if let file = state.withLock({ $0.file }) { Glibc.close(file.descriptor) }
    }

    /// A process of another user may be the next writer, where the group may write.
    private static func keepGroup(of path: String, for descriptor: Int32) {
        var (old, new) = (stat(), stat())
        guard stat(path, &old) == 0, fstat(descriptor, &new) == 0 else { return }
        // The rights of a group are not those of another one, so a file whose group cannot be kept is for its user alone.
        guard old.st_gid == new.st_gid || fchown(descriptor, uid_t.max, old.st_gid) == 0 else { return }
        fchmod(descriptor, old.st_mode & 0o777)
    }

    /// One `pwrite` of 96 bytes, about a microsecond; after a failure, the next call tries again.
    func raise(to link: ChainLink) throws(JournalError) {
        let isFirst = try state.withLock { state throws(JournalError) in
            guard !state.isGivenUp else { return false }
            state.unwritten = link
            try write(link, .open, &state)
            state.unwritten = nil
            return !exchange(&state.isSyncDue, with: true)
        }
        guard isFirst else { return }
        queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in
            // A sync that fails is tried again after the next record; the journal itself does not depend on it.
            try? self?.sync()
        }
    }

    var unwritten: ChainLink? { state.withLock { $0.unwritten } }

    func sync() throws(JournalError) {
        let file = state.withLock { state in
            state.isSyncDue = false
            return state.file
        }
        guard let file else { return }
        guard fdatasync(file.descriptor) == 0 else { throw Self.failure("sync", path) }
    }

    func close() throws(JournalError) {
        try state.withLock { state throws(JournalError) in
            guard !state.isGivenUp, let file = state.file else { return }
            try write(state.unwritten ?? file.record.link, .closed, &state)
            state.unwritten = nil
        }
        try sync()
    }

    func giveUp() { state.withLock { $0.isGivenUp = true } }

    private static func failure(_ doing: String, _ path: String) -> JournalError {
        DataDirectory.failure("\(doing) the journal's fence", path)
    }

    /// A failed write may leave a part: the next one goes to the same slot, never to the other.
    private func write(
        _ link: ChainLink, _ stage: FenceRecord.Stage, _ state: inout State
    ) throws(JournalError) {
        guard let file = state.file else { preconditionFailure("a journal that is written to has a fence") }
        var record = file.record
        record.link = link
        record.stage = stage
        record.sequence += 1
        try write(record, slot: Int(record.sequence & 1), file.descriptor)
        state.file?.record = record
    }

    private func write(_ record: FenceRecord, slot: Int, _ descriptor: Int32) throws(JournalError) {
        let place = slot * Self.slotSize
        let isWritten = record.withBytes { Self.write($0, at: place) { writeFile(descriptor, $0, $1, $2) } }
        guard isWritten else { throw Self.failure("write", path) }
    }

    /// Where false, `errno` says why.
    static func write(
        _ bytes: UnsafeRawBufferPointer, at offset: Int, by pwrite: (UnsafeRawPointer?, Int, off_t) -> Int
    ) -> Bool {
        var written = 0
        while written < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
            let count = pwrite(rest.baseAddress, rest.count, off_t(offset + written))
            guard count > 0 else {
                if count < 0, errno == EINTR { continue }
                // A file system that takes nothing and gives no reason is full.
                if count == 0 { errno = ENOSPC }
                return false
            }
            written += count
        }
        return true
    }
}

/// Twelve little-endian numbers of 64 bits: a mark, the number of this form, the sequence, the term, the version, the
/// stage, the hash of the segment, the epoch's sixteen characters, and the XXH3-128 hash of all that.
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
    /// Each opening for writing has a higher one than the one before.
    var term: UInt64
    var link: ChainLink
    var stage: Stage
    var sequence: UInt64 = 0

    func withBytes<Value>(_ body: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value {
        let hash = link.hash.withBytes { ($0.word(0), $0.word(1)) }
        var text = epoch.text
        let name = text.withUTF8 { UnsafeRawBufferPointer($0).words }
        var words: InlineArray<12, UInt64> = [
            Self.mark.littleEndian, Self.form.littleEndian, sequence.littleEndian, term.littleEndian,
            link.version.littleEndian, stage.rawValue.littleEndian, hash.0, hash.1, name.0, name.1, 0, 0,
        ]
        let check = withUnsafeBytes(of: words) { ContentHash(UnsafeRawBufferPointer(rebasing: $0[..<80])) }
        (words[10], words[11]) = (check.high.littleEndian, check.low.littleEndian)
        return try withUnsafeBytes(of: words, body)
    }
}

extension FenceRecord {
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
}

extension UnsafeRawBufferPointer {
    fileprivate func word(_ index: Int) -> UInt64 { loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self) }

    fileprivate var words: (UInt64, UInt64) { (word(0), word(1)) }
}
