package import StateJSON
internal import Synchronization

/// A JSON value whose copies share what they have in common: the form in which a state is published.
///
/// A change copies the way to it, so the value before the change stays valid and costs nothing to keep. A comparison of two
/// values skips what they share. The state of a domain without Swift types is made of texts, objects and arrays: what is small
/// is kept as its text, equal values have equal trees, and the members of an object have one order: numbers by size, then the
/// other names by their UTF-8 bytes. The state of a domain of Swift types is made of the other shapes, by its codec.
package final class JSONTree: Sendable {
    enum Shape {
        /// Compact JSON of a scalar, or of a value with at most ``textBytesMax`` bytes, with members in their order.
        case text([UInt8])
        /// The members, which are trees, without their type: all maps of objects share one specialization.
        case object(PersistentMap<EntityKey, any AnyObject & Sendable>)
        case array(PersistentList)
        /// Compact JSON of a Swift value, whose members have the order of its encoder.
        case leaf([UInt8])
        case record([JSONTree])
        case entities(TableTree<EntityKey, any AnyObject & Sendable>)
        case order(TableTree<Ranks.Rank, EntityKey>)
    }

    static var textBytesMax: Int { 512 }
    /// How many bytes a turn encodes and hashes without need, at most.
    private static var shortBytesMax: Int { 65_536 }
    private static var pieceBytesMax: Int { 16 << 10 }

    let shape: Shape
    private let annex: Annex?

    private enum Annex {
        case contents(Contents)
        case names(MemberNames)
    }

    private init(_ shape: Shape, _ annex: Annex?) { (self.shape, self.annex) = (shape, annex) }

    convenience init(_ shape: Shape) { self.init(shape, nil) }

    convenience init(_ shape: Shape, _ sizes: Sizes) { self.init(shape, .contents(Contents(sizes))) }

    convenience init(record members: [JSONTree], _ names: MemberNames) { self.init(.record(members), .names(names)) }

    convenience init(text: [UInt8]) {
        self.init(.text(text), text.count > Self.shortBytesMax ? .contents(Contents(nil)) : nil)
    }

    /// The length of the compact JSON of a value of a document, or of a leaf; of what else a codec makes, nobody has counted it: 0.
    package var bytesCount: Int { contents?.sizes?.bytesCount ?? textCount }
    /// About how many parts there are to encode: each entity of a table counts one, and every four bytes of a leaf, because 4 KB
    /// take about as long as 1,000 entities, 0.1 ms.
    var partsCount: Int {
        switch shape {
        case .text, .object, .array: contents?.sizes?.partsCount ?? 1
        case .leaf(let text): 1 + text.count / 4
        case .record(let members): members.reduce(1) { $0 + $1.partsCount }
        case .entities(let table): table.map.count
        case .order(let table): table.map.count
        }
    }
    /// How many bytes of memory a value of a document takes, with what it shares with others.
    package var memoryBytes: Int { contents?.sizes?.memoryBytes ?? 48 + Sizes.allocation(32 + textCount) }
    private var contents: Contents? { if case .contents(let contents)? = annex { contents } else { nil } }

    var names: MemberNames { if case .names(let names)? = annex { names } else { .none } }

    var sizes: Sizes? { contents?.sizes }

    private var textCount: Int {
        switch shape {
        case .text(let text), .leaf(let text): text.count
        default: 0
        }
    }

    package static let emptyObject = JSONTree()

    /// Makes a tree of a value; O(n log n).
    package convenience init(_ value: JSONValue) {
        var writer = JSONWriter()
        self.init(value, &writer)
    }

    private convenience init(_ value: JSONValue, _ writer: inout JSONWriter) {
        writer.bytes.removeAll(keepingCapacity: true)
        var room = Self.textBytesMax
        let isShort = Self.mayFit(value, &room) && Self.write(value, to: &writer)
        switch value {
        case .object(let object) where !isShort:
            var members = object.members.map { (Self.key($0.key), JSONTree($0.value, &writer)) }
            members.sort { $0.0 < $1.0 }
            self.init(members: members)
        case .array(let values) where !isShort: self.init(elements: values.map { JSONTree($0, &writer) })
        default:
            if !isShort { value.write(to: &writer) }
            // The writer's buffer has room for more, and an array may have millions of numbers.
            self.init(text: writer.bytes.withUnsafeBufferPointer { Array($0) })
        }
    }

    convenience init(members: [(EntityKey, JSONTree)]) {
        var sizes = Sizes()
        for (key, tree) in members { sizes.replace(nil, by: tree, named: key) }
        self.init(.object(PersistentMap(sorted: members.map { ($0, $1 as any AnyObject & Sendable) })), sizes)
    }

    private convenience init(elements: [JSONTree]) {
        var sizes = Sizes()
        for tree in elements { sizes.replace(nil, by: tree) }
        self.init(.array(PersistentList(elements)), sizes)
    }

    package static func object(of name: String, _ value: JSONTree) -> JSONTree {
        JSONTree(members: [(key(name), value)]).normalized
    }

    /// A short text is opened, too; nil for a scalar.
    var opened: JSONTree? {
        guard case .text = shape else { return self }
        var writer = JSONWriter()
        switch value {
        case .object(let object):
            return JSONTree(members: object.members.map { (Self.key($0.key), JSONTree($0.value, &writer)) })
        case .array(let values): return JSONTree(elements: values.map { JSONTree($0, &writer) })
        default: return nil
        }
    }

    /// The cost is O(n); the error is for an entity that cannot be encoded, of which a committed state has none.
    func encoded() throws -> [UInt8] {
        switch shape {
        case .text(let text), .leaf(let text): return text
        case .object, .array, .record, .entities, .order: break
        }
        var writer = JSONWriter(capacity: bytesCount)
        try write(to: &writer)
        return writer.bytes
    }

    /// The compact JSON of a value without entities; O(n).
    package var text: [UInt8] {
        // Losing the error is right: only entities are encoded.
        (try? encoded()) ?? []
    }

    package var value: JSONValue {
        // Losing the error is right: the text comes from a value.
        (try? JSONValue(parsing: text, depthMax: .max)) ?? .null
    }

    package var isLong: Bool { bytesCount > Self.shortBytesMax }

    package var isTagged: Bool { contents?.tag.withLock { $0 != nil } ?? false }

    /// The content tag, which the first call makes; O(n).
    package var tag: String {
        if let tag = contents?.tag.withLock(\.self) { return tag }
        let tag = Encoded(text).tag
        note(tag: tag)
        return tag
    }

    func note(tag: String) { contents?.tag.withLock { $0 = tag } }

    /// Makes the text now, for the one who writes the value next.
    func prepareText() {
        let text = text
        contents?.text.withLock { $0 = text }
    }

    func write(to writer: inout JSONWriter) throws {
        if let text = contents?.text.withLock({ $0.take() }) { return writer.raw(text) }
        var isFirst = true
        switch shape {
        case .text(let text), .leaf(let text): writer.raw(text)
        case .array(let elements):
            writer.byte(UInt8(ascii: "["))
            try elements.visit { (element) throws in
                writer.separator(&isFirst)
                try element.write(to: &writer)
            }
            writer.byte(UInt8(ascii: "]"))
        case .order(let table):
            writer.byte(UInt8(ascii: "["))
            try table.map.visit { (_, key) throws in
                writer.separator(&isFirst)
                try table.form.write(key, to: &writer)
            }
            writer.byte(UInt8(ascii: "]"))
        case .object, .record, .entities:
            writer.byte(UInt8(ascii: "{"))
            try visitMembers { (name, write) throws in try writer.member(name, &isFirst, write) }
            writer.byte(UInt8(ascii: "}"))
        }
    }

    private func visitMembers(_ body: (String, (inout JSONWriter) throws -> Void) throws -> Void) throws {
        switch shape {
        case .object(let members):
            try members.visit { (key, member) throws in try body(key.token) { try Self.tree(member).write(to: &$0) } }
        case .record(let members):
            for (name, tree) in zip(names.all, members) { try body(name) { try tree.write(to: &$0) } }
        case .entities(let table):
            try table.map.visit { (key, entry) throws in try body(key.token) { $0.raw(try table.form.entity(entry)) } }
        case .text, .leaf, .array, .order: break
        }
    }

    /// An object comes as objects of about 16 KiB, which stay in a processor's cache while they are written and parsed.
    func visitTexts(_ take: ([UInt8]) throws -> Void) throws {
        switch shape {
        case .object, .entities: break
        case .text, .leaf, .array, .order, .record: return try take(try encoded())
        }
        // The taker may keep a text, and one with a large member leaves no large buffer behind.
        var (writer, isFirst) = (JSONWriter(capacity: Self.pieceBytesMax), true)
        writer.byte(UInt8(ascii: "{"))
        try visitMembers { (name, write) throws in
            if writer.bytes.count >= Self.pieceBytesMax - 1024 {
                writer.byte(UInt8(ascii: "}"))
                try take(writer.bytes)
                (writer, isFirst) = (JSONWriter(capacity: Self.pieceBytesMax), true)
                writer.byte(UInt8(ascii: "{"))
            }
            try writer.member(name, &isFirst, write)
        }
        writer.byte(UInt8(ascii: "}"))
        try take(writer.bytes)
    }

    /// False for a value that has more bytes than the room; the cost is at most that of the room.
    private static func mayFit(_ value: JSONValue, _ room: inout Int) -> Bool {
        switch value {
        case .object(let object):
            for (key, value) in object.members {
                // Two quotes, a colon, and a comma or a brace.
                room -= key.utf8.count + 4
                guard mayFit(value, &room) else { return false }
            }
        case .array(let elements):
            for element in elements {
                room -= 1
                guard mayFit(element, &room) else { return false }
            }
        case .string(let text), .decimal(let text): room -= text.utf8.count
        default: room -= 1
        }
        return room >= 0
    }

    /// False, with a part written, for a value with more than ``textBytesMax`` bytes.
    private static func write(_ value: JSONValue, to writer: inout JSONWriter) -> Bool {
        var isFirst = true
        switch value {
        case .object(let object):
            var members = object.members.map { (key: key($0.key), value: $0.value) }
            if members.count > 1 { members.sort { $0.key < $1.key } }
            writer.byte(UInt8(ascii: "{"))
            for member in members {
                let name = member.key.token
                let isShort = writer.member(name, &isFirst) { write(member.value, to: &$0) }
                guard isShort, writer.bytes.count < textBytesMax else { return false }
            }
            writer.byte(UInt8(ascii: "}"))
        case .array(let elements):
            writer.byte(UInt8(ascii: "["))
            for element in elements {
                writer.separator(&isFirst)
                guard write(element, to: &writer), writer.bytes.count < textBytesMax else { return false }
            }
            writer.byte(UInt8(ascii: "]"))
        default: value.write(to: &writer)
        }
        return true
    }

    static func tree(_ object: any AnyObject) -> JSONTree { unsafeDowncast(object, to: JSONTree.self) }

    static func key(_ name: String) -> EntityKey { Int(token: name).map { .number($0) } ?? .text(name) }

    /// Whether the value is an array; nil for a scalar.
    package var isArray: Bool? {
        switch shape {
        case .object, .record, .entities: false
        case .array, .order: true
        case .text(let text), .leaf(let text):
            switch text.first {
            case UInt8(ascii: "{"): false
            case UInt8(ascii: "["): true
            default: nil
            }
        }
    }

    /// How many arrays and objects lie in each other, at most; O(1), but for an array or an object that is kept as text.
    package var depth: Int {
        guard case .text(let text) = shape else { return (sizes?.depths.deepest ?? 0) + 1 }
        return isArray == nil ? 0 : Self.depth(of: text)
    }

    private static func depth(of text: [UInt8]) -> Int {
        var (depth, deepest, isInString, isEscaped) = (0, 0, false, false)
        for byte in text {
            if isInString {
                isInString = isEscaped || byte != UInt8(ascii: "\"")
                isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
                continue
            }
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                deepest = max(deepest, depth)
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: "\""): isInString = true
            default: break
            }
        }
        return deepest
    }

    /// The value after an operation of a patch (RFC 6902).
    ///
    /// The cost is that of the way to the place, and of the new value.
    ///
    /// - Returns: nil if the operation, `add`, `remove` or `replace`, names a value that is not there.
    package func applying(_ operation: String, at tokens: ArraySlice<String>, _ new: JSONTree?) -> JSONTree? {
        guard let token = tokens.first else { return operation == "remove" ? nil : new }
        let rest = tokens.dropFirst()
        switch shape {
        case .text(var text):
            guard isArray != nil else { return nil }
            // A long value is not written and read again on its way into a short one.
            if let new, new.bytesCount > Self.textBytesMax {
                return opened?.applying(operation, at: tokens, new)
            }
            // A value in a short text makes way for another one without a look at the rest.
            if operation == "replace", let new, let place = JSONText.place(of: tokens, in: text),
                text.count - place.count + new.bytesCount <= Self.textBytesMax
            {
                text.replaceSubrange(place, with: new.text)
                return JSONTree(text: text)
            }
            var value = value
            return value.apply(operation, at: tokens, new?.value) ? JSONTree(value) : nil
        case .object(var members):
            let key = Self.key(token)
            let old = members[key].map(Self.tree)
            let changed = rest.isEmpty ? (operation == "remove" ? nil : new) : old?.applying(operation, at: rest, new)
            switch (old, changed) {
            case (nil, nil): return nil
            case (nil, let changed?):
                guard operation == "add", rest.isEmpty else { return nil }
                members.set(key, changed)
            case (_?, nil):
                guard operation == "remove", rest.isEmpty else { return nil }
                members.remove(key)
            case (_?, let changed?): members.set(key, changed)
            }
            return with(.object(members), old, changed, named: key)
        case .array(var elements):
            guard let index = token == "-" ? elements.count : JSONPointer.index(token), index <= elements.count else {
                return nil
            }
            let isInsertion = operation == "add" && rest.isEmpty
            guard isInsertion || index < elements.count else { return nil }
            let old = isInsertion ? nil : elements[index]
            let changed = rest.isEmpty ? (operation == "remove" ? nil : new) : old?.applying(operation, at: rest, new)
            switch (old, changed) {
            case (nil, let changed?): elements.insert(changed, at: index)
            case (_?, nil) where operation == "remove" && rest.isEmpty: elements.remove(at: index)
            case (_?, let changed?): elements[index] = changed
            default: return nil
            }
            return with(.array(elements), old, changed)
        case .leaf, .record, .entities, .order: preconditionFailure("a codec applies operations to its part")
        }
    }

    private func with(_ shape: Shape, _ old: JSONTree?, _ new: JSONTree?, named key: EntityKey? = nil) -> JSONTree {
        var sizes = sizes ?? Sizes()
        sizes.replace(old, by: new, named: key)
        return JSONTree(shape, sizes).normalized
    }

    var normalized: JSONTree { bytesCount <= Self.textBytesMax ? JSONTree(text: text) : self }

    /// The sizes of an object or an array, which a change of one child brings up to date without a walk.
    struct Sizes: Sendable {
        /// With a comma behind each child.
        private var childrenBytes = 0
        private(set) var partsCount = 1
        /// The object itself, with what is known of it.
        private(set) var memoryBytes = 224
        fileprivate var depths = Depths()

        var bytesCount: Int { childrenBytes == 0 ? 2 : childrenBytes + 1 }

        mutating func replace(_ old: JSONTree?, by new: JSONTree?, named key: EntityKey? = nil) {
            let (name, node) = key.map(Self.sizes) ?? (0, 80)
            if let new {
                childrenBytes += name + new.bytesCount + 1
                partsCount += new.partsCount
                memoryBytes += node + new.memoryBytes
            }
            if let old {
                childrenBytes -= name + old.bytesCount + 1
                partsCount -= old.partsCount
                memoryBytes -= node + old.memoryBytes
            }
            depths.replace(old?.depth ?? 0, by: new?.depth ?? 0)
        }

        static func allocation(_ bytes: Int) -> Int { (bytes + 23) & ~15 }

        private static func sizes(of key: EntityKey) -> (name: Int, node: Int) {
            guard case .text(let text) = key else { return (key.token.utf8.count + 3, 80) }
            var writer = JSONWriter(capacity: text.utf8.count + 8)
            writer.string(text)
            // A short text lies in the node.
            return (writer.bytes.count + 1, 80 + (text.utf8.count > 15 ? allocation(33 + text.utf8.count) : 0))
        }
    }
}

