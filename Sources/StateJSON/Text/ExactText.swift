/// A text that is equal to another where its UTF-8 bytes are: the type of each key and identity that comes from outside.
///
/// A `String` does not do: Swift takes two spellings of one accented letter, and the signs of kelvin and the letter K, for
/// equal. A client that sends one of them would get what belongs to the other.
package struct ExactText: Hashable, Comparable, Sendable, ExpressibleByStringLiteral {
    package let text: String

    package init(_ text: String) { self.text = text }

    package init?(optional text: String?) {
        guard let text else { return nil }
        self.text = text
    }

    package init(stringLiteral text: String) { self.text = text }

    package static func == (left: ExactText, right: ExactText) -> Bool { JSONPointer.sameBytes(left.text, right.text) }

    package static func < (left: ExactText, right: ExactText) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        text.withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        // UTF-8 never has this byte, so it separates the texts of a pair.
        hasher.combine(UInt8(0xFF))
    }
}

/// RFC 8259, section 8.3.
package typealias JSONKey = ExactText

extension Dictionary where Key == String {
    package func value(named text: String) -> Value? {
        guard let index = index(forKey: text), JSONPointer.sameBytes(self[index].key, text) else { return nil }
        return self[index].value
    }
}
