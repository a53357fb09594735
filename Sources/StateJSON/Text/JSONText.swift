#if canImport(Glibc)
    internal import Glibc
#else
    internal import Darwin
#endif

/// Values stay bytes between reducer, patch, journal and answer; bytes decide equality: Swift takes two spellings of
/// one accented letter for equal, and such a change would not be recorded.
///
/// The bytes are trusted to be compact and well formed: JSON of a client goes through ``JSONDocument`` first.
package struct JSONText {
    let bytes: UnsafeBufferPointer<UInt8>

    /// The bytes must outlive the reader.
    package init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    package typealias Span = Range<Int>

    /// The key has no quotes, and is still escaped.
    package struct Member {
        let key: Span
        let value: Span
    }

    package var whole: Span { 0..<bytes.count }

    /// Tools on Windows write a byte order mark, which a reader may skip (RFC 8259, section 8.1).
    package static func withoutByteOrderMark(_ bytes: [UInt8]) -> [UInt8] {
        bytes.first == 0xEF && bytes.starts(with: "\u{FEFF}".utf8) ? Array(bytes.dropFirst(3)) : bytes
    }

    /// Judges by kinds and lengths, without parsing; no spelling of a number is 32 times as long as another, and no
    /// spelling of a string more than six times as long.
    package static func maySayTheSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard let first = left.first, let second = right.first else { return left.isEmpty && right.isEmpty }
        let isNumber = { (byte: UInt8) in byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte) }
        guard first == second || isNumber(first) && isNumber(second) else { return false }
        return left.count / 32 <= right.count && right.count / 32 <= left.count
    }

    @inline(__always)
    func matches(_ span: Span, _ other: JSONText, _ otherSpan: Span) -> Bool {
        span.count == otherSpan.count && slice(span).hasBytes(of: other.slice(otherSpan))
    }

    @inline(__always)
    func slice(_ span: Span) -> UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(rebasing: bytes[span]) }

    @inline(__always)
    func kind(_ span: Span) -> UInt8 { bytes[span.lowerBound] }

    private func endOfString(_ start: Int) -> Int {
        var index = start + 1
        while bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return index + 1
    }

    private func endOfValue(_ start: Int) -> Int {
        switch bytes[start] {
        case UInt8(ascii: "\""): return endOfString(start)
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            var index = start
            var depth = 0
            repeat {
                switch bytes[index] {
                case UInt8(ascii: "\""):
                    index = endOfString(index)
                    continue
                case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
                default: break
                }
                index += 1
            } while depth > 0
            return index
        default:
            var index = start
            while index < bytes.count {
                switch bytes[index] {
                case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"): return index
                default: index += 1
                }
            }
            return index
        }
    }

    struct MemberIterator: IteratorProtocol {
        fileprivate let text: JSONText
        var index: Int

        mutating func next() -> Member? {
            guard text.bytes[index] != UInt8(ascii: "}") else { return nil }
            let keyEnd = text.endOfString(index)
            let valueEnd = text.endOfValue(keyEnd + 1)
            let member = Member(key: index + 1..<keyEnd - 1, value: keyEnd + 1..<valueEnd)
            index = text.bytes[valueEnd] == UInt8(ascii: ",") ? valueEnd + 1 : valueEnd
            return member
        }
    }

    func memberIterator(_ object: Span) -> MemberIterator { MemberIterator(text: self, index: object.lowerBound + 1) }

    func members(_ object: Span) -> [Member] { Array(IteratorSequence(memberIterator(object))) }

    func elements(_ array: Span) -> [Span] {
        var found: [Span] = []
        var index = array.lowerBound + 1
        while index < array.upperBound - 1 {
            let end = endOfValue(index)
            found.append(index..<end)
            index = end + 1
        }
        return found
    }

    package func find(_ tokens: ArraySlice<String>, in span: Span) -> Span? {
        guard let token = tokens.first else { return span }
        switch kind(span) {
        case UInt8(ascii: "{"):
            // A key that is spelled without escapes has the bytes of its token.
            let isPlain = token.withBytes { !$0.contains(where: JSONWriter.mustEscape) }
            var members = memberIterator(span)
            while let member = members.next() {
                let isFound =
                    isPlain
                    ? token.withBytes(slice(member.key).hasBytes) : JSONPointer.sameBytes(string(member.key), token)
                if isFound { return find(tokens.dropFirst(), in: member.value) }
            }
            return nil
        case UInt8(ascii: "["):
            guard let index = JSONPointer.index(token) else { return nil }
            let elements = elements(span)
            return index < elements.count ? find(tokens.dropFirst(), in: elements[index]) : nil
        default: return nil
        }
    }

    /// O(n) in the bytes.
    package static func select(_ tokens: ArraySlice<String>, in bytes: [UInt8]) -> [UInt8]? {
        tokens.isEmpty ? bytes : place(of: tokens, in: bytes).map { Array(bytes[$0]) }
    }

    /// O(n) in the bytes.
    package static func place(of tokens: ArraySlice<String>, in bytes: [UInt8]) -> Range<Int>? {
        bytes.withUnsafeBufferPointer { buffer in
            let text = JSONText(buffer)
            return text.find(tokens, in: text.whole)
        }
    }

    /// Two spaces a level and a newline at the end, for people.
    package static func indented(_ bytes: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count * 2)
        var (depth, index, isOpened) = (0, 0, false)
        func newline() {
            out.append(UInt8(ascii: "\n"))
            out.append(contentsOf: repeatElement(UInt8(ascii: " "), count: depth * 2))
        }
        while index < bytes.count {
            let (start, byte) = (index, bytes[index])
            index = byte == UInt8(ascii: "\"") ? min(endOfString(start, in: bytes[...]), bytes.count) : start + 1
            let isClosed = byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
            if isClosed { depth -= 1 }
            // A container without children stays on its line.
            if isClosed != isOpened { newline() }
            isOpened = byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[")
            if isOpened { depth += 1 }
            // A body has a newline behind the value.
            if byte != UInt8(ascii: "\n") { out += bytes[start..<index] }
            if byte == UInt8(ascii: ",") { newline() }
            if byte == UInt8(ascii: ":") { out.append(UInt8(ascii: " ")) }
        }
        out.append(UInt8(ascii: "\n"))
        return out
    }

    func string(_ key: Span) -> String {
        let escaped = slice(key)
        guard escaped.contains(UInt8(ascii: "\\")) else { return String(decoding: escaped, as: UTF8.self) }
        // Few keys get here: the writer escapes only quotes, backslashes and control characters.
        let quote = [UInt8(ascii: "\"")]
        let document = try? JSONDocument(encoded: quote + escaped + quote)
        return document.map { $0.string($0.root) } ?? String(decoding: escaped, as: UTF8.self)
    }

    /// Numbers inside strings do not count.
    static func nextNumber(in bytes: [UInt8], from start: Int) -> Range<Int>? {
        var index = start
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""): index = endOfString(index, in: bytes[...])
            case UInt8(ascii: "-"), 0x30...0x39:
                let end = bytes[index...].firstIndex { !isOfNumber($0) } ?? bytes.count
                return index..<end
            default: index += 1
            }
        }
        return nil
    }

    /// simdjson refuses whole numbers beyond 64 bits without an exponent, which JavaScript writes; nil for none, O(n).
    static func withExponents(_ bytes: [UInt8]) -> [UInt8]? {
        var (result, kept, index) = ([UInt8](), 0, 0)
        while let number = nextNumber(in: bytes, from: index) {
            index = number.upperBound
            let text = String(decoding: bytes[number], as: UTF8.self)
            guard number.count >= 19, bytes[number].dropFirst().allSatisfy({ (0x30...0x39).contains($0) }),
                Int64(text) == nil, UInt64(text) == nil
            else { continue }
            result += bytes[kept..<index] + "e0".utf8
            kept = index
        }
        return kept > 0 ? result + bytes[kept...] : nil
    }

    private static func isOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }

    package static func endOfString(_ start: Int, in bytes: ArraySlice<UInt8>) -> Int {
        var index = start + 1
        while index < bytes.endIndex, bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return index + 1
    }

    /// Strings and numbers keep their spelling; O(n), and a text without white space is not copied.
    package static func minified(_ bytes: [UInt8]) -> [UInt8] {
        // Programs send none, not even in strings; the least of many bytes is found sixteen at a time.
        guard let least = bytes.min(), least <= 0x20 else { return bytes }
        var (result, kept, index) = ([UInt8](), 0, 0)
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""): index = endOfString(index, in: bytes[...])
            case 0x20, 0x09, 0x0A, 0x0D:
                result += bytes[kept..<index]
                index += 1
                kept = index
            default: index += 1
            }
        }
        return kept == 0 ? bytes : result + bytes[kept...]
    }

    package static func elements(of bytes: [UInt8]) -> [Range<Int>] {
        bytes.withUnsafeBufferPointer { JSONText($0).elements(0..<bytes.count) }
    }

    /// The key has no escapes.
    package static func members(
        of bytes: [UInt8], in span: Range<Int>
    ) -> [(key: String, span: Range<Int>, value: Range<Int>)] {
        bytes.withUnsafeBufferPointer { buffer in
            let text = JSONText(buffer)
            return text.members(span).map {
                (text.string($0.key), $0.key.lowerBound - 1..<$0.value.upperBound, $0.value)
            }
        }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// The C library compares many bytes at once, `elementsEqual` one after the other.
    package func hasBytes(of other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count == other.count else { return false }
        guard let start = baseAddress, let otherStart = other.baseAddress else { return true }
        return memcmp(start, otherStart, count) == 0
    }

    package func has(_ byte: UInt8) -> Bool {
        guard let start = baseAddress else { return false }
        return memchr(start, CInt(byte), count) != nil
    }

    @inline(__always)
    package static func ~= (name: StaticString, text: UnsafeBufferPointer<UInt8>) -> Bool {
        text.hasBytes(of: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }
}

extension String {
    /// A string of Swift's own nearly always lends them without a copy.
    @inlinable @inline(__always)
    package func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows -> Result {
        if let result = try utf8.withContiguousStorageIfAvailable(body) { return result }
        return try Array(utf8).withUnsafeBufferPointer(body)
    }
}
