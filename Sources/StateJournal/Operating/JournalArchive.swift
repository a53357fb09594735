// FoundationEssentials lacks FileHandle.
internal import Foundation
internal import Glibc
package import StateStore
internal import Synchronization

/// Its files have no name, so that nothing is left when the process ends, and the fence comes last: what was cut off is
/// no journal; any thread may use it.
package final class JournalArchive: Sendable {
    private struct File {
        let name: String
        /// Closes its descriptor with the last reference.
        let handle: FileHandle
        let size: Int
        let modified: Int64
    }

    private enum Part {
        case bytes([UInt8])
        case content(File)
    }

    package let cursor: Cursor
    private let files: [File]
    private let parts: [Part]
    private let position = Mutex((part: 0, offset: 0))

    /// Copies into a directory `.outgoing` inside, which has gone at the end, also while a server writes; O(n) in the
    /// size of the journal, and `noRoom` where less than ``bytesToSpare`` would be left.
    package init(in directory: String, of history: () throws -> any RecordedHistory) throws(JournalError) {
        let place = Self.place(in: directory)
        let source = DataDirectory(path: directory)
        let needed = (source.size(source.journal) ?? 0) + (source.size(source.journal + "-wal") ?? 0)
        if let room = source.room, room < needed + Self.bytesToSpare {
            throw JournalError(
                "a copy of the journal needs \(needed) bytes in \(directory) and has to leave \(Self.bytesToSpare); \(room) are free",
                kind: .noRoom)
        }
        // If something cannot be removed, the next copy or the next start removes it.
        defer { try? Self.removeRemains(in: directory) }
        do {
            try Self.removeRemains(in: directory)
            let history = try history()
            let copy = try history.copy(to: JournalDraft(directory: place, epoch: history.epoch))
            cursor = Cursor(copy.epoch, copy.end)
            let made = DataDirectory(path: place)
            files = try [made.journal, made.fence].map(Self.open)
        } catch {
            throw error as? JournalError ?? JournalError("\(error)")
        }
        parts =
            files.flatMap { file -> [Part] in
                let padding = [UInt8](repeating: 0, count: TarHeader.padding(behind: file.size))
                let head = TarHeader(file.name, size: file.size, modified: file.modified).bytes
                return [.bytes(head), .content(file), .bytes(padding)]
            } + [.bytes(TarHeader.trailer)]
    }

    /// A copy leaves so much free for the journal itself.
    static let bytesToSpare = 64 << 20

    private static func place(in journal: String) -> String { journal + "/.outgoing" }

    package static func removeRemains(in journal: String) throws(JournalError) {
        let directory = DataDirectory(path: place(in: journal))
        try directory.removeDraft()
        for file in [directory.journal, directory.fence, directory.lock] {
            for suffix in DataDirectory.companions + [""] { try directory.remove(file + suffix) }
        }
        guard rmdir(directory.path) == 0 || errno == ENOENT else {
            throw DataDirectory.failure("remove", directory.path)
        }
    }

    private static func open(_ path: String) throws(JournalError) -> File {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0 else {
            let error = DataDirectory.failure("read", path)
            if descriptor >= 0 { close(descriptor) }
            throw error
        }
        return File(
            name: String(path.split(separator: "/").last ?? ""),
            handle: FileHandle(fileDescriptor: descriptor, closeOnDealloc: true), size: Int(status.st_size),
            modified: Int64(status.st_mtim.tv_sec))
    }

    package var bytesCount: Int {
        files.reduce(TarHeader.trailer.count) {
            $0 + TarHeader.blockBytes + $1.size + TarHeader.padding(behind: $1.size)
        }
    }

    /// Empty at the end.
    package func next(_ count: Int) throws(JournalError) -> [UInt8] {
        try position.withLock { position throws(JournalError) in
            while position.part < parts.count {
                var bytes: [UInt8] = []
                switch parts[position.part] {
                case .bytes(let all):
                    bytes = all
                    position.part += 1
                case .content(let file):
                    bytes = try Self.read(file, from: position.offset, min(count, file.size - position.offset))
                    position.offset += bytes.count
                    if position.offset == file.size { position = (position.part + 1, 0) }
                }
                if !bytes.isEmpty { return bytes }
            }
            return []
        }
    }

    private static func read(_ file: File, from offset: Int, _ count: Int) throws(JournalError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var taken = 0
        repeat { taken = pread(file.handle.fileDescriptor, &bytes, count, offset) } while taken < 0 && errno == EINTR
        guard taken > 0 else {
            let reason = String(cString: strerror(taken < 0 ? errno : EIO))
            throw JournalError("cannot read the copy of \(file.name): \(reason)")
        }
        return Array(bytes.prefix(taken))
    }
}

/// 512 bytes in the format of POSIX.1-1988 (ustar).
struct TarHeader {
    static let blockBytes = 512

    let bytes: [UInt8]

    /// The name has at most 100 bytes of ASCII, the seconds count since 1970, and a size from 8 GiB on is written in
    /// base 256, as GNU tar and bsdtar read it.
    init(_ name: String, size: Int, modified seconds: Int64) {
        precondition(name.utf8.count <= 100, "a name in an archive has at most 100 bytes")
        var bytes = [UInt8](repeating: 0, count: Self.blockBytes)
        func put(_ text: some Sequence<UInt8>, at offset: Int) {
            for (index, byte) in text.enumerated() { bytes[offset + index] = byte }
        }
        func putOctal(_ number: Int64, at offset: Int, digits: Int) {
            for index in 0..<digits { bytes[offset + digits - 1 - index] = 0x30 + UInt8(number >> (3 * index) & 7) }
        }
        put(name.utf8, at: 0)
        putOctal(0o600, at: 100, digits: 7)
        putOctal(0, at: 108, digits: 7)
        putOctal(0, at: 116, digits: 7)
        if size < 1 << 33 {
            putOctal(Int64(size), at: 124, digits: 11)
        } else {
            bytes[124] = 0x80
            for index in 0..<8 { bytes[135 - index] = UInt8(truncatingIfNeeded: size >> (8 * index)) }
        }
        putOctal(max(0, seconds), at: 136, digits: 11)
        put("        ".utf8, at: 148)
        put("0".utf8, at: 156)
        put("ustar\u{0}00".utf8, at: 257)
        let sum = bytes.reduce(0) { $0 + Int64($1) }
        putOctal(sum, at: 148, digits: 6)
        bytes[154] = 0
        self.bytes = bytes
    }

    static let trailer = [UInt8](repeating: 0, count: 2 * blockBytes)

    static func padding(behind size: Int) -> Int { (blockBytes - size % blockBytes) % blockBytes }
}
