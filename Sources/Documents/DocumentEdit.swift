internal import StateJSON
internal import StateStore

/// An action costs no more than it may: each place that an operation names, each member of a merge, and the bytes that
/// are moved, copied or compared are counted.
struct DocumentEdit {
    private(set) var tree: JSONTree
    private(set) var expiring: Place?
    private let context: ReducerContext
    private var work: WorkMeter? { context.work }
    /// An operation takes as long as four members of a merge, which are merged in one walk.
    private static let operationPlaces = 4
    /// How many bytes are moved in the time that one is tested: a test parses and compares the value.
    private static let testFactor = 16

    init(_ tree: JSONTree, _ context: ReducerContext) { (self.tree, self.context) = (tree, context) }

    mutating func apply(_ operation: String, at place: Place, _ value: JSONTree?) throws(Rejection) {
        try count(at: place)
        if let value { try Self.checkDepth(of: value, at: place) }
        guard let changed = tree.applying(operation, at: place.tokens, value) else {
            throw place.rejection("document.no-place", "there is no such place to \(operation)")
        }
        if operation != "replace", isInArray(place) {
            endExpiry(ofElementsFrom: place)
        } else {
            endExpiry(at: place)
        }
        tree = changed
    }

    mutating func set(_ value: JSONTree, at place: Place) throws(Rejection) {
        try count(at: place)
        try Self.checkDepth(of: value, at: place)
        let tokens = place.tokens
        // In an array, `add` inserts; a value replaces the element that is there.
        if let changed = tree.applying("replace", at: tokens, value) { return tree = changed }
        var (nearest, depth) = (tree, 0)
        while depth < tokens.count, let next = nearest.tree(at: tokens[depth...depth]) {
            (nearest, depth) = (next, depth + 1)
        }
        guard depth < tokens.count else { return }
        guard nearest.isArray != nil else {
            let pointer = JSONPointer(Array(tokens[..<depth])).shown
            throw place.rejection(
                "document.no-place", "\(pointer.isEmpty ? "the document" : pointer) is neither object nor array")
        }
        let added = tokens[(depth + 1)...].reversed().reduce(value) { .object(of: $1, $0) }
        guard let set = tree.applying("add", at: tokens[...depth], added) else {
            throw place.rejection("document.no-place", "an array has no such element")
        }
        tree = set
    }

    mutating func merge(_ value: JSONTree, of membersCount: Int, at place: Place) throws(Rejection) {
        try count(at: place, places: membersCount)
        endExpiry(merging: value, into: tree.tree(at: place.tokens), at: place.pointer)
        try set((tree.tree(at: place.tokens) ?? .emptyObject).merging(value), at: place)
    }

    mutating func apply(_ operation: Document.Patch.Operation, number: Int) throws(Rejection) {
        let name = "/patch/\(number)"
        let place = try Place(operation.path, "\(name)/path")
        switch operation.op {
        case .add, .replace:
            guard case .stored(let value)? = operation.value else {
                throw Place.invalid("\(name)/value", "is missing; expected a value")
            }
            try apply(operation.op.rawValue, at: place, value)
        case .remove: try apply("remove", at: place, nil)
        case .copy: try apply("add", at: place, try source(of: operation, name).value)
        case .move:
            let (from, value) = try source(of: operation, name)
            guard place.tokens.count <= from.tokens.count || !place.tokens.starts(with: from.tokens) else {
                throw place.rejection("document.no-place", "a value cannot be moved into itself")
            }
            guard place.pointer != from.pointer else { return }
            try apply("remove", at: from, nil)
            try apply("add", at: place, value)
        case .test:
            let found = tree.tree(at: place.tokens)
            try count(at: place, bytes: Self.testFactor * (found?.bytesCount ?? 0))
            guard let found, case .compared(let value)? = operation.value, found.equals(value) else {
                throw place.rejection("document.test-failed", "the value is another one")
            }
        }
    }

    private func source(
        of operation: Document.Patch.Operation, _ name: String
    ) throws(Rejection) -> (place: Place, value: JSONTree) {
        let place = try Place(operation.from ?? "", "\(name)/from")
        guard let found = tree.tree(at: place.tokens) else {
            throw place.rejection("document.no-place", "there is nothing to \(operation.op.rawValue)")
        }
        try count(at: place, bytes: found.bytesCount)
        return (place, found)
    }

