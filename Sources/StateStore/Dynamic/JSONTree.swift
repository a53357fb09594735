package import StateJSON

/// A JSON value whose copies share what they have in common: the state of a domain without Swift types.
///
/// A change copies the way to it, so the value before the change stays valid and costs nothing to keep. A comparison of two
/// values skips what they share. What is small is kept as its text; equal values have equal trees, and the members of an
/// object have one order: numbers by size, then the other names by their UTF-8 bytes.
package final class JSONTree: Sendable {
    enum Shape {
        /// Compact JSON of a scalar, or of a value with at most ``textBytesMax`` bytes, with members in their order.
        case text([UInt8])
        /// The members, which are trees, without their type: all maps of objects share one specialization.
        case object(PersistentMap<EntityKey, any AnyObject & Sendable>)
        case array(PersistentList<JSONTree>)
    }

    /// How long the text of an object or an array may be that is kept as text.
    static var textBytesMax: Int { 512 }

    let shape: Shape
    /// The length of the compact JSON.
    package let bytesCount: Int
    /// About how many parts there are to encode.
    let partsCount: Int
    /// The depths of the children; empty for a text.
    fileprivate let depths: Depths

    fileprivate init(_ shape: Shape, bytesCount: Int, partsCount: Int, depths: Depths = Depths()) {
        (self.shape, self.bytesCount, self.partsCount, self.depths) = (shape, bytesCount, partsCount, depths)
    }

    private convenience init(text: [UInt8]) { self.init(.text(text), bytesCount: text.count, partsCount: 1) }

    /// The empty object.
    package static let emptyObject = JSONTree(text: Array("{}".utf8))

    /// Makes a tree of a value; O(n log n).
    package convenience init(_ value: JSONValue) {
        var writer = JSONWriter()
        self.init(value, &writer)
    }

    /// - Parameter writer: a writer that the values of a tree share.
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

    /// Whether the text of a value may fit into the room; the cost is at most that of the room.
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

    convenience init(members: [(EntityKey, JSONTree)]) {
        var (bytesCount, partsCount, depths) = (2 - (members.isEmpty ? 0 : 1), 1, Depths())
        for (key, tree) in members {
            bytesCount += Self.length(of: key, tree)
            partsCount += tree.partsCount
            depths.add(tree.depth)
        }
        let map = PersistentMap(sorted: members.map { ($0, $1 as any AnyObject & Sendable) })
        self.init(.object(map), bytesCount: bytesCount, partsCount: partsCount, depths: depths)
    }

    private convenience init(elements: [JSONTree]) {
        var (bytesCount, partsCount, depths) = (2 - (elements.isEmpty ? 0 : 1), 1, Depths())
        for tree in elements {
            bytesCount += tree.bytesCount + 1
            partsCount += tree.partsCount
            depths.add(tree.depth)
        }
        let list = PersistentList(elements)
        self.init(.array(list), bytesCount: bytesCount, partsCount: partsCount, depths: depths)
    }

    /// An object of one member.
    package static func object(of name: String, _ value: JSONTree) -> JSONTree {
        JSONTree(members: [(key(name), value)]).normalized
    }

    /// An object or an array with its children as trees, however short it is, or nil for a scalar.
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

    /// The compact JSON; O(n).
    package var text: [UInt8] {
        var writer = JSONWriter(capacity: bytesCount)
        write(to: &writer)
        return writer.bytes
    }

    /// The value; O(n).
    package var value: JSONValue {
        // Losing the error is right: the text comes from a value.
        (try? JSONValue(parsing: text, depthMax: .max)) ?? .null
    }

    func write(to writer: inout JSONWriter) {
        switch shape {
        case .text(let text): writer.raw(text)
        case .object(let members): Self.write(to: &writer) { body in members.visit { body($0, Self.tree($1)) } }
        case .array(let elements): Self.write(to: &writer) { body in elements.visit(body) }
        }
    }

    /// Hands out the value, as ``MemberTexts`` says.
    func visitTexts(_ take: ([UInt8]) throws -> Void) throws {
        guard case .object(let members) = shape else { return try take(text) }
        var texts = ObjectTexts()
        try members.visit { (key, member) throws in
            try texts.add(to: take) { Self.write(key, Self.tree(member), to: &$0) }
        }
        try texts.end(to: take)
    }

    private static func write(to writer: inout JSONWriter, members visit: ((EntityKey, JSONTree) -> Void) -> Void) {
        var isFirst = true
        writer.byte(UInt8(ascii: "{"))
        visit { key, tree in
            writer.separator(&isFirst)
            write(key, tree, to: &writer)
        }
        writer.byte(UInt8(ascii: "}"))
    }

    private static func write(_ key: EntityKey, _ member: JSONTree, to writer: inout JSONWriter) {
        writer.string(key.token)
        writer.byte(UInt8(ascii: ":"))
        member.write(to: &writer)
    }

    private static func write(to writer: inout JSONWriter, elements visit: ((JSONTree) -> Void) -> Void) {
        var isFirst = true
        writer.byte(UInt8(ascii: "["))
        visit { tree in
            writer.separator(&isFirst)
            tree.write(to: &writer)
        }
        writer.byte(UInt8(ascii: "]"))
    }

    /// Writes a value that is kept as text, with the members of objects in their order.
    ///
    /// - Returns: false, with a part written, for an object or an array with more than ``textBytesMax`` bytes.
    private static func write(_ value: JSONValue, to writer: inout JSONWriter) -> Bool {
        var isFirst = true
        switch value {
        case .object(let object):
            var members = object.members.map { (key: key($0.key), value: $0.value) }
            if members.count > 1 { members.sort { $0.key < $1.key } }
            writer.byte(UInt8(ascii: "{"))
            for member in members {
                writer.separator(&isFirst)
                writer.string(member.key.token)
                writer.byte(UInt8(ascii: ":"))
                guard write(member.value, to: &writer), writer.bytes.count < textBytesMax else { return false }
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

    fileprivate static func length(of key: EntityKey, _ tree: JSONTree) -> Int {
        let name: Int
        switch key {
        case .number(let number): name = String(number).utf8.count + 2
        case .text(let text):
            var writer = JSONWriter(capacity: text.utf8.count + 8)
            writer.string(text)
            name = writer.bytes.count
        }
        return name + 2 + tree.bytesCount
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

extension JSONTree {
    /// The value at some tokens, or nil.
    package func tree(at tokens: ArraySlice<String>) -> JSONTree? {
        guard let token = tokens.first else { return self }
        switch shape {
        case .text(let text):
            guard isArray != nil else { return nil }
            return JSONText.select(tokens, in: text).map { text in
                JSONTree(.text(text), bytesCount: text.count, partsCount: 1)
            }
        case .object(let members):
            return members[Self.key(token)].flatMap { Self.tree($0).tree(at: tokens.dropFirst()) }
        case .array(let elements):
            guard let index = JSONPointer.index(token), index < elements.count else { return nil }
            return elements[index].tree(at: tokens.dropFirst())
        }
    }

    /// Whether the value is an array; nil for a scalar.
    package var isArray: Bool? {
        switch shape {
        case .object: false
        case .array: true
        case .text(let text):
            switch text.first {
            case UInt8(ascii: "{"): false
            case UInt8(ascii: "["): true
            default: nil
            }
        }
    }

    /// How many arrays and objects lie in each other, at most; O(1), but for an array or an object that is kept as text.
    package var depth: Int {
        guard case .text(let text) = shape else { return depths.deepest + 1 }
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
}

extension JSONTree {
    /// The value after an operation of a patch (RFC 6902).
    ///
    /// The cost is that of the way to the place, and of the new value.
    ///
    /// - Parameters:
    ///   - operation: `add`, `remove` or `replace`.
    ///   - new: the value of `add` and `replace`.
    /// - Returns: nil if the operation names a value that is not there.
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
            // What stands in a short text makes way for another value without a look at the rest.
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
            // The first member has no comma.
            let comma = members.isEmpty ? 1 : 0
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
            let bytesCount = bytesCount + lengthChange(key, from: old, to: changed) - comma
            let partsCount = partsCount + (changed?.partsCount ?? 0) - (old?.partsCount ?? 0)
            return Self.normal(
                .object(members), bytesCount: bytesCount, partsCount: partsCount,
                depths: depths.replacing(old?.depth, by: changed?.depth))
        case .array(var elements):
            guard let index = token == "-" ? elements.count : JSONPointer.index(token), index <= elements.count else {
                return nil
            }
            let isInsertion = operation == "add" && rest.isEmpty
            let comma = elements.count == 0 ? 1 : 0
            guard isInsertion || index < elements.count else { return nil }
            let old = isInsertion ? nil : elements[index]
            let changed = rest.isEmpty ? (operation == "remove" ? nil : new) : old?.applying(operation, at: rest, new)
            switch (old, changed) {
            case (nil, let changed?): elements.insert(changed, at: index)
            case (_?, nil) where operation == "remove" && rest.isEmpty: elements.remove(at: index)
            case (_?, let changed?): elements[index] = changed
            default: return nil
            }
            // The first element has no comma.
            let lengths = (changed.map { $0.bytesCount + 1 } ?? 0) - (old.map { $0.bytesCount + 1 } ?? 0) - comma
            let partsCount = partsCount + (changed?.partsCount ?? 0) - (old?.partsCount ?? 0)
            return Self.normal(
                .array(elements), bytesCount: bytesCount + lengths, partsCount: partsCount,
                depths: depths.replacing(old?.depth, by: changed?.depth))
        }
    }

    private func lengthChange(_ key: EntityKey, from old: JSONTree?, to new: JSONTree?) -> Int {
        (new.map { Self.length(of: key, $0) } ?? 0) - (old.map { Self.length(of: key, $0) } ?? 0)
    }

    private static func normal(_ shape: Shape, bytesCount: Int, partsCount: Int, depths: Depths) -> JSONTree {
        JSONTree(shape, bytesCount: bytesCount, partsCount: partsCount, depths: depths).normalized
    }

    var normalized: JSONTree { bytesCount <= Self.textBytesMax ? JSONTree(text: text) : self }

    /// Adds the operations that turn an old value at the patch's current pointer into a new one.
    ///
    /// The cost is that of the differences; an array that has changed at many places is replaced as a whole.
    package static func compare(_ old: JSONTree, _ new: JSONTree, into patch: inout JSONPatch) {
        guard old !== new else { return }
        switch (old.shape, new.shape) {
        case (.object(let before), .object(let after)):
            PersistentMap.visitDifferences(before, after) { key, before, after in
                switch (before.map(tree), after.map(tree)) {
                case (let before?, let after?):
                    guard before !== after else { return }
                    patch.descend(key.token) { compare(before, after, into: &$0) }
                case (nil, let after?): patch.add(member: key.token, value: after.text)
                case (let before?, nil): patch.remove(member: key.token, before.bytesCount)
                case (nil, nil): break
                }
            }
        case (.array(let before), .array(let after)):
            let differences = PersistentList.differences(before, after)
            let moved = differences.removed.count + differences.inserted.count
            guard moved <= 16 || moved <= after.count / 2 else { return patch.compare(old.text, new.text) }
            // Removing from the end and then inserting from the start leaves every other index of the operations valid.
            for (position, element) in differences.removed.reversed() {
                patch.remove(at: position, element.bytesCount)
            }
            for (position, element) in differences.inserted { patch.insert(at: position, value: element.text) }
            for (position, before, after) in differences.replaced {
                patch.descend(String(position)) { compare(before, after, into: &$0) }
            }
        default: patch.compare(old.text, new.text)
        }
    }
}

/// How many children of an array or an object have which depth: a change then knows the depth of the whole without a walk.
private struct Depths: Sendable {
    /// The depths that children have, without 0, and the number of the children; the deepest comes last.
    private var counts: [(depth: Int, count: Int)] = []

    var deepest: Int { counts.last?.depth ?? 0 }

    mutating func add(_ depth: Int) { change(depth, by: 1) }

    /// The depths after a child has gone, come, or made way for another one.
    func replacing(_ old: Int?, by new: Int?) -> Depths {
        guard old ?? 0 != new ?? 0 else { return self }
        var changed = self
        if let new { changed.change(new, by: 1) }
        if let old { changed.change(old, by: -1) }
        return changed
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
