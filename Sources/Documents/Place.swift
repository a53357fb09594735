internal import StateJSON
internal import StateStore

/// A place in the document that a client names.
struct Place {
    let pointer: JSONPointer
    /// The member of the payload that names it.
    let name: String
    var tokens: ArraySlice<String> { pointer.tokens[...] }

    /// How deep a document may be; a server reads no journal that is deeper than 1,000.
    static let depthMax = 400

    init(_ text: String, _ name: String = "/path") throws(Rejection) {
        guard let pointer = JSONPointer(text: text) else {
            throw Rejection(
                "invalid-action", "\(name): expected a JSON Pointer, empty or beginning with /", kind: .invalid,
                pointer: name)
        }
        (self.pointer, self.name) = (pointer, name)
    }

    static func missing(_ name: String, _ expected: String) -> Rejection {
        Rejection("invalid-action", "\(name): is missing; \(expected)", kind: .invalid, pointer: name)
    }

    /// The rejection where the document has nothing to work on here.
    func rejection(_ code: String, _ detail: String) -> Rejection {
        Rejection(code, "\(pointer.tokens.isEmpty ? "the document" : pointer.description): \(detail)", pointer: name)
    }
}

extension JSONState {
    /// Carries out an operation of RFC 6902 but `test`, `move` and `copy`.
    mutating func apply(_ operation: String, at place: Place, _ value: JSONTree?) throws(Rejection) {
        if let value { try Self.checkDepth(of: value, at: place) }
        guard let changed = tree.applying(operation, at: place.tokens, value) else {
            throw place.rejection("document.no-place", "there is no such place to \(operation)")
        }
        tree = changed
    }

    /// Sets the value at a place.
    mutating func set(_ value: JSONTree, at place: Place) throws(Rejection) {
        try Self.checkDepth(of: value, at: place)
        guard let last = place.tokens.last else { return tree = value }
        var changed = tree
        for length in 0..<place.tokens.count {
            let way = place.tokens.prefix(length)
            if let found = changed.tree(at: way) {
                guard found.isArray != nil else {
                    let pointer = JSONPointer(Array(way)).description
                    throw place.rejection(
                        "document.no-place", "\(pointer.isEmpty ? "the document" : pointer) is neither object nor array"
                    )
                }
            } else {
                guard let wider = changed.applying("add", at: way, .emptyObject) else {
                    throw place.rejection("document.no-place", "an array has no such element")
                }
                changed = wider
            }
        }
        // In an array, `add` inserts; a value replaces the element that is there.
        let isThere = last != "-" && changed.tree(at: place.tokens) != nil
        guard let set = changed.applying(isThere ? "replace" : "add", at: place.tokens, value) else {
            throw place.rejection("document.no-place", "an array has no such element")
        }
        tree = set
    }

    /// Merges a value (RFC 7396).
    mutating func merge(_ value: JSONValue, at place: Place) throws(Rejection) {
        let merged = (tree.tree(at: place.tokens) ?? .emptyObject).merging(value)
        try set(merged, at: place)
    }

    /// Carries out an operation of a JSON Patch.
    ///
    /// - Parameter copiedBytes: how much the operations before have copied; copies of copies would double each time.
    mutating func apply(
        _ operation: Document.Patch.Operation, number: Int, copiedBytes: inout Int
    ) throws(Rejection) {
        let name = "/patch/\(number)"
        let place = try Place(operation.path, "\(name)/path")
        func source() throws(Rejection) -> (Place, JSONTree) {
            let place = try Place(operation.from ?? "", "\(name)/from")
            guard let found = tree.tree(at: place.tokens) else {
                throw place.rejection("document.no-place", "there is nothing to \(operation.op.rawValue)")
            }
            return (place, found)
        }
        switch operation.op {
        case .add, .replace: try apply(operation.op.rawValue, at: place, operation.value.map { JSONTree($0) })
        case .remove: try apply("remove", at: place, nil)
        case .copy:
            let (from, value) = try source()
            copiedBytes += value.bytesCount
            guard copiedBytes <= Document.copiedBytesMax else {
                throw from.rejection(
                    "document.too-large", "a patch copies at most \(Document.copiedBytesMax) bytes of the document")
            }
            try apply("add", at: place, value)
        case .move:
            let (from, value) = try source()
            guard place.tokens.count <= from.tokens.count || !place.tokens.starts(with: from.tokens) else {
                throw place.rejection("document.no-place", "a value cannot be moved into itself")
            }
            guard place.pointer != from.pointer else { return }
            try apply("remove", at: from, nil)
            try apply("add", at: place, value)
        case .test:
            guard tree.tree(at: place.tokens)?.value == operation.value else {
                throw place.rejection("document.test-failed", "the value is another one")
            }
        }
    }

    /// Adds to a number.
    mutating func increment(by amount: JSONValue, at place: Place) throws(Rejection) {
        let old = tree.tree(at: place.tokens).map { $0.isArray == nil ? $0.value : .null } ?? .integer(0)
        guard let sum = old.sum(with: amount) else {
            throw place.rejection(
                "document.no-number", "the value is no number of 64 bits, or the sum would be none")
        }
        try set(JSONTree(sum), at: place)
    }

    private static func checkDepth(of value: JSONTree, at place: Place) throws(Rejection) {
        guard place.tokens.count + value.depth <= Place.depthMax else {
            throw place.rejection("document.too-deep", "the document would have more than \(Place.depthMax) levels")
        }
    }
}

extension JSONTree {
    /// The value with another one merged into it (RFC 7396).
    fileprivate func merging(_ patch: JSONValue) -> JSONTree {
        guard case .object(let members) = patch else { return JSONTree(patch) }
        var merged = isArray == false ? self : .emptyObject
        for (key, value) in members.members {
            let old = merged.tree(at: [key])
            let operation = value == .null ? "remove" : "add"
            let new = value == .null ? nil : (old ?? .emptyObject).merging(value)
            // A member that is not there need not be removed.
            merged = merged.applying(operation, at: [key], new) ?? merged
        }
        return merged
    }
}

extension JSONValue {
    /// The sum of two numbers; nil where one is none, or the sum would be none.
    fileprivate func sum(with other: JSONValue) -> JSONValue? {
        if case .integer(let left) = self, case .integer(let right) = other {
            let (sum, isOverflow) = left.addingReportingOverflow(right)
            return isOverflow ? nil : .integer(sum)
        }
        guard let left = number, let right = other.number, (left + right).isFinite else { return nil }
        return .double(left + right)
    }

    private var number: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .unsigned(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }
}
