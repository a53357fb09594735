internal import FoundationEssentials
internal import Glibc
internal import StateJSON
internal import StateStore
internal import Synchronization

/// A document that a server reads and commands change at the same time: a file, or a key beside a cluster's turns.
protocol SharedDocument: Sendable {
    var name: String { get }

    var path: String { get }

    /// The identity of a version of the document, or nil without a document.
    var stamp: [Int]? { get }

    /// The content is nil without a document; a fault that hides whether there is one is thrown.
    func bytes() throws(SettingsFault) -> Data?

    /// Replaces the content, while no other process does; `change` may be called again, and returns nil to leave it so.
    func change(_ change: (Data?) throws(SettingsFault) -> Data?) throws(SettingsFault)
}

extension SharedDocument {
    func decode<Content: Decodable>(_ bytes: Data, as type: Content.Type) throws(SettingsFault) -> Content {
        do throws(JSONFault) {
            return try JSON.decode(type, from: [UInt8](bytes), ignoresUnknown: true)
        } catch {
            let pointer = error.pointer.tokens.isEmpty ? "" : " at \(error.pointer)"
            let what = error.kind == .mismatch ? "has a fault\(pointer)" : "is not JSON"
            throw SettingsFault("the \(name) \(path) \(what): \(error.detail)")
        }
    }

    func encode(_ content: some Encodable) throws(SettingsFault) -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            return try encoder.encode(content) + Data("\n".utf8)
        } catch {
            throw SettingsFault("the \(name) \(path) cannot be written: \(error)")
        }
    }
}

/// A ``SharedDocument`` that is a file.
///
/// A change locks the directory (flock(2)), because it replaces the file, whose owner and mode stay; it returns when
/// the file is on the disk.
struct SharedFile: SharedDocument {
    let path: String
    let name: String
    var isSecret = false

    private static let lockWait = Duration.seconds(10)

    var stamp: [Int]? {
        var status = stat()
        guard stat(path, &status) == 0 else { return errno == ENOENT ? nil : [Int(errno)] }
        return [
            Int(status.st_ino), Int(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
            status.st_ctim.tv_sec, status.st_ctim.tv_nsec,
        ]
    }

    /// Whether it can be read more than once, as the pipe of a shell cannot.
    var isRegular: Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    func bytes() throws(SettingsFault) -> Data? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw fault("read", errno)
        }
        defer { close(file) }
        var bytes = Data()
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(file, &chunk, chunk.count)
            guard count != 0 else { return Data(JSONText.withoutByteOrderMark([UInt8](bytes))) }
            if count > 0 {
                bytes.append(contentsOf: chunk[..<count])
            } else if errno != EINTR {
                throw fault("read", errno)
            }
        }
    }

    /// A new file is for its owner alone; one that root makes belongs to the owner of the directory, who runs the server.
    func change(_ change: (Data?) throws(SettingsFault) -> Data?) throws(SettingsFault) {
        let path = target
        let parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
        mkdir(parent, 0o700)
        let directory = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw fault("changed", errno) }
        defer { close(directory) }
        try lock(directory)
        guard let bytes = try change(try self.bytes()) else { return }
        // Where a process is killed here, this file stays; each later change uses another name.
        let trial = "\(path).\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let file = open(trial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw fault("changed", errno) }
        defer { close(file) }
        guard keepOwner(of: path, in: directory, for: file), Self.write(bytes, to: file), fsync(file) == 0,
            rename(trial, path) == 0, fsync(directory) == 0
        else {
            let reason = errno
            unlink(trial)
            throw fault("changed", reason)
        }
    }

    private var target: String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private func lock(_ directory: Int32) throws(SettingsFault) {
        let end = ContinuousClock.now + Self.lockWait
        while flock(directory, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR else { throw fault("changed", errno) }
            guard ContinuousClock.now < end else {
                throw SettingsFault(
                    "the \(name) \(path) cannot be changed: another process has had the lock of its directory for \(Self.lockWait)"
                )
            }
            usleep(5000)
        }
    }

    private func keepOwner(of path: String, in directory: Int32, for file: Int32) -> Bool {
        var (old, new) = (stat(), stat())
        guard fstat(file, &new) == 0 else { return false }
        let isThere = stat(path, &old) == 0
        if !isThere {
            guard geteuid() == 0 else { return true }
            guard fstat(directory, &old) == 0 else { return false }
        }
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid), fchown(file, old.st_uid, old.st_gid) != 0 {
            return false
        }
        return !isThere || fchmod(file, old.st_mode & (isSecret ? 0o700 : 0o7777)) == 0
    }

    private static func write(_ bytes: Data, to file: Int32) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var written = 0
            while written < bytes.count {
                let count = Glibc.write(file, bytes.baseAddress?.advanced(by: written), bytes.count - written)
                guard count >= 0 || errno == EINTR else { return false }
                written += max(0, count)
            }
            return true
        }
    }

    private func fault(_ what: String, _ reason: Int32) -> SettingsFault {
        let hint =
            [EACCES, EPERM].contains(reason)
            ? "; run it as the user that may, such as `\(Self.commandLine(as: owner))`" : ""
        var fault = SettingsFault("the \(name) \(path) cannot be \(what): \(String(cString: strerror(reason)))\(hint)")
        fault.isOfDisk = [ENOSPC, EDQUOT, EIO].contains(reason)
        return fault
    }

    /// The owner of the file, or else of its directory, unless that is root, this user, or unknown.
    private var owner: uid_t? {
        var status = stat()
        let parent = URL(fileURLWithPath: path).deletingLastPathComponent().path
        guard stat(path, &status) == 0 || stat(parent, &status) == 0 else { return nil }
        return status.st_uid == 0 || status.st_uid == geteuid() ? nil : status.st_uid
    }

    private static func commandLine(as user: uid_t?) -> String {
        let words = (user.map { ["sudo", "-u", name(of: $0)] } ?? ["sudo"]) + CommandLine.arguments
        return words.map { word in
            let isPlain = word.wholeMatch(of: #/[A-Za-z0-9_\-+./:=,@%]+/#) != nil
            return isPlain ? word : "'\(word.replacing("'", with: "'\\''"))'"
        }.joined(separator: " ")
    }

    private static func name(of user: uid_t) -> String {
        getpwuid(user).flatMap { $0.pointee.pw_name }.map { String(cString: $0) } ?? "#\(user)"
    }
}

