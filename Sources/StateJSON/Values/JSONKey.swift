/// A key of a JSON object, for use as a dictionary key: keys are equal when their bytes are (RFC 8259, section 8.3).
///
/// A `String` does not do: two spellings of one accented letter are equal strings, but two members of an object.
package struct JSONKey: Hashable, Sendable {
    /// The key without quotes and escapes.
    package let text: String

    /// Makes a key.
    package init(_ text: String) { self.text = text }

    /// Whether the UTF-8 bytes are equal.
    package static func == (left: JSONKey, right: JSONKey) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    /// Hashes the UTF-8 bytes.
    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
