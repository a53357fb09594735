/// A JSON value as a tree, for JSON without a Swift type: patches, metadata, expected values.
public enum JSONValue: Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A whole number.
    case integer(Int64)
    /// A whole number above Int64.max.
    case unsigned(UInt64)
    /// Another number.
    case double(Double)
    /// A number with more digits than a `Double` has, as JSON spells it.
    case decimal(String)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object.
    case object(JSONObject)

    /// O(n).
    package init(parsing bytes: [UInt8], depthMax: Int = 64) throws(JSONFault) {
        let document = try JSONDocument(bytes, depthMax: depthMax)
        self = Self.value(of: document, at: document.root)
    }

    /// An initializer would retain and release the document for each value.
    package static func value(of document: JSONDocument, at index: Int) -> JSONValue {
        switch document.kind(index) {
        case UInt8(ascii: "{"):
            var object = JSONObject()
            for place in document.children(of: index) {
                object.append(document.string(place - 1), value(of: document, at: place))
            }
            return .object(object)
        case UInt8(ascii: "["): return .array(document.children(of: index).map { value(of: document, at: $0) })
        case UInt8(ascii: "\""): return .string(document.string(index))
        case UInt8(ascii: "l"): return .integer(Int64(bitPattern: document.bits(index)))
        case UInt8(ascii: "u"): return .unsigned(document.bits(index))
        case UInt8(ascii: "d"): return document.double(index)
        case UInt8(ascii: "t"): return .bool(true)
        case UInt8(ascii: "f"): return .bool(false)
        default: return .null
        }
    }

    package var text: [UInt8] {
        var writer = JSONWriter()
        write(to: &writer)
        return writer.bytes
    }

    package func write(to writer: inout JSONWriter) {
        switch self {
        case .null: writer.raw("null")
        case .bool(let value): writer.bool(value)
        case .integer(let value): writer.integer(value)
        case .unsigned(let value): writer.integer(value)
        // A parsed number is finite.
        case .double(let value): _ = writer.number(value)
        case .decimal(let text): writer.raw(text.utf8)
        case .string(let value): writer.string(value)
        case .array(let elements): writer.array(elements) { $0.write(to: &$1) }
        case .object(let object):
            writer.byte(UInt8(ascii: "{"))
            var isFirst = true
            for (key, value) in object.members {
                writer.separator(&isFirst)
                writer.string(key)
                writer.byte(UInt8(ascii: ":"))
                value.write(to: &writer)
            }
            writer.byte(UInt8(ascii: "}"))
        }
    }

    package subscript(pointer pointer: JSONPointer) -> JSONValue? {
        var value = self
        for token in pointer.tokens {
            switch value {
            case .object(let object):
                guard let member = object[token] else { return nil }
                value = member
            case .array(let elements):
                guard let index = JSONPointer.index(token), index < elements.count else { return nil }
                value = elements[index]
            default: return nil
            }
        }
        return value
    }

    /// About; O(n) in the parts.
    package var memoryBytes: Int {
        switch self {
        case .null, .bool, .integer, .unsigned, .double: 32
        case .decimal(let text), .string(let text): 48 + text.utf8.count
        case .array(let elements): elements.reduce(64) { $0 + $1.memoryBytes }
        // The index of the members holds each key once more.
        case .object(let object): object.members.reduce(96) { $0 + 96 + 2 * $1.key.utf8.count + $1.value.memoryBytes }
        }
    }

    /// In the order of this value's members; nil for equal values, O(n) in both.
    package func firstDifference(from other: JSONValue) -> JSONPointer? {
        var path: [String] = []
        return differs(from: other, at: &path) ? JSONPointer(path) : nil
    }

    private func differs(from other: JSONValue, at path: inout [String]) -> Bool {
        switch (self, other) {
        case (.object(let members), .object(let others)):
            for (key, value) in members.members {
                path.append(key)
                guard let counterpart = others[key] else { return true }
                if value.differs(from: counterpart, at: &path) { return true }
                path.removeLast()
            }
            guard let added = others.members.first(where: { !members.contains($0.key) }) else { return false }
            path.append(added.key)
            return true
        case (.array(let elements), .array(let others)):
            for (index, (element, counterpart)) in zip(elements, others).enumerated() {
                path.append(String(index))
                if element.differs(from: counterpart, at: &path) { return true }
                path.removeLast()
            }
            guard elements.count != others.count else { return false }
            path.append(String(min(elements.count, others.count)))
            return true
        default: return self != other
        }
    }

    /// The last of two with one key counts.
    package static func of(_ members: (String, JSONValue)...) -> JSONValue { of(members) }

    package static func of(_ members: [(String, JSONValue)]) -> JSONValue {
        var object = JSONObject()
        for (key, value) in members { object[key] = value }
        return .object(object)
    }
}

