internal import CSimdjson
internal import Synchronization

/// A parsed JSON text.
///
/// Parsing refuses what would be ambiguous later: duplicate keys, nesting over the limit, invalid UTF-8, numbers beyond
/// 64 bits. A document belongs to one thread at a time.
package final class JSONDocument {
    private let parser: JSONParserPool.Parser
    private let tape: UnsafePointer<UInt64>
    private let strings: UnsafePointer<UInt8>

    /// Parses a whole text.
    ///
    /// O(n), about 0.3 us for a small action.
    ///
    /// - Throws: ``JSONFault`` of kind `malformed`, `duplicateKey` or `tooDeep`.
    package init(_ bytes: [UInt8], depthMax: Int = 64) throws(JSONFault) {
        let parser = JSONParserPool.take()
        let status = bytes.withUnsafeBufferPointer { storekeeper_json_parse(parser.handle, $0.baseAddress, $0.count) }
        guard status == STOREKEEPER_JSON_OK, let tape = storekeeper_json_tape(parser.handle),
            let strings = storekeeper_json_strings(parser.handle)
        else {
            JSONParserPool.giveBack(parser)
            throw JSONFault(status, bytes, depthMax: depthMax)
        }
        self.parser = parser
        self.tape = tape
        self.strings = strings
        try check(depthMax: depthMax)
    }

    deinit {
        JSONParserPool.giveBack(parser)
    }

    /// The outermost value.
    var root: Int { 1 }

    /// A value's kind as simdjson's tape spells it: `{ [ " l u d t f n`.
    @inline(__always)
    func kind(_ index: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: tape[index] >> 56)
    }

    @inline(__always)
    private func payload(_ index: Int) -> UInt64 {
        tape[index] & 0x00FF_FFFF_FFFF_FFFF
    }

    /// The index of the value after this one.
    @inline(__always)
    func after(_ index: Int) -> Int {
        switch kind(index) {
        case UInt8(ascii: "{"), UInt8(ascii: "["): Int(payload(index) & 0xFFFF_FFFF)
        case UInt8(ascii: "l"), UInt8(ascii: "u"), UInt8(ascii: "d"): index + 2
        default: index + 1
        }
    }

    /// The word after a number's head: its bits.
    func bits(_ index: Int) -> UInt64 {
        tape[index + 1]
    }

    /// A string's content, escapes undone.
    ///
    /// Valid as long as the document.
    @inline(__always)
    func utf8(_ index: Int) -> UnsafeBufferPointer<UInt8> {
        let start = strings + Int(payload(index))
        let count = UnsafeRawPointer(start).loadUnaligned(as: UInt32.self)
        return UnsafeBufferPointer(start: start + 4, count: Int(count))
    }

    func string(_ index: Int) -> String {
        String(decoding: utf8(index), as: UTF8.self)
    }

    /// The first child of a container: an array's first element, or an object's first key.
    func firstChild(_ container: Int) -> Int {
        container + 1
    }

    /// Whether an index stands at the end of its container.
    @inline(__always)
    func isEnd(_ index: Int) -> Bool {
        let kind = kind(index)
        return kind == UInt8(ascii: "}") || kind == UInt8(ascii: "]")
    }

    /// The value of a member, looked for from `hint` on and then from the start; nil when the object has no such key.
    func member(_ key: String, of object: Int, hint: inout Int) -> Int? {
        var key = key
        return key.withUTF8 { wanted in
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
                if found.count == wanted.count, found.elementsEqual(wanted) {
                    hint = after(value)
                    return value
                }
                index = after(value)
            } while index != start
            return nil
        }
    }

    /// Appends a value's compact text.
    func write(_ index: Int, to writer: inout JSONWriter) {
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
        // A parsed number is finite.
        case UInt8(ascii: "d"): _ = writer.number(Double(bitPattern: bits(index)))
        case UInt8(ascii: "t"): writer.bool(true)
        case UInt8(ascii: "f"): writer.bool(false)
        default: writer.raw("null")
        }
    }

    /// The pointer to the value, or to the member with the key, at an index.
    ///
    /// O(n); for faults.
    func pointer(to target: Int) -> JSONPointer {
        var tokens: [String] = []
        var container = root
        while container != target {
            let isObject = kind(container) == UInt8(ascii: "{")
            guard isObject || kind(container) == UInt8(ascii: "[") else { break }
            var child = firstChild(container)
            var position = 0
            while !isEnd(child) {
                let value = isObject ? child + 1 : child
                if target < after(value) {
                    tokens.append(isObject ? string(child) : String(position))
                    container = isObject && target == child ? target : value
                    break
                }
                child = after(value)
                position += 1
            }
            if isEnd(child) { break }
        }
        return JSONPointer(tokens)
    }

    private func check(depthMax: Int) throws(JSONFault) {
        var fault: (JSONFault.Kind, Int)?
        check(root, depth: 1, depthMax: depthMax, &fault)
        switch fault {
        case (.tooDeep, let index)?:
            throw JSONFault(.tooDeep, at: pointer(to: index), "nested deeper than \(depthMax) levels")
        case (let kind, let index)?:
            throw JSONFault(kind, at: pointer(to: index), "the key stands twice in its object")
        case nil: break
        }
    }

    private func check(_ container: Int, depth: Int, depthMax: Int, _ fault: inout (JSONFault.Kind, Int)?) {
        let isObject = kind(container) == UInt8(ascii: "{")
        guard isObject || kind(container) == UInt8(ascii: "[") else { return }
        guard depth <= depthMax else {
            fault = (.tooDeep, container)
            return
        }
        var child = firstChild(container)
        var count = 0
        while !isEnd(child), fault == nil {
            count += 1
            let value = isObject ? child + 1 : child
            check(value, depth: depth + 1, depthMax: depthMax, &fault)
            child = after(value)
        }
        if isObject, count > 1, fault == nil, let twice = duplicateKey(container, count: count) {
            fault = (.duplicateKey, twice)
        }
    }

    private func duplicateKey(_ object: Int, count: Int) -> Int? {
        if count > 12 {
            var seen = Set<[UInt8]>(minimumCapacity: count)
            var key = firstChild(object)
            while !isEnd(key) {
                guard seen.insert(Array(utf8(key))).inserted else { return key }
                key = after(key + 1)
            }
            return nil
        }
        var key = firstChild(object)
        while !isEnd(key) {
            let name = utf8(key)
            var other = after(key + 1)
            while !isEnd(other) {
                let otherName = utf8(other)
                if name.count == otherName.count, name.elementsEqual(otherName) { return other }
                other = after(other + 1)
            }
            key = after(key + 1)
        }
        return nil
    }
}

/// Parsers waiting for their next document: making one costs more than parsing an action.
private enum JSONParserPool {
    /// A simdjson parser.
    ///
    /// `@unchecked Sendable`: a parser is either in the pool, guarded by its mutex, or owned by exactly one document.
    struct Parser: @unchecked Sendable {
        let handle: OpaquePointer
    }

    private static let idle = Mutex<[Parser]>([])
    private static let idleMax = 16
    /// Deeper than any configured limit, so that ours is the one that is reported; shallow enough for our recursion.
    private static let parserDepthMax = 1024

    static func take() -> Parser {
        if let parser = idle.withLock({ $0.popLast() }) { return parser }
        guard let handle = storekeeper_json_parser_create(parserDepthMax) else {
            preconditionFailure("no memory for a JSON parser")
        }
        return Parser(handle: handle)
    }

    static func giveBack(_ parser: Parser) {
        let isKept = idle.withLock { parsers in
            guard parsers.count < idleMax else { return false }
            parsers.append(parser)
            return true
        }
        if !isKept { storekeeper_json_parser_destroy(parser.handle) }
    }
}

extension JSONFault {
    /// simdjson tells what is wrong but not where: a slower reader finds the place.
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