/// A file that a server reads again after each change, unless it has a fault; any thread may call any method.
final class WatchedFile<Content: Sendable>: Sendable {
    enum News {
        case content(Content)
        case fault(String)
        case shut
    }

    private struct State {
        var stamp: [Int]?
        var unreadableReason: String?
        var unreadableSince: Instant?
        var isShut = false
        var fault: String?
    }

    private let file: any SharedDocument
    private let decode: @Sendable (Data?) throws(SettingsFault) -> Content
    private let state: Mutex<State>

    init(_ file: any SharedDocument, decode: @escaping @Sendable (Data?) throws(SettingsFault) -> Content) {
        self.file = file
        self.decode = decode
        state = Mutex(State(stamp: file.stamp))
    }

    /// Why the file cannot be read; nil while it can, also where its content has a fault.
    var unreadableReason: String? { state.withLock { $0.unreadableReason } }

    var fault: String? { state.withLock { $0.unreadableReason ?? $0.fault } }

    /// Whether it could not be read for so long that what was read before does not count.
    var isShut: Bool { state.withLock { $0.isShut } }

    func news(at now: Instant = Instant(nanoseconds: 0)) -> News? {
        let stamp = file.stamp
        guard state.withLock({ $0.stamp != stamp || $0.unreadableReason != nil }) else { return nil }
        var isRead = false
        do throws(SettingsFault) {
            let bytes = try file.bytes()
            isRead = true
            let content = try decode(bytes)
            state.withLock { $0 = State(stamp: stamp) }
            return .content(content)
        } catch {
            let reason = error.description
            return state.withLock { state in
                state.stamp = stamp
                if isRead, state.unreadableReason == nil {
                    state.fault = reason
                    return .fault(reason)
                }
                let isNew = state.unreadableReason != reason
                (state.unreadableReason, state.unreadableSince) = (reason, state.unreadableSince ?? now)
                if isNew { return .fault(reason) }
                guard !state.isShut, let since = state.unreadableSince, now - since >= Authenticator.unreadableMax
                else {
                    return nil
                }
                state.isShut = true
                return .shut
            }
        }
    }
}

/// Looks at a file for a new content, as an editor saves it: in place, or as another file under its name.
struct FileWatch {
    private let file: SharedFile
    private var taken: [Int]?
    private var last: [Int]?

    init(_ path: String) {
        file = SharedFile(path: path, name: "watched file")
        taken = look
        last = taken
    }

    /// Inode, size and time of the content; nil where the file cannot be looked at.
    private var look: [Int]? { file.stamp.flatMap { $0.count > 1 ? Array($0.prefix(4)) : nil } }

    /// Whether the file is another one than at the last change, and the same as at the look before: its writer is done.
    mutating func hasChanged() -> Bool {
        let now = look
        defer { last = now }
        guard let now, now == last, now != taken else { return false }
        taken = now
        return true
    }
}
