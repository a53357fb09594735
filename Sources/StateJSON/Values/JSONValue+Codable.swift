internal import FoundationEssentials

extension JSONValue: Codable {
    /// Reads any value.
    public init(from decoder: any Decoder) throws {
        if let decoder = decoder as? JSONValueDecoder {
            decoder.session.isRead = true
            self = Self.value(of: decoder.session.document, at: decoder.index)
        } else if let members = try? decoder.container(keyedBy: JSONCodingKey.self) {
            var object = JSONObject()
            for key in members.allKeys { object[key.stringValue] = try members.decode(JSONValue.self, forKey: key) }
            self = .object(object)
        } else if var elements = try? decoder.unkeyedContainer() {
            var array: [JSONValue] = []
            while !elements.isAtEnd { array.append(try elements.decode(JSONValue.self)) }
            self = .array(array)
        } else {
            let value = try decoder.singleValueContainer()
            // `Decoder` cannot tell the type of a value, so each type is tried; an error only means another type.
            if value.decodeNil() {
                self = .null
            } else if let bool = try? value.decode(Bool.self) {
                self = .bool(bool)
            } else if let integer = try? value.decode(Int64.self) {
                self = .integer(integer)
            } else if let unsigned = try? value.decode(UInt64.self) {
                self = .unsigned(unsigned)
            } else if let double = try? value.decode(Double.self) {
                self = .double(double)
            } else {
                self = .string(try value.decode(String.self))
            }
        }
    }

    /// Writes the value, an object in the order of its members.
    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .object(let object):
            var members = encoder.container(keyedBy: JSONCodingKey.self)
            for (key, value) in object.members { try members.encode(value, forKey: JSONCodingKey(stringValue: key)) }
        case .array(let array):
            var elements = encoder.unkeyedContainer()
            for value in array { try elements.encode(value) }
        case .null:
            var value = encoder.singleValueContainer()
            try value.encodeNil()
        case .bool(let bool): try bool.encode(to: encoder)
        case .integer(let integer): try integer.encode(to: encoder)
        case .unsigned(let unsigned): try unsigned.encode(to: encoder)
        case .double(let double): try double.encode(to: encoder)
        case .decimal(let text):
            if let encoder = encoder as? JSONValueEncoder {
                encoder.session.writer.raw(text.utf8)
            } else {
                try (Decimal(string: text) ?? .nan).encode(to: encoder)
            }
        case .string(let string): try string.encode(to: encoder)
        }
    }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// `null`.
    public init(nilLiteral: ()) { self = .null }
    /// `true` or `false`.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// A whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// A number.
    public init(floatLiteral value: Double) { self = .double(value) }
    /// A string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// An array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// An object; the last of two members with one key counts.
    public init(dictionaryLiteral members: (String, JSONValue)...) { self = .of(members) }
}
