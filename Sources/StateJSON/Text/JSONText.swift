#if canImport(Glibc)
    internal import Glibc
#else
    internal import Darwin
#endif

/// A reader of compact JSON that this module wrote; it builds no tree.
///
/// It trusts the bytes: they are well formed and have no white space between tokens. JSON of a client goes through
/// ``JSONDocument`` first.
package struct JSONText {
    let bytes: UnsafeBufferPointer<UInt8>
    /// Arrays whose elements need not be searched for.
    private let arrays: [EncodedArray]

    /// Makes a reader of bytes, which must outlive it.
    package init(_ bytes: UnsafeBufferPointer<UInt8>) { self.init(bytes, arrays: []) }

    init(_ bytes: UnsafeBufferPointer<UInt8>, arrays: [EncodedArray]) {
        self.bytes = bytes
        self.arrays = arrays
    }

    /// The places of the elements of the array that begins at `start`; nil where they are not known.
    @inline(__always)
    private func array(at start: Int) -> EncodedArray? { arrays.first { $0.span.lowerBound == start } }

    /// The range of a value in the bytes.
    package typealias Span = Range<Int>

    /// A member of an object: its key without the quotes, still escaped, and its value.
    package struct Member {
        let key: Span
        let value: Span
    }

    /// The range of the outermost value.
    package var whole: Span { 0..<bytes.count }

    /// Whether two encodings can be of equal values, judged by their kinds and lengths; it parses neither.
    ///
    /// Compact encodings of equal values differ in the order of members and in the spelling of numbers and strings. No
    /// spelling of a number is 32 times as long as another, and no spelling of a string more than six times as long.
    package static func maySayTheSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard let first = left.first, let second = right.first else { return left.isEmpty && right.isEmpty }
        let isNumber = { (byte: UInt8) in byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte) }
        guard first == second || isNumber(first) && isNumber(second) else { return false }
        return left.count / 32 <= right.count && right.count / 32 <= left.count
    }

    /// Whether a span of these bytes and a span of others hold equal bytes.
    @inline(__always)
    func matches(_ span: Span, _ other: JSONText, _ otherSpan: Span) -> Bool {
        guard span.count == otherSpan.count else { return false }
        guard let left = bytes.baseAddress, let right = other.bytes.baseAddress else { return span.isEmpty }
        return memcmp(left + span.lowerBound, right + otherSpan.lowerBound, span.count) == 0
    }

    @inline(__always)
    func slice(_ span: Span) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: bytes[span])
    }

    /// The first byte of a value, which tells its kind.
    @inline(__always)
    func kind(_ span: Span) -> UInt8 {
        bytes[span.lowerBound]
    }

    /// The index behind the string that begins at `start`.
    private func endOfString(_ start: Int) -> Int {
        var index = start + 1
        while bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return index + 1
    }

    /// The index behind the value that begins at `start`.
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
                case UInt8(ascii: "[") where !arrays.isEmpty:
                    if let known = array(at: index) {
                        index = known.span.upperBound
                        continue
                    }
                    depth += 1
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

    /// The members of an object, one after the other in the order of the text.
    struct MemberIterator: IteratorProtocol {
        fileprivate let text: JSONText
        /// The index of the next key's quote, or of the closing brace.
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

    /// The members of an object, in the order of the text.
    func members(_ object: Span) -> [Member] { Array(IteratorSequence(memberIterator(object))) }

    /// The elements of an array.
    func elements(_ array: Span) -> [Span] { elements(of: array, between: array.lowerBound + 1, array.upperBound - 1) }

    /// The elements of an array that begin at `start` or behind it and end at `end` or before it.
    func elements(of array: Span, between start: Int, _ end: Int) -> [Span] {
        if let known = self.array(at: array.lowerBound) {
            return (known.firstIndex(from: start)..<known.firstIndex(from: end)).map(known.span)
        }
        var found: [Span] = []
        var index = start
        while index < end {
            let elementEnd = endOfValue(index)
            found.append(index..<elementEnd)
            index = elementEnd + 1
        }
        return found
    }

    /// How many elements at the beginning of an array are equal in another one, and the offset of the next element in both.
    ///
    /// The last element of an array is never among them, because no comma follows it.
    func commonElements(_ array: Span, _ other: JSONText, _ otherArray: Span) -> (count: Int, length: Int) {
        let common = commonPrefix(array, other, otherArray)
        if let known = self.array(at: array.lowerBound) {
            // An element is among them where the comma behind it, one byte before the next element, is.
            let count = known.firstIndex(from: array.lowerBound + common + 1) - 1
            return (count, known.starts[count] - array.lowerBound)
        }
        var (count, index) = (0, array.lowerBound + 1)
        while index < array.upperBound - 1 {
            let end = endOfValue(index)
            guard bytes[end] == UInt8(ascii: ","), end - array.lowerBound < common else { break }
            (count, index) = (count + 1, end + 1)
        }
        return (count, index - array.lowerBound)
    }

    /// How many bytes at the end of two runs of elements are equal elements, with the comma before them.
    ///
    /// 0 where an element has a string or a container: such elements cannot be found from their end.
    func commonTail(_ elements: Span, _ other: JSONText, _ otherElements: Span) -> Int {
        guard isFlat(elements), other.isFlat(otherElements) else { return 0 }
        let most = min(elements.count, otherElements.count)
        var (length, tail) = (0, 0)
        while length < most {
            let byte = bytes[elements.upperBound - length - 1]
            guard byte == other.bytes[otherElements.upperBound - length - 1] else { break }
            length += 1
            if byte == UInt8(ascii: ",") { tail = length }
        }
        return tail
    }

    /// Whether a span has neither strings nor containers.
    private func isFlat(_ span: Span) -> Bool {
        guard !span.isEmpty, let start = bytes.baseAddress else { return true }
        return [UInt8(ascii: "\""), UInt8(ascii: "["), UInt8(ascii: "{")].allSatisfy {
            memchr(start + span.lowerBound, Int32($0), span.count) == nil
        }
    }

    /// How many bytes at the beginning of two spans are equal.
    private func commonPrefix(_ span: Span, _ other: JSONText, _ otherSpan: Span) -> Int {
        let most = min(span.count, otherSpan.count)
        guard most > 0, let left = bytes.baseAddress, let right = other.bytes.baseAddress else { return 0 }
        let (a, b) = (UnsafeRawPointer(left + span.lowerBound), UnsafeRawPointer(right + otherSpan.lowerBound))
        var length = 0
        while length + 8 <= most,
            a.loadUnaligned(fromByteOffset: length, as: UInt64.self)
                == b.loadUnaligned(fromByteOffset: length, as: UInt64.self)
        { length += 8 }
        while length < most,
            a.load(fromByteOffset: length, as: UInt8.self) == b.load(fromByteOffset: length, as: UInt8.self)
        { length += 1 }
        return length
    }

    /// The value at the tokens of a pointer below a value, or nil where there is none.
    package func find(_ tokens: ArraySlice<String>, in span: Span) -> Span? {
        guard let token = tokens.first else { return span }
        switch kind(span) {
        case UInt8(ascii: "{"):
            var writer = JSONWriter(capacity: token.utf8.count + 8)
            writer.string(token)
            let wanted = writer.bytes.dropFirst().dropLast()
            for member in members(span) where slice(member.key).elementsEqual(wanted) {
                return find(tokens.dropFirst(), in: member.value)
            }
            return nil
        case UInt8(ascii: "["):
            guard let index = JSONPointer.index(token) else { return nil }
            let elements = elements(span)
            return index < elements.count ? find(tokens.dropFirst(), in: elements[index]) : nil
        default: return nil
        }
    }
}

