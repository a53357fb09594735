/// A key of a JSON object: the same as another where their bytes are the same (RFC 8259, section 8.3).
///
/// Swift's `String` is the wrong key of a dictionary here: two spellings of one accented letter are the same string, and
/// two members of an object.
package struct JSONKey: Hashable, Sendable {
    /// The key without quotes and escapes.
    package let text: String

    /// Makes a key.
    package init(_ text: String) { self.text = text }

    /// Whether the bytes are the same.
    package static func == (left: JSONKey, right: JSONKey) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    /// Feeds the bytes.
    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
