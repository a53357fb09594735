/// What names an entity: it has one spelling as a key of a JSON object.
///
/// A type of one's own around an `Int` or a `String` needs nothing but the two conformances:
///
/// ```swift
/// struct TaskID: RawRepresentable, EntityID { let rawValue: Int }
/// ```
public protocol EntityID: Codable, Sendable {
    /// The spelling as a JSON key.
    var token: String { get }
    /// Reads a spelling; nil when no ID is spelled so.
    init?(token: String)
    /// Where it stands among the IDs of a table.
    ///
    /// IDs with the same key are the same. Left out, it is the spelling.
    var key: EntityKey { get }
    /// Reads what ``key`` says; nil when no ID has this key.
    init?(key: EntityKey)
}

/// How a table sorts its entities: numbers by size, then texts by their bytes.
///
/// Not by Swift's order of strings: it takes two spellings of one accented letter for the same string, which are two
/// keys in JSON.
public enum EntityKey: Comparable, Sendable {
    /// An ID that is a number.
    case number(Int)
    /// Any other.
    case text(String)

    /// The spelling as a JSON key.
    public var token: String {
        switch self {
        case .number(let number): String(number)
        case .text(let text): text
        }
    }

    /// Whether one stands before another.
    public static func < (left: EntityKey, right: EntityKey) -> Bool {
        switch (left, right) {
        case (.number(let left), .number(let right)): left < right
        case (.text(let left), .text(let right)): left.utf8.lexicographicallyPrecedes(right.utf8)
        case (.number, .text): true
        case (.text, .number): false
        }
    }

    /// Whether they are the same number, or the same bytes.
    public static func == (left: EntityKey, right: EntityKey) -> Bool {
        switch (left, right) {
        case (.number(let left), .number(let right)): left == right
        case (.text(let left), .text(let right)): left.utf8.elementsEqual(right.utf8)
        default: false
        }
    }
}

extension EntityID {
    /// The spelling.
    public var key: EntityKey { .text(token) }
    /// Reads the spelling.
    public init?(key: EntityKey) { self.init(token: key.token) }
}

extension EntityID where Self: RawRepresentable, RawValue: EntityID {
    /// As the raw value is spelled.
    public var token: String { rawValue.token }
    /// Reads a raw value's spelling.
    public init?(token: String) {
        guard let raw = RawValue(token: token) else { return nil }
        self.init(rawValue: raw)
    }
    /// As the raw value stands.
    public var key: EntityKey { rawValue.key }
    /// Reads a raw value's key.
    public init?(key: EntityKey) {
        guard let raw = RawValue(key: key) else { return nil }
        self.init(rawValue: raw)
    }
}

extension Int: EntityID {
    /// The digits.
    public var token: String { String(self) }
    /// Reads digits as ``token`` writes them: without a plus sign or leading zeros.
    public init?(token: String) {
        let digits = token.utf8.first == UInt8(ascii: "-") ? token.utf8.dropFirst() : token.utf8[...]
        guard let first = digits.first, first != UInt8(ascii: "0") || token.utf8.count == 1,
            first != UInt8(ascii: "+")
        else { return nil }
        self.init(token)
    }
    /// The number.
    public var key: EntityKey { .number(self) }
    /// Reads a number.
    public init?(key: EntityKey) {
        guard case .number(let number) = key else { return nil }
        self = number
    }
}

extension String: EntityID {
    /// The string itself.
    public var token: String { self }
    /// Takes any string.
    public init?(token: String) { self = token }
    /// The string.
    public var key: EntityKey { .text(self) }
    /// Reads a text.
    public init?(key: EntityKey) {
        guard case .text(let text) = key else { return nil }
        self = text
    }
}
