/// The head of a file in a tar archive: 512 bytes in the format of POSIX.1-1988 (ustar).
struct TarHeader {
    static let blockBytes = 512

    let bytes: [UInt8]

    /// Makes the head of a file that only its owner can read and write.
    ///
    /// - Parameters:
    ///   - name: at most 100 bytes of ASCII.
    ///   - size: in bytes; from 8 GiB on it is written in base 256, as GNU tar and bsdtar read it.
    ///   - seconds: the time of the last change, since 1970.
    init(_ name: String, size: Int, modified seconds: Int64) {
        precondition(name.utf8.count <= 100, "a name in an archive has at most 100 bytes")
        var bytes = [UInt8](repeating: 0, count: Self.blockBytes)
        func put(_ text: some Sequence<UInt8>, at offset: Int) {
            for (index, byte) in text.enumerated() { bytes[offset + index] = byte }
        }
        /// A number in octal digits with zeros before them, and a NUL behind them.
        func putOctal(_ number: Int64, at offset: Int, digits: Int) {
            let text = String(number, radix: 8)
            put((String(repeating: "0", count: max(0, digits - text.count)) + text).utf8, at: offset)
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

    /// The end of an archive.
    static let trailer = [UInt8](repeating: 0, count: 2 * blockBytes)

    /// How many bytes follow the content of a file up to the next block.
    static func padding(behind size: Int) -> Int { (blockBytes - size % blockBytes) % blockBytes }
}
