internal import StateJSON

extension JSONDocument {
    func types(_ value: Int, among wanted: SchemaRules.Types) -> SchemaRules.Types {
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

    func number(_ value: Int) -> SchemaNumber? {
        switch kind(value) {
        case UInt8(ascii: "l"): .whole(Int128(Int64(bitPattern: bits(value))))
        case UInt8(ascii: "u"): .whole(Int128(bits(value)))
        case UInt8(ascii: "d"): SchemaNumber(Double(bitPattern: bits(value)))
        default: nil
        }
    }

    /// How many elements, members or characters of Unicode a value has; nil for a value of another type.
    func count(of part: SchemaRules.Part, in value: Int) -> Int? {
        switch (part, kind(value)) {
        case (.characters, UInt8(ascii: "\"")):
            return utf8(value).reduce(0) { $0 + ($1 & 0xC0 == 0x80 ? 0 : 1) }
        case (.elements, UInt8(ascii: "[")): return childrenCount(value, step: 0)
        case (.members, UInt8(ascii: "{")): return childrenCount(value, step: 1)
        default: return nil
        }
    }

    private func childrenCount(_ container: Int, step: Int) -> Int {
        var (count, child) = (0, firstChild(container))
        while !isEnd(child) {
            count += 1
            child = after(child + step)
        }
        return count
    }

    func hasMember(_ name: UnsafeBufferPointer<UInt8>, _ object: Int) -> Bool {
        var key = firstChild(object)
        while !isEnd(key) {
            if utf8(key).hasBytes(of: name) { return true }
            key = after(key + 1)
        }
        return false
    }

    /// Whether a value is equal to one of a schema; the cost is that of the schema's value.
    func equals(_ value: Int, _ wanted: JSONValue) -> Bool {
        switch (wanted, kind(value)) {
        case (.null, UInt8(ascii: "n")), (.bool(true), UInt8(ascii: "t")), (.bool(false), UInt8(ascii: "f")):
            return true
        case (.string(let text), UInt8(ascii: "\"")): return text.withBytes { utf8(value).hasBytes(of: $0) }
        case (.array(let elements), UInt8(ascii: "[")):
            var child = firstChild(value)
            for element in elements {
                guard !isEnd(child), equals(child, element) else { return false }
                child = after(child)
            }
            return isEnd(child)
        case (.object(let object), UInt8(ascii: "{")):
            var (count, key) = (0, firstChild(value))
            while !isEnd(key) {
                count += 1
                guard count <= object.members.count, let member = object[string(key)], equals(key + 1, member) else {
                    return false
                }
                key = after(key + 1)
            }
            return count == object.members.count
        default:
            guard let wanted = SchemaNumber(wanted) else { return false }
            return number(value) == wanted
        }
    }
}

extension SchemaNumber {
    init?(_ value: JSONValue) {
        switch value {
        case .integer(let number): self = .whole(Int128(number))
        case .unsigned(let number): self = .whole(Int128(number))
        case .double(let number): self.init(number)
        // A check reads such a number as the nearest double as well.
        case .decimal(let text): self.init(Double(text) ?? .infinity)
        default: return nil
        }
    }
}
