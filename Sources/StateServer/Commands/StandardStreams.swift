internal import Glibc

struct StandardInput {
    private let file: UnsafeMutablePointer<FILE>? = fdopen(STDIN_FILENO, "r")

    func nextLine() throws -> [UInt8]? {
        var line: UnsafeMutablePointer<CChar>?
        var size = 0
        defer { free(line) }
        let count = file.map { getline(&line, &size, $0) } ?? -1
        guard count >= 0 else {
            if let file, feof(file) != 0 { return nil }
            throw Failure("cannot read standard input: \(String(cString: strerror(errno)))")
        }
        let bytes = UnsafeRawBufferPointer(start: line, count: count)
        return Array(bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...])
    }
}

struct StandardOutput {
    private let file: UnsafeMutablePointer<FILE>? = fdopen(STDOUT_FILENO, "w")

    init() { if let file { setvbuf(file, nil, _IOFBF, 1 << 18) } }

    func write(_ bytes: [UInt8]) throws { try check(file.map { fwrite(bytes, 1, bytes.count, $0) } == bytes.count) }

    func flush() throws { try check(file.map(fflush) == 0) }

    private func check(_ isWritten: Bool) throws {
        guard isWritten else { throw Failure("cannot write to standard output: \(String(cString: strerror(errno)))") }
    }
}