extension JSONText {
    /// The part of an encoded value at the tokens of a pointer, or nil where there is none.
    ///
    /// O(n) in the bytes.
    package static func select(_ tokens: ArraySlice<String>, in bytes: [UInt8]) -> [UInt8]? {
        guard !tokens.isEmpty else { return bytes }
        return bytes.withUnsafeBufferPointer { buffer in
            let text = JSONText(buffer)
            return text.find(tokens, in: text.whole).map { Array(buffer[$0]) }
        }
    }

    /// The same JSON with two spaces of indentation a level and a newline at the end, for people.
    package static func indented(_ bytes: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count * 2)
        var depth = 0
        var isInString = false
        var isEscaped = false
        func newline() {
            out.append(UInt8(ascii: "\n"))
            out.append(contentsOf: repeatElement(UInt8(ascii: " "), count: depth * 2))
        }
        for (index, byte) in bytes.enumerated() {
            if isInString {
                out.append(byte)
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                out.append(byte)
                let isEmpty =
                    index + 1 < bytes.count && [UInt8(ascii: "}"), UInt8(ascii: "]")].contains(bytes[index + 1])
                depth += 1
                if !isEmpty { newline() }
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                if ![UInt8(ascii: "{"), UInt8(ascii: "[")].contains(bytes[index - 1]) { newline() }
                out.append(byte)
            case UInt8(ascii: ","):
                out.append(byte)
                newline()
            case UInt8(ascii: ":"):
                out.append(byte)
                out.append(UInt8(ascii: " "))
            case UInt8(ascii: "\""):
                isInString = true
                out.append(byte)
            // That of a body, which comes behind the value.
            case UInt8(ascii: "\n"): break
            default: out.append(byte)
            }
        }
        out.append(UInt8(ascii: "\n"))
        return out
    }
}
