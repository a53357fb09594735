internal import Glibc
internal import StateJSON
internal import StateStore

/// The file `reducing`, mapped into memory: the kernel keeps what is stored there when the process ends.
final class MappedPage: Sendable {
    // unsafe: it only keeps the mapping, whose address never changes.
    nonisolated(unsafe) private let address: UnsafeMutableRawPointer
    /// The memory, which is valid as long as this object lives.
    var page: MarkPage { MarkPage(address) }

    /// Maps the file, and makes a missing one; without a directory the memory ends with the process.
    init(directory: String?) throws(SettingsFault) {
        let path = (directory ?? "") + "/reducing"
        var (file, sharing) = (Int32(-1), MAP_PRIVATE | Int32(MAP_ANONYMOUS))
        defer { if file >= 0 { close(file) } }
        if let directory {
            mkdir(directory, 0o700)
            (file, sharing) = (open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600), MAP_SHARED)
            guard file >= 0 else { throw Self.fault(path, errno) }
            // A store into a page without room on the disk would end the process.
            let code = posix_fallocate(file, 0, off_t(MarkPage.size))
            guard code == 0 else { throw Self.fault(path, code) }
        }
        let mapped = mmap(nil, MarkPage.size, PROT_READ | PROT_WRITE, sharing, file, 0)
        guard let mapped, mapped != MAP_FAILED else { throw Self.fault(path, errno) }
        address = mapped
    }

    deinit {
        munmap(address, MarkPage.size)
    }

    /// The identity of this boot of the machine, or zeros if the system does not say it.
    static var boot: ContentHash {
        let bytes = try? SharedFile(path: "/proc/sys/kernel/random/boot_id", name: "boot").bytes()
        return bytes.map { ContentHash(Array($0)) } ?? ContentHash(high: 0, low: 0)
    }

    private static func fault(_ path: String, _ code: Int32) -> SettingsFault {
        SettingsFault(description: "the file \(path) cannot be mapped: \(String(cString: strerror(code)))")
    }
}