/// The members of an object in their order.
///
/// A lookup by key takes constant time from nine members on, and compares each member below. A removal takes constant time in
/// the mean.
public struct JSONObject: Sendable {
    /// The members, in the order of the text; O(n) after a removal from nine members or more.
    public var members: [(key: String, value: JSONValue)] {
        guard let removed = index.first?.removed, !removed.isEmpty else { return slots }
        return slots.indices.lazy.filter { !removed.contains($0) }.map { slots[$0] }
    }

    private var slots: [(key: String, value: JSONValue)] = []
    /// One index, or none below nine members, where a scan is faster; as an array it makes no JSON value larger.
    private var index: [Index] = []

    private struct Index {
        var slots: [[UInt8]: Int]
        /// The slots without a member: to close each at once would move the members behind it.
        var removed: Set<Int> = []
    }

    /// Makes an object without members.
    public init() {}

    /// The value of a key; setting nil removes the member, setting a new key appends it.
    public subscript(key: String) -> JSONValue? {
        get { slot(of: key).map { slots[$0].value } }
        _modify {
            let slot = slot(of: key)
            var value = slot.map { slots[$0].value }
            // A second reference to the value would make its mutation copy every level of the tree.
            if let slot { slots[slot].value = .null }
            defer {
                switch (slot, value) {
                case (let slot?, let value?): slots[slot].value = value
                case (let slot?, nil): remove(at: slot)
                case (nil, let value?): append(key, value)
                case (nil, nil): break
                }
            }
            yield &value
        }
    }

    package func contains(_ key: String) -> Bool { slot(of: key) != nil }

    /// The key has to be new, which is not checked.
    package mutating func append(_ key: String, _ value: JSONValue) {
        slots.append((key, value))
        if !index.isEmpty {
            index[0].slots[Array(key.utf8)] = slots.count - 1
        } else if slots.count > 8 {
            buildIndex()
        }
    }

    private mutating func remove(at slot: Int) {
        guard !index.isEmpty else {
            slots.remove(at: slot)
            return
        }
        index[0].slots[Array(slots[slot].key.utf8)] = nil
        if slot == slots.count - 1 { slots.removeLast() } else { index[0].removed.insert(slot) }
        let (count, removedCount) = (slots.count - index[0].removed.count, index[0].removed.count)
        // Where a key is there twice, the index has fewer slots than there are members.
        guard removedCount > count || index[0].slots.count < count else { return }
        slots = members
        buildIndex()
    }

    private mutating func buildIndex() {
        // A value of an encoder that writes a key twice has it twice; the first one counts, as in a short object.
        index = [Index(slots: Dictionary(slots.enumerated().map { (Array($1.key.utf8), $0) }) { first, _ in first })]
    }

    private func slot(of key: String) -> Int? {
        if let index = index.first { return index.slots[Array(key.utf8)] }
        return slots.firstIndex { $0.key.utf8.elementsEqual(key.utf8) }
    }
}

extension JSONValue: Equatable {
    /// Whether two values are equal: numbers by value, objects without regard to the order of their members.
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.unsigned(let left), .unsigned(let right)): left == right
        case (.double(let left), .double(let right)): left == right
        case (.integer(let whole), .double(let double)), (.double(let double), .integer(let whole)):
            Int64(exactly: double) == whole
        case (.unsigned(let whole), .double(let double)), (.double(let double), .unsigned(let whole)):
            UInt64(exactly: double) == whole
        // A number that one side has as a double is compared as a double.
        case (.decimal(let decimal), .double(let double)), (.double(let double), .decimal(let decimal)):
            Double(decimal) == double
        case (.decimal(let left), .decimal(let right)): DecimalDigits(left.utf8) == DecimalDigits(right.utf8)
        case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)):
            left.members.count == right.members.count && left.members.allSatisfy { right[$0.key] == $0.value }
        default: false
        }
    }
}
