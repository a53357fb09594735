internal import StateJSON

extension JSONDocument {
    func types(_ value: Int) -> SchemaRules.Types {
        switch kind(value) {
        case UInt8(ascii: "{"): .object
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "\""): .string
        case UInt8(ascii: "l"), UInt8(ascii: "u"): [.integer, .number]
        case UInt8(ascii: "d"): number(value)?.isWhole == true ? [.integer, .number] : .number
        case UInt8(ascii: "n"): .null
        default: .boolean
        }
    }

    func number(_ value: Int) -> JSONNumber? {
        switch kind(value) {
        case UInt8(ascii: "l"): .whole(Int128(Int64(bitPattern: bits(value))))
        case UInt8(ascii: "u"): .whole(Int128(bits(value)))
        case UInt8(ascii: "d"): JSONNumber(Double(bitPattern: bits(value)))
        default: nil
        }
    }

    /// Counts characters of Unicode; nil for a value of another type.
    func count(of part: SchemaRules.Part, in value: Int) -> Int? {
        switch (part, kind(value)) {
        case (.characters, UInt8(ascii: "\"")):
            return utf8(value).reduce(0) { $0 + ($1 & 0xC0 == 0x80 ? 0 : 1) }
        case (.elements, UInt8(ascii: "[")), (.members, UInt8(ascii: "{")):
            return children(of: value).reduce(0) { count, _ in count + 1 }
        default: return nil
        }
    }

    func hasMember(_ name: UnsafeBufferPointer<UInt8>, _ object: Int) -> Bool {
        children(of: object).contains { utf8($0 - 1).hasBytes(of: name) }
    }

    /// The cost is that of the schema's value.
    func equals(_ value: Int, _ wanted: JSONValue) -> Bool {
        switch (wanted, kind(value)) {
        case (.null, UInt8(ascii: "n")), (.bool(true), UInt8(ascii: "t")), (.bool(false), UInt8(ascii: "f")):
            return true
        case (.string(let text), UInt8(ascii: "\"")): return text.withBytes { utf8(value).hasBytes(of: $0) }
        case (.array(let elements), UInt8(ascii: "[")):
            var children = children(of: value)
            for element in elements {
                guard let child = children.next(), equals(child, element) else { return false }
            }
            return children.next() == nil
        case (.object(let object), UInt8(ascii: "{")):
            var count = 0
            for child in children(of: value) {
                count += 1
                guard count <= object.members.count, let member = object[string(child - 1)], equals(child, member)
                else { return false }
            }
            return count == object.members.count
        default:
            guard let wanted = JSONNumber(wanted) else { return false }
            return number(value) == wanted
        }
    }
}

/// Takes time that grows with the document however often its parts are looked at; values are equal where their digests
/// are: 128 bits of SipHash, whose key nobody outside the process knows.
struct EqualElements {
    private var known: [Int: UInt128] = [:]

    mutating func firstTwo(of array: Int, in document: JSONDocument) -> (Int, Int)? {
        var positions: [UInt128: Int] = [:]
        for (position, element) in document.children(of: array).enumerated() {
            if let first = positions.updateValue(position, forKey: digest(of: element, in: document)) {
                return (first, position)
            }
        }
        return nil
    }

    private mutating func digest(of value: Int, in document: JSONDocument) -> UInt128 {
        if let digest = known[value] { return digest }
        let kind = document.kind(value)
        switch kind {
        case UInt8(ascii: "["):
            let digests = document.children(of: value).map { digest(of: $0, in: document) }
            known[value] = Self.digest { hasher in
                hasher.combine(kind)
                for digest in digests { hasher.combine(digest) }
            }
        case UInt8(ascii: "{"):
            // The order of the members does not matter, so their digests are added.
            let sum = document.children(of: value).reduce(UInt128(0)) { sum, child in
                let member = digest(of: child, in: document)
                return sum
                    &+ Self.digest { hasher in
                        hasher.combine(member)
                        hasher.combine(bytes: UnsafeRawBufferPointer(document.utf8(child - 1)))
                    }
            }
            known[value] = Self.digest { hasher in
                hasher.combine(kind)
                hasher.combine(sum)
            }
        case UInt8(ascii: "\""):
            return Self.digest { hasher in
                hasher.combine(kind)
                hasher.combine(bytes: UnsafeRawBufferPointer(document.utf8(value)))
            }
        default:
            let number = document.number(value)
            return Self.digest { hasher in
                hasher.combine(number == nil ? kind : 0)
                hasher.combine(number)
            }
        }
        return known[value] ?? 0
    }

    private static func digest(_ feed: (inout Hasher) -> Void) -> UInt128 {
        [UInt8(0), 1].reduce(0) { digest, half in
            var hasher = Hasher()
            hasher.combine(half)
            feed(&hasher)
            return digest << 64 | UInt128(UInt64(truncatingIfNeeded: Int64(hasher.finalize())))
        }
    }
}
