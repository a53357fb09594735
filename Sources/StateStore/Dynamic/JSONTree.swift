package import StateJSON

/// A JSON value whose copies share what they have in common: the state of a domain without Swift types.
///
/// A change copies the way to it, so the value before the change stays valid and costs nothing to keep. A comparison of two
/// values skips what they share. What is small is kept as its text; equal values have equal trees, and the members of an
/// object have one order: numbers by size, then the other names by their UTF-8 bytes.
package final class JSONTree: Sendable {
    fileprivate enum Shape {
        /// Compact JSON of a scalar, or of a value with at most ``textBytesMax`` bytes, with members in their order.
        case text([UInt8])
        /// The members, which are trees, without their type: all maps of objects share one specialization.
        case object(PersistentMap<EntityKey, any AnyObject & Sendable>)
        case array(PersistentList<JSONTree>)
    }

    /// How long the text of an object or an array may be that is kept as text.
    static var textBytesMax: Int { 512 }

    fileprivate let shape: Shape
    /// The length of the compact JSON.
    package let bytesCount: Int
    /// About how many parts there are to encode.
    let partsCount: Int

    fileprivate init(_ shape: Shape, bytesCount: Int, partsCount: Int) {
        (self.shape, self.bytesCount, self.partsCount) = (shape, bytesCount, partsCount)
    }

    private convenience init(text: [UInt8]) { self.init(.text(text), bytesCount: text.count, partsCount: 1) }

    /// The empty object.
    package static let emptyObject = JSONTree(text: Array("{}".utf8))

    /// Makes a tree of a value; O(n log n).
    package convenience init(_ value: JSONValue) {
        var writer = JSONWriter()
        if Self.write(value, to: &writer) {
            self.init(text: writer.bytes)
            return
        }
        switch value {
        case .object(let object):
            var members = object.members.map { (Self.key($0.key), JSONTree($0.value)) }
            members.sort { $0.0 < $1.0 }
            let bytesCount = members.reduce(2) { $0 + Self.length(of: $1.0, $1.1) } - (members.isEmpty ? 0 : 1)
            let partsCount = members.reduce(1) { $0 + $1.1.partsCount }
            self.init(.object(PersistentMap(sorted: members)), bytesCount: bytesCount, partsCount: partsCount)
        case .array(let values):
            let elements = values.map { JSONTree($0) }
            let bytesCount = elements.reduce(2) { $0 + $1.bytesCount + 1 } - (elements.isEmpty ? 0 : 1)
            let partsCount = elements.reduce(1) { $0 + $1.partsCount }
            self.init(.array(PersistentList(elements)), bytesCount: bytesCount, partsCount: partsCount)
        default: self.init(text: value.text)
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

    private static func write(to writer: inout JSONWriter, members visit: ((EntityKey, JSONTree) -> Void) -> Void) {
        var isFirst = true
        writer.byte(UInt8(ascii: "{"))
        visit { key, tree in
            writer.separator(&isFirst)
            writer.string(key.token)
            writer.byte(UInt8(ascii: ":"))
            tree.write(to: &writer)
        }
        writer.byte(UInt8(ascii: "}"))
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

    fileprivate static func tree(_ object: any AnyObject) -> JSONTree { unsafeDowncast(object, to: JSONTree.self) }

    fileprivate static func key(_ name: String) -> EntityKey { Int(token: name).map { .number($0) } ?? .text(name) }

    /// How many bytes a member has in its object, with a comma.
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

extension JSONTree {
    /// The value at some tokens; nil where there is none.
    package func tree(at tokens: ArraySlice<String>) -> JSONTree? {
        guard let token = tokens.first else { return self }
        switch shape {
        case .text(let text):
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

    /// How many arrays and objects lie in each other, at most; O(n).
    package var depth: Int {
        var deepest = 0
        switch shape {
        case .text(let text): return Self.depth(of: text)
        case .object(let members): members.visit { deepest = max(deepest, Self.tree($1).depth) }
        case .array(let elements): elements.visit { deepest = max(deepest, $0.depth) }
        }
        return deepest + 1
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
    /// The value with the outcome of an operation of a patch (RFC 6902).
    ///
    /// The cost is that of the way to the place, and of the new value.
    ///
    /// - Parameters:
    ///   - operation: `add`, `remove` or `replace`.
    ///   - new: the value of `add` and `replace`.
    /// - Returns: nil where the operation names a value that is not there.
    package func applying(_ operation: String, at tokens: ArraySlice<String>, _ new: JSONTree?) -> JSONTree? {
        guard let token = tokens.first else { return operation == "remove" ? nil : new }
        let rest = tokens.dropFirst()
        switch shape {
        case .text(var text):
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
            let bytesCount = bytesCount + lengthChange(key, from: old, to: changed)
            let partsCount = partsCount + (changed?.partsCount ?? 0) - (old?.partsCount ?? 0)
            return Self.normal(.object(members), bytesCount: bytesCount, partsCount: partsCount)
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
            // An array has a comma between two elements, and this one has more than one.
            let lengths = (changed.map { $0.bytesCount + 1 } ?? 0) - (old.map { $0.bytesCount + 1 } ?? 0)
            let partsCount = partsCount + (changed?.partsCount ?? 0) - (old?.partsCount ?? 0)
            return Self.normal(.array(elements), bytesCount: bytesCount + lengths, partsCount: partsCount)
        }
    }

    private func lengthChange(_ key: EntityKey, from old: JSONTree?, to new: JSONTree?) -> Int {
        (new.map { Self.length(of: key, $0) } ?? 0) - (old.map { Self.length(of: key, $0) } ?? 0)
    }

    /// A tree of this shape, or its text where that is short.
    private static func normal(_ shape: Shape, bytesCount: Int, partsCount: Int) -> JSONTree {
        let tree = JSONTree(shape, bytesCount: bytesCount, partsCount: partsCount)
        guard bytesCount <= textBytesMax else { return tree }
        let text = tree.text
        return JSONTree(.text(text), bytesCount: text.count, partsCount: 1)
    }

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
                case (_?, nil): patch.remove(member: key.token)
                case (nil, nil): break
                }
            }
        case (.array(let before), .array(let after)):
            let differences = PersistentList.differences(before, after)
            let moved = differences.removed.count + differences.inserted.count
            guard moved <= 16 || moved <= after.count / 2 else { return patch.compare(old.text, new.text) }
            // Removing from the end and then inserting from the start leaves every other index of the operations valid.
            for position in differences.removed.reversed() { patch.remove(at: position) }
            for (position, element) in differences.inserted { patch.insert(at: position, value: element.text) }
            for (position, before, after) in differences.replaced {
                patch.descend(String(position)) { compare(before, after, into: &$0) }
            }
        default: patch.compare(old.text, new.text)
        }
    }
}
