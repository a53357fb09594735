package import StateJSON

/// An idempotency key, with what it counts for: a subject, and a line of a bulk load.
package struct IdempotencyKey: Hashable, Sendable {
    /// The key that the client has sent.
    package let key: ExactText
    /// The subject that has sent it, if known.
    package let subject: ExactText?
    /// The line of a bulk load, from 0, each of which is a commit of its own; nil for another body.
    package let line: Int?

    package init(_ key: String, of subject: String? = nil, line: Int? = nil) {
        self.key = ExactText(key)
        self.subject = ExactText(optional: subject)
        self.line = line
    }

    /// Reads the text that a journal has of a key: the subject before a NUL, and the line behind a line feed.
    ///
    /// Neither a subject nor a key has a control character, so the first NUL and the last line feed are these; any other text
    /// is a key as it is, and is spelled again as it was.
    package init(recorded text: String) {
        let bytes = text.utf8
        let nul = bytes.firstIndex(of: 0)
        var rest = nul.map { text[text.utf8.index(after: $0)...] } ?? text[...]
        var line: Int?
        if let feed = rest.utf8.lastIndex(of: UInt8(ascii: "\n")) {
            let digits = rest.utf8[rest.utf8.index(after: feed)...]
            // Only the digits that `recorded` writes.
            if let number = Int(String(Substring(digits))), number >= 0, "\(number)".utf8.elementsEqual(digits) {
                line = number
                rest = rest[..<feed]
            }
        }
        self.init(String(rest), of: nul.map { String(text[..<$0]) }, line: line)
    }

    /// The text that a journal has of the key.
    package var recorded: String {
        guard subject != nil || line != nil else { return key.text }
        return (subject.map { "\($0.text)\0" } ?? "") + key.text + (line.map { "\n\($0)" } ?? "")
    }
}

extension IdempotencyKey: ExpressibleByStringInterpolation {
    /// Makes a key of no subject and no line, as ``init(_:of:line:)`` does.
    package init(stringLiteral text: String) { self.init(text, of: nil) }
}