extension JSONWriter {
    mutating func member<Result>(
        _ name: String, _ isFirst: inout Bool, _ write: (inout JSONWriter) throws -> Result
    ) rethrows -> Result {
        separator(&isFirst)
        string(name)
        byte(UInt8(ascii: ":"))
        return try write(&self)
    }
}

/// A payload that has a tree is made where it is decoded, and not in the turn.
extension JSONTree: Codable {
    package convenience init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(JSONValue.self))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }
}

private final class Contents: Sendable {
    let sizes: JSONTree.Sizes?
    /// The compact JSON, where it is made before it is needed; who writes the value takes it.
    let text = Mutex<[UInt8]?>(nil)
    let tag = Mutex<String?>(nil)

    init(_ sizes: JSONTree.Sizes?) { self.sizes = sizes }
}

/// How many children of an array or an object have which depth: a change then knows the depth of the whole without a walk.
private struct Depths: Sendable {
    /// The depths that children have, without 0, and the number of the children; the deepest comes last.
    private var counts: [(depth: Int, count: Int)] = []

    var deepest: Int { counts.last?.depth ?? 0 }

    mutating func replace(_ old: Int, by new: Int) {
        guard old != new else { return }
        change(new, by: 1)
        change(old, by: -1)
    }

    private mutating func change(_ depth: Int, by number: Int) {
        guard depth > 0 else { return }
        let index = counts.firstIndex { $0.depth >= depth } ?? counts.endIndex
        if index == counts.endIndex || counts[index].depth != depth {
            counts.insert((depth, number), at: index)
        } else {
            counts[index].count += number
            if counts[index].count == 0 { counts.remove(at: index) }
        }
    }
}
