internal import StateJSON
internal import StateStore

struct Place {
    let pointer: JSONPointer
    let name: String
    var tokens: ArraySlice<String> { pointer.tokens[...] }

    /// How deep a document may be; a server reads no journal that is deeper than 1,000.
    static let depthMax = 400

    init(_ text: String, _ name: String = "/path") throws(Rejection) {
        guard let pointer = JSONPointer(text: text) else {
            throw Self.invalid(name, JSONPointer.expectation(of: text))
        }
        (self.pointer, self.name) = (pointer, name)
    }

    func check(_ ttl: Double?) throws(Rejection) {
        guard let ttl else { return }
        guard ttl > 0, DueTime(seconds: ttl) != nil else {
            throw Self.invalid("/ttl", "expected a number of seconds above 0, not beyond the year 9999")
        }
        guard !tokens.isEmpty else { throw Self.invalid("/ttl", "the whole document cannot expire") }
    }

    static func invalid(_ name: String, _ detail: String) -> Rejection {
        Rejection("invalid-action", "\(name): \(detail)", kind: .invalid, pointer: name)
    }

    func rejection(_ code: String, _ detail: String) -> Rejection {
        Rejection(code, "\(pointer.tokens.isEmpty ? "the document" : pointer.shown): \(detail)", pointer: name)
    }
}
