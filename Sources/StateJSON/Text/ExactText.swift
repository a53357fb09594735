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

package enum NearestNames {
    /// At most three; O(m n) for the first m bytes of the name, at most 64, and the n bytes of all names.
    package static func of(_ name: String, among names: [String]) -> [String] {
        let start = Array(name.utf8.prefix(64))
        let scored = names.map { ($0, distance(start, Array($0.utf8))) }
        return scored.filter { $0.1 <= max(2, $0.0.utf8.count / 3) || $0.0.hasSuffix("/\(name)") }
            .sorted { ($0.1, $0.0) < ($1.1, $1.0) }.prefix(3).map(\.0)
    }

    /// Empty where no name is near.
    package static func hint(_ name: String, among names: [String]) -> String {
        of(name, among: names).first.map { "; did you mean \($0)?" } ?? ""
    }

    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var row = Array(0...right.count)
        for (i, a) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, b) in right.enumerated() {
                let cost = min(row[j] + 1, row[j + 1] + 1, diagonal + (a == b ? 0 : 1))
                diagonal = row[j + 1]
                row[j + 1] = cost
            }
        }
        return row[right.count]
    }
}
