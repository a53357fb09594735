internal import CSimdjson
internal import Synchronization

/// Refuses duplicate keys, nesting above a limit, invalid UTF-8 and numbers that 64-bit floating point cannot hold; a
/// whole number beyond 64 bits is read as a double, as in JavaScript, and one thread at a time may use it.
package final class JSONDocument {
    private let parser: Parser
    @usableFromInline let tape: UnsafePointer<UInt64>
    @usableFromInline let strings: UnsafePointer<UInt8>
    private let bytes: [UInt8]
    /// By their indices; nil until the first question.
    private var doubles: [Int: Range<Int>]?

    /// A simdjson parser.
    ///
    /// `@unchecked Sendable`: a parser is either idle, guarded by the mutex, or owned by exactly one document.
    private struct Parser: @unchecked Sendable {
        let handle: OpaquePointer
    }

    /// To make a parser costs more than to parse an action.
    private static let idle = Mutex<[Parser]>([])
    private static let idleMax = 16
    /// A kept parser has some ten times the bytes of its longest text for ever.
    private static let keptBytesMax = 1 << 20
    /// Above any configured limit, which then is the one that is reported, and small enough for the recursion of
    /// `check`.
    private static let parserDepthMax = 1024

    /// O(n), about 0.3 us for a small action.
    package convenience init(_ bytes: [UInt8], depthMax: Int = 64) throws(JSONFault) {
        try self.init(encoded: bytes, depthMax: depthMax)
        guard let fault = check(root, depth: 1, depthMax: depthMax) else { return }
        let isDeep = fault.kind == .tooDeep
        throw JSONFault(
            fault.kind, at: pointer(to: fault.index),
            isDeep ? "nested deeper than \(depthMax) levels" : "the key occurs twice in its object")
    }

    /// The program has encoded it, so no key is there twice; a fault names `depthMax`.
    package init(encoded bytes: [UInt8], depthMax: Int = .max) throws(JSONFault) {
        let handle = Self.idle.withLock { $0.popLast() }?.handle ?? storekeeper_json_parser_create(Self.parserDepthMax)
        guard let handle else { preconditionFailure("no memory for a JSON parser") }
        var status = storekeeper_json_parse(handle, bytes, bytes.count)
        if status == STOREKEEPER_JSON_NUMBER_OUT_OF_RANGE || status == STOREKEEPER_JSON_MALFORMED,
            let widened = JSONText.withExponents(bytes)
        {
            status = storekeeper_json_parse(handle, widened, widened.count)
        }
        guard status == STOREKEEPER_JSON_OK, let tape = storekeeper_json_tape(handle),
            let strings = storekeeper_json_strings(handle)
        else {
            Self.giveBack(Parser(handle: handle), after: bytes.count)
            throw JSONFault(status, bytes, depthMax: depthMax)
        }
        (self.bytes, parser) = (bytes, Parser(handle: handle))
        (self.tape, self.strings) = (tape, strings)
    }

    deinit { Self.giveBack(parser, after: bytes.count) }

    private static func giveBack(_ parser: Parser, after bytesCount: Int) {
        let isKept = idle.withLock { idle in
            guard idle.count < idleMax, bytesCount <= keptBytesMax else { return false }
            idle.append(parser)
            return true
        }
        if !isKept { storekeeper_json_parser_destroy(parser.handle) }
    }

    @inlinable package var root: Int { 1 }

    /// A letter of simdjson's tape: `{ [ " l u d t f n`.
    @inlinable @inline(__always)
    package func kind(_ index: Int) -> UInt8 { UInt8(truncatingIfNeeded: tape[index] >> 56) }

    @inlinable @inline(__always)
    func payload(_ index: Int) -> UInt64 { tape[index] & 0x00FF_FFFF_FFFF_FFFF }

    var textCount: Int { bytes.count }

    @inlinable @inline(__always)
    package func after(_ index: Int) -> Int {
        switch kind(index) {
        case UInt8(ascii: "{"), UInt8(ascii: "["): Int(payload(index) & 0xFFFF_FFFF)
        case UInt8(ascii: "l"), UInt8(ascii: "u"), UInt8(ascii: "d"): index + 2
        default: index + 1
        }
    }

    @inlinable package func bits(_ index: Int) -> UInt64 { tape[index + 1] }

    /// Without escapes; valid as long as the document.
    @inlinable @inline(__always)
    package func utf8(_ index: Int) -> UnsafeBufferPointer<UInt8> {
        let start = strings + Int(payload(index))
        let count = UnsafeRawPointer(start).loadUnaligned(as: UInt32.self)
        return UnsafeBufferPointer(start: start + 4, count: Int(count))
    }

    package func string(_ index: Int) -> String { String(decoding: utf8(index), as: UTF8.self) }

    /// The key of the first member in an object.
    @inlinable package func firstChild(_ container: Int) -> Int { container + 1 }

    /// The key of a member lies one index before its value; where each request gets to, a loop over the indices is
    /// faster.
    @inlinable package func children(of container: Int) -> Children {
        Children(document: self, step: kind(container) == UInt8(ascii: "{") ? 1 : 0, place: firstChild(container))
    }

    package struct Children: Sequence, IteratorProtocol {
        @usableFromInline let document: JSONDocument
        @usableFromInline let step: Int
        @usableFromInline var place: Int

        @inlinable init(document: JSONDocument, step: Int, place: Int) {
            (self.document, self.step, self.place) = (document, step, place)
        }

        @inlinable package mutating func next() -> Int? {
            guard !document.isEnd(place) else { return nil }
            let value = place + step
            place = document.after(value)
            return value
        }
    }

    @inlinable @inline(__always)
    package func isEnd(_ index: Int) -> Bool { kind(index) == UInt8(ascii: "}") || kind(index) == UInt8(ascii: "]") }

    /// Searches from the key of the hint, which becomes that behind the member found.
    func member(_ key: UnsafeBufferPointer<UInt8>, of object: Int, hint: inout Int) -> Int? {
        let start = hint
        var index = start
        repeat {
            if isEnd(index) {
                index = firstChild(object)
                if isEnd(index) { return nil }
                if index == start { break }
            }
            let value = index + 1
            if utf8(index).hasBytes(of: key) {
                hint = after(value)
                return value
            }
            index = after(value)
        } while index != start
        return nil
    }

    package func write(_ index: Int, to writer: inout JSONWriter) {
        switch kind(index) {
        case UInt8(ascii: "{"):
            writer.byte(UInt8(ascii: "{"))
            var isFirst = true
            for value in children(of: index) {
                writer.separator(&isFirst)
                writer.string(utf8(value - 1))
                writer.byte(UInt8(ascii: ":"))
                write(value, to: &writer)
            }
            writer.byte(UInt8(ascii: "}"))
        case UInt8(ascii: "["): writer.array(children(of: index)) { write($0, to: &$1) }
        case UInt8(ascii: "\""): writer.string(utf8(index))
        case UInt8(ascii: "l"): writer.integer(Int64(bitPattern: bits(index)))
        case UInt8(ascii: "u"): writer.integer(bits(index))
        case UInt8(ascii: "d"): double(index).write(to: &writer)
        case UInt8(ascii: "t"): writer.bool(true)
        case UInt8(ascii: "f"): writer.bool(false)
        default: writer.raw("null")
        }
    }

    func double(_ index: Int) -> JSONValue {
        let double = Double(bitPattern: bits(index))
        // The tape has the nearest double in place of the digits; the text has them.
        return spelling(index).map { JSONValue.number(double, spelled: bytes[$0]) } ?? .double(double)
    }

    func numberText(_ index: Int) -> String? {
        switch kind(index) {
        case UInt8(ascii: "l"): String(Int64(bitPattern: bits(index)))
        case UInt8(ascii: "u"): String(bits(index))
        case UInt8(ascii: "d"): spelling(index).map { String(decoding: bytes[$0], as: UTF8.self) }
        default: nil
        }
    }

    /// The first call is O(n) in the document.
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

    /// O(n) in the document, for faults and expectations only; an index may be that of a key.
    package func pointer(to target: Int) -> JSONPointer {
        var tokens: [String] = []
        var container = root
        while container != target {
            let isObject = kind(container) == UInt8(ascii: "{")
            guard isObject || kind(container) == UInt8(ascii: "["),
                let (offset, value) = children(of: container).enumerated().first(where: { target < after($1) })
            else { break }
            tokens.append(isObject ? string(value - 1) : String(offset))
            container = isObject && target == value - 1 ? target : value
        }
        return JSONPointer(tokens)
    }

    private func check(_ value: Int, depth: Int, depthMax: Int) -> (kind: JSONFault.Kind, index: Int)? {
        let isObject = kind(value) == UInt8(ascii: "{")
        guard isObject || kind(value) == UInt8(ascii: "[") else { return nil }
        guard depth <= depthMax else { return (.tooDeep, value) }
        var child = firstChild(value)
        var count = 0
        while !isEnd(child) {
            count += 1
            if isObject { child += 1 }
            if let fault = check(child, depth: depth + 1, depthMax: depthMax) { return fault }
            child = after(child)
        }
        guard isObject, count > 1 else { return nil }
        return duplicateKey(value, count: count).map { (.duplicateKey, $0) }
    }

    private func duplicateKey(_ object: Int, count: Int) -> Int? {
        if count > 12 {
            var seen = Set<[UInt8]>(minimumCapacity: count)
            return children(of: object).first { !seen.insert(Array(utf8($0 - 1))).inserted }.map { $0 - 1 }
        }
        var key = firstChild(object)
        while !isEnd(key) {
            let name = utf8(key)
            var other = after(key + 1)
            while !isEnd(other) {
                if name.hasBytes(of: utf8(other)) { return other }
                other = after(other + 1)
            }
            key = after(key + 1)
        }
        return nil
    }
}

extension JSONFault {
    /// simdjson says no position in the text; ``JSONFaultLocator`` finds the pointer.
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