    mutating func increment(by amount: JSONValue, at place: Place) throws(Rejection) {
        let old = tree.tree(at: place.tokens).map { $0.isArray == nil ? $0.value : .null } ?? .integer(0)
        guard let sum = old.sum(with: amount) else {
            throw place.rejection(
                "document.no-number", "the value and the amount have to be numbers whose sum has 64 bits")
        }
        try set(JSONTree(sum), at: place)
    }

    private static func checkDepth(of value: JSONTree, at place: Place) throws(Rejection) {
        guard place.tokens.count + value.depth <= Place.depthMax else {
            throw place.rejection("document.too-deep", "the document would have more than \(Place.depthMax) levels")
        }
    }

    /// Comes before the work of an operation, which may be too much.
    private func count(at place: Place, places: Int = DocumentEdit.operationPlaces, bytes: Int = 0) throws(Rejection) {
        guard let work, !work.spend(places: places, bytes: bytes) else { return }
        throw Rejection(
            "document.too-large",
            "one request has at most \(WorkMeter.placesMax / Self.operationPlaces) operations, merges at most \(WorkMeter.placesMax) members, moves and copies at most \(WorkMeter.bytesMax) bytes of the document, and tests at most \(WorkMeter.bytesMax / Self.testFactor); send it in parts",
            kind: .invalid, pointer: place.name)
    }

    mutating func expire(_ place: Place, after ttl: Double?) throws(Rejection) {
        guard let ttl, let due = DueTime(seconds: ttl) else { return }
        guard !isInArray(place) else {
            throw place.rejection(
                "document.no-ttl", "an element of an array cannot expire, because its place can change")
        }
        let path = JSONValue.string(place.pointer.description)
        let removal: JSONValue = ["type": .string(Document.Remove.type), "payload": ["path": path]]
        context.expire(place.pointer, after: due, by: removal.text)
        expiring = place
    }

    func endExpiry(at place: Place) { context.endExpiry(atOrBelow: place.pointer) }

    private func isInArray(_ place: Place) -> Bool {
        !place.tokens.isEmpty && tree.tree(at: place.tokens.dropLast())?.isArray == true
    }

    private func endExpiry(ofElementsFrom place: Place) {
        // Behind the last element, nothing moves.
        guard let index = place.tokens.last.flatMap(JSONPointer.index) else { return }
        context.endExpiry(inArray: JSONPointer(Array(place.tokens.dropLast())), from: index)
    }

    private func endExpiry(merging value: JSONTree, into tree: JSONTree?, at pointer: JSONPointer) {
        guard context.mayExpire else { return }
        guard value.isArray == false, tree?.isArray == false else {
            // A member that is null goes, also one that is null already.
            let isEqual = !value.isNull && tree.map { $0.equals(value) } ?? false
            return isEqual ? () : context.endExpiry(atOrBelow: pointer)
        }
        for (key, value) in value.members {
            endExpiry(merging: value, into: tree?.tree(at: [key]), at: pointer.appending(key))
        }
    }
}

extension JSONValue {
    /// Nil if one is no number, or the sum does not fit; whole numbers, also `1.0`, are added exactly within 64 bits,
    /// and others as doubles.
    fileprivate func sum(with other: JSONValue) -> JSONValue? {
        if case .decimal = self { return nil }
        guard let left = JSONNumber(self), let right = JSONNumber(other) else { return nil }
        // A double below those of 64 bits is whole, but not exact.
        for case .whole(let whole) in [left, right] where whole < Int64.min { return nil }
        if case .whole(let left) = left, case .whole(let right) = right {
            let sum = left + right
            return Int64(exactly: sum).map { .integer($0) } ?? UInt64(exactly: sum).map { .unsigned($0) }
        }
        guard let left = Self.double(left), let right = Self.double(right) else { return nil }
        return (left + right).isFinite ? .double(left + right) : nil
    }

    private static func double(_ number: JSONNumber) -> Double? {
        switch number {
        case .whole(let whole): Double(whole)
        // A double beyond 64 bits is whole, and so is its sum.
        case .double(let double): number.isWhole ? nil : double
        }
    }

    /// At least 1, for objects inside, too.
    var membersCount: Int {
        guard case .object(let object) = self else { return 1 }
        return object.members.reduce(1) { $0 + $1.value.membersCount }
    }
}

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
