internal import CSimdjson

/// A parsed JSON text.
///
/// The parser refuses duplicate keys, nesting above a limit, invalid UTF-8 and numbers that 64-bit floating point cannot
/// hold. A whole number beyond 64 bits is read as a floating-point number, as JavaScript reads it. One thread at a time
/// may use a document.
package final class JSONDocument {
    private let parser: JSONParserPool.Parser
    @usableFromInline let tape: UnsafePointer<UInt64>
    @usableFromInline let strings: UnsafePointer<UInt8>
    private let bytes: [UInt8]
    /// Where the numbers that are doubles lie in the text, by their indices; nil until the first question.
    private var doubles: [Int: Range<Int>]?

    /// Parses a whole JSON text.
    ///
    /// O(n), about 0.3 us for a small action.
    ///
    /// - Throws: ``JSONFault`` of kind `malformed`, `numberOutOfRange`, `duplicateKey` or `tooDeep`.
    package convenience init(_ bytes: [UInt8], depthMax: Int = 64) throws(JSONFault) {
        try self.init(encoded: bytes, depthMax: depthMax)
        try check(depthMax: depthMax)
    }

    /// Parses JSON that this program has encoded: it has no key twice, and may be nested as deep as it is.
    ///
    /// - Parameter depthMax: the depth that a fault names.
    /// - Throws: ``JSONFault`` of any kind but `duplicateKey`.
    package init(encoded bytes: [UInt8], depthMax: Int = .max) throws(JSONFault) {
        let parser = JSONParserPool.take()
        var status = bytes.withUnsafeBufferPointer { storekeeper_json_parse(parser.handle, $0.baseAddress, $0.count) }
        if status == STOREKEEPER_JSON_NUMBER_OUT_OF_RANGE || status == STOREKEEPER_JSON_MALFORMED,
            let widened = WideNumbers.asFloatingPoint(bytes)
        {
            status = widened.withUnsafeBufferPointer { storekeeper_json_parse(parser.handle, $0.baseAddress, $0.count) }
        }
        guard status == STOREKEEPER_JSON_OK, let tape = storekeeper_json_tape(parser.handle),
            let strings = storekeeper_json_strings(parser.handle)
        else {
            JSONParserPool.giveBack(parser, after: bytes.count)
            throw JSONFault(status, bytes, depthMax: depthMax)
        }
        self.bytes = bytes
        self.parser = parser
        self.tape = tape
        self.strings = strings
    }

    deinit {
        JSONParserPool.giveBack(parser, after: bytes.count)
    }

    /// The outermost value.
    @inlinable package var root: Int { 1 }

    /// The kind of a value, as a letter of simdjson's tape: `{ [ " l u d t f n`.
    @inlinable @inline(__always)
    package func kind(_ index: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: tape[index] >> 56)
    }

    @inlinable @inline(__always)
    func payload(_ index: Int) -> UInt64 {
        tape[index] & 0x00FF_FFFF_FFFF_FFFF
    }

    var textCount: Int { bytes.count }

    /// The index of the value after this one.
    @inlinable @inline(__always)
    package func after(_ index: Int) -> Int {
        switch kind(index) {
        case UInt8(ascii: "{"), UInt8(ascii: "["): Int(payload(index) & 0xFFFF_FFFF)
        case UInt8(ascii: "l"), UInt8(ascii: "u"), UInt8(ascii: "d"): index + 2
        default: index + 1
        }
    }

    /// The bits of a number.
    @inlinable package func bits(_ index: Int) -> UInt64 {
        tape[index + 1]
    }

    /// The content of a string or a key, without escapes; valid as long as the document.
    @inlinable @inline(__always)
    package func utf8(_ index: Int) -> UnsafeBufferPointer<UInt8> {
        let start = strings + Int(payload(index))
        let count = UnsafeRawPointer(start).loadUnaligned(as: UInt32.self)
        return UnsafeBufferPointer(start: start + 4, count: Int(count))
    }

    /// The content of a string or a key.
    package func string(_ index: Int) -> String {
        String(decoding: utf8(index), as: UTF8.self)
    }

    /// The first child of a container: an array's first element, or an object's first key.
    @inlinable package func firstChild(_ container: Int) -> Int {
        container + 1
    }

    /// Whether an index is that of the end of its container.
    @inlinable @inline(__always)
    package func isEnd(_ index: Int) -> Bool {
        let kind = kind(index)
        return kind == UInt8(ascii: "}") || kind == UInt8(ascii: "]")
    }

    /// The value of a member, or nil when the object has no such key.
    ///
    /// - Parameter hint: the index of the key to begin the search with; set to the key behind the member found.
    func member(_ key: String, of object: Int, hint: inout Int) -> Int? {
        key.withBytes { wanted in
            let start = hint
            var index = start
            repeat {
                if isEnd(index) {
                    index = firstChild(object)
                    if isEnd(index) { return nil }
                    if index == start { break }
                }
                let found = utf8(index)
                let value = index + 1
                if found.hasBytes(of: wanted) {
                    hint = after(value)
                    return value
                }
                index = after(value)
            } while index != start
            return nil
        }
    }

    /// Writes the value at an index as compact JSON.
    package func write(_ index: Int, to writer: inout JSONWriter) {
        switch kind(index) {
        case UInt8(ascii: "{"):
            writer.byte(UInt8(ascii: "{"))
            var isFirst = true
            var key = firstChild(index)
            while !isEnd(key) {
                writer.separator(&isFirst)
                writer.string(utf8(key))
                writer.byte(UInt8(ascii: ":"))
                write(key + 1, to: &writer)
                key = after(key + 1)
            }
            writer.byte(UInt8(ascii: "}"))
        case UInt8(ascii: "["):
            writer.byte(UInt8(ascii: "["))
            var isFirst = true
            var element = firstChild(index)
            while !isEnd(element) {
                writer.separator(&isFirst)
                write(element, to: &writer)
                element = after(element)
            }
            writer.byte(UInt8(ascii: "]"))
        case UInt8(ascii: "\""): writer.string(utf8(index))
        case UInt8(ascii: "l"): writer.integer(Int64(bitPattern: bits(index)))
        case UInt8(ascii: "u"): writer.integer(bits(index))
        case UInt8(ascii: "d"): double(index).write(to: &writer)
        case UInt8(ascii: "t"): writer.bool(true)
        case UInt8(ascii: "f"): writer.bool(false)
        default: writer.raw("null")
        }
    }

    /// The value of a number that is a double on the tape.
    func double(_ index: Int) -> JSONValue {
        let double = Double(bitPattern: bits(index))
        // The tape has the nearest double in place of the digits; the text has them.
        return spelling(index).map { JSONValue.number(double, spelled: bytes[$0]) } ?? .double(double)
    }

    /// The number at an index as the text, or the tape, spells it; nil for another value.
    func numberText(_ index: Int) -> String? {
        switch kind(index) {
        case UInt8(ascii: "l"): String(Int64(bitPattern: bits(index)))
        case UInt8(ascii: "u"): String(bits(index))
        case UInt8(ascii: "d"): spelling(index).map { String(decoding: bytes[$0], as: UTF8.self) }
        default: nil
        }
    }

    /// Where the number at an index lies in the text; the first call is O(n) in the document.
    private func spelling(_ index: Int) -> Range<Int>? {
        if doubles == nil { doubles = spellings() }
        return doubles?[index]
    }

    private func spellings() -> [Int: Range<Int>] {
        // The tape has the values in the order of the text, and its first word has its length.
        var found: [Int: Range<Int>] = [:]
        var (index, offset) = (root, 0)
        let end = Int(payload(0) & 0xFFFF_FFFF)
        while index < end {
            let kind = kind(index)
            guard [UInt8(ascii: "l"), UInt8(ascii: "u"), UInt8(ascii: "d")].contains(kind),
                let number = JSONText.nextNumber(in: bytes, from: offset)
            else {
                index += 1
                continue
            }
            if kind == UInt8(ascii: "d") { found[index] = number }
            (index, offset) = (index + 2, number.upperBound)
        }
        return found
    }

    /// The pointer to the value, or to the member with the key, at an index.
    ///
    /// O(n) in the document; faults and expectations need it.
    package func pointer(to target: Int) -> JSONPointer {
        var tokens: [String] = []
        var container = root
        while container != target {
            let isObject = kind(container) == UInt8(ascii: "{")
            guard isObject || kind(container) == UInt8(ascii: "[") else { break }
            var child = firstChild(container)
            var offset = 0
            while !isEnd(child) {
                let value = isObject ? child + 1 : child
                if target < after(value) {
                    tokens.append(isObject ? string(child) : String(offset))
                    container = isObject && target == child ? target : value
                    break
                }
                child = after(value)
                offset += 1
            }
            if isEnd(child) { break }
        }
        return JSONPointer(tokens)
    }
}

extension JSONFault {
    /// The fault for a status of simdjson, which has no position in the text; ``JSONFaultLocator`` finds the pointer.
    fileprivate init(_ status: storekeeper_json_status, _ bytes: [UInt8], depthMax: Int) {
        switch status {
        case STOREKEEPER_JSON_TOO_DEEP:
            self.init(.tooDeep, at: .root, "nested deeper than \(depthMax) levels")
        case STOREKEEPER_JSON_EMPTY:
            self.init(.malformed, at: .root, "the text is empty; a JSON value was expected")
        case STOREKEEPER_JSON_INVALID_UTF8:
            let offset = JSONFaultLocator.firstInvalidUTF8(in: bytes)
            self.init(.malformed, at: .root, "byte \(offset) is not valid UTF-8")
        default:
            var locator = JSONFaultLocator(bytes)
            self = locator.locate()
        }
    }
}
