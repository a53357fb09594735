internal import Glibc
internal import StateJSON
internal import StateStore

/// The file `reducing` beside the journal, mapped into memory.
///
/// The kernel keeps what is stored there when the process ends, without a call at each store.
final class MappedPage: Sendable {
    // unsafe: it only keeps the mapping, whose address never changes.
    nonisolated(unsafe) private let address: UnsafeMutableRawPointer
    /// The memory, which is valid as long as this object lives.
    var page: MarkPage { MarkPage(address) }

    /// Maps the file, and makes a missing one; without a directory the memory ends with the process.
    init(directory: String?) throws(SettingsFault) {
        guard let directory else {
            let mapped = mmap(
                nil, MarkPage.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | Int32(MAP_ANONYMOUS), -1, 0)
            guard let mapped, mapped != MAP_FAILED else { throw Self.fault("reducing", errno) }
            address = mapped
            return
        }
        mkdir(directory, 0o700)
        let path = directory + "/reducing"
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Self.fault(path, errno) }
        defer { close(file) }
        // A store into a page without room on the disk would end the process.
        let code = posix_fallocate(file, 0, off_t(MarkPage.size))
        guard code == 0 else { throw Self.fault(path, code) }
        let mapped = mmap(nil, MarkPage.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
        guard let mapped, mapped != MAP_FAILED else { throw Self.fault(path, errno) }
        address = mapped
    }

    deinit {
        munmap(address, MarkPage.size)
    }

    /// The identity of this boot of the machine, or zeros if the system does not say it.
    static var boot: ContentHash {
        let file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return ContentHash(high: 0, low: 0) }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = read(file, &bytes, bytes.count)
        return ContentHash(Array(bytes.prefix(max(0, count))))
    }

    static var host: String {
        var bytes = [CChar](repeating: 0, count: 65)
        guard gethostname(&bytes, bytes.count - 1) == 0 else { return "localhost" }
        return String(decoding: bytes.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    private static func fault(_ path: String, _ code: Int32) -> SettingsFault {
        SettingsFault(description: "the file \(path) cannot be mapped: \(String(cString: strerror(code)))")
    }
}
