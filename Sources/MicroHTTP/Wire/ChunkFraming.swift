/// The framing of a chunked body, by the letter of RFC 9112, section 7.1.
///
/// Readers of HTTP differ in what they take for the end of a line and in what they allow in extensions and trailers. A proxy
/// in front may find another end of the body, so that an attacker can hide a request behind it. This value refuses everything
/// that has two readings.
struct ChunkFraming {
    /// What the next byte belongs to.
    private enum Position: Equatable {
        case size(digits: Int), chunkExtension, sizeEnd
        case data(bytesLeft: Int), dataEnd, dataEndLF
        case trailerStart, trailerName, trailer, trailerEnd, lastLF
        case complete
    }

    private var position = Position.size(digits: 0)
    private var size = 0
    /// How many bytes of extensions and trailers have come.
    private var surplusCount = 0
    /// How many bytes the body has taken on the wire.
    private(set) var count = 0
    /// The most bytes of extensions and trailers together; the server uses none.
    static let surplusBytesMax = 4 << 10

    /// Whether the whole body has come.
    var isComplete: Bool { position == .complete }

    /// Follows the next bytes up to the end of the body; what comes behind belongs to the next request.
    ///
    /// - Parameter data: takes each piece of the content, in order.
    /// - Returns: a sentence about what is wrong, or nil.
    mutating func take(_ bytes: UnsafeRawBufferPointer, data: (UnsafeRawBufferPointer) -> Void) -> String? {
        var index = 0
        while index < bytes.count, position != .complete {
            if case .data(let left) = position {
                let taken = min(left, bytes.count - index)
                data(UnsafeRawBufferPointer(rebasing: bytes[index..<index + taken]))
                index += taken
                count += taken
                position = taken == left ? .dataEnd : .data(bytesLeft: left - taken)
                continue
            }
            if let fault = take(bytes[index]) { return fault }
            index += 1
            count += 1
        }
        return nil
    }

    private mutating func take(_ byte: UInt8) -> String? {
        switch position {
        case .size(let digits):
            if let value = Self.hexadecimal(byte) {
                guard digits < 15 else { return "a chunk size has at most 15 digits" }
                size = size << 4 | value
                position = .size(digits: digits + 1)
                return nil
            }
            guard digits > 0 else { return "a chunk begins with its size in hexadecimal digits" }
            switch byte {
            case 0x0D: position = .sizeEnd
            case UInt8(ascii: ";"): position = .chunkExtension
            default: return "a chunk size ends with CR LF"
            }
        case .chunkExtension:
            return takeSurplus(byte, end: .sizeEnd)
        case .sizeEnd:
            guard byte == 0x0A else { return "a chunk size ends with CR LF" }
            position = size == 0 ? .trailerStart : .data(bytesLeft: size)
            size = 0
        case .dataEnd:
            guard byte == 0x0D else { return "a chunk ends with CR LF" }
            position = .dataEndLF
        case .dataEndLF:
            guard byte == 0x0A else { return "a chunk ends with CR LF" }
            position = .size(digits: 0)
        case .trailerStart:
            if byte == 0x0D {
                position = .lastLF
                return nil
            }
            guard byte != UInt8(ascii: ":") else { return "a line of the trailer begins with its name" }
            position = .trailerName
            fallthrough
        case .trailerName:
            if byte == UInt8(ascii: ":") {
                position = .trailer
            } else if !Self.isToken(byte) {
                return "a line of the trailer is a name, a colon and a value"
            }
            return takeSurplus(byte, end: .trailerEnd)
        case .trailer:
            return takeSurplus(byte, end: .trailerEnd)
        case .trailerEnd:
            guard byte == 0x0A else { return "a line of the trailer ends with CR LF" }
            position = .trailerStart
        case .lastLF:
            guard byte == 0x0A else { return "a chunked body ends with CR LF" }
            position = .complete
        case .data, .complete:
            break
        }
        return nil
    }

    /// Takes a byte of an extension or a trailer, which CR ends.
    private mutating func takeSurplus(_ byte: UInt8, end: Position) -> String? {
        surplusCount += 1
        guard surplusCount <= Self.surplusBytesMax else {
            return "the extensions and trailers of a chunked body are too long"
        }
        switch byte {
        case 0x0D: position = end
        case 0x09, 0x20...0x7E, 0x80...0xFF: break
        default: return "a control character cannot stand in an extension or a trailer of a chunked body"
        }
        return nil
    }

    /// Whether a byte may stand in the name of a field (RFC 9110, section 5.6.2).
    static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    private static func hexadecimal(_ byte: UInt8) -> Int? {
        switch byte {
        case 0x30...0x39: Int(byte) - 0x30
        case 0x41...0x46: Int(byte) - 0x41 + 10
        case 0x61...0x66: Int(byte) - 0x61 + 10
        default: nil
        }
    }
}
