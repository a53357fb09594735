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
            throw Rejection(
                "invalid-action", "\(name): \(JSONPointer.expectation(of: text))", kind: .invalid, pointer: name)
        }
        (self.pointer, self.name) = (pointer, name)
    }

    func check(_ ttl: Double?) throws(Rejection) {
        guard let ttl else { return }
        guard ttl > 0, DueTime(seconds: ttl) != nil else {
            throw Rejection(
                "invalid-action", "/ttl: expected a number of seconds above 0, not beyond the year 9999",
                kind: .invalid,
                pointer: "/ttl")
        }
        guard !tokens.isEmpty else {
            throw Rejection(
                "invalid-action", "/ttl: the whole document cannot expire", kind: .invalid, pointer: "/ttl")
        }
    }

    static func missing(_ name: String, _ expected: String) -> Rejection {
        Rejection("invalid-action", "\(name): is missing; \(expected)", kind: .invalid, pointer: name)
    }

    func rejection(_ code: String, _ detail: String) -> Rejection {
        Rejection(code, "\(pointer.tokens.isEmpty ? "the document" : pointer.shown): \(detail)", pointer: name)
    }
}
