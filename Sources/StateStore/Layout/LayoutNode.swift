internal import StateJSON

/// A part of a state and its place in the JSON: how it is written, read, pointed into and compared.
///
/// Places make a tree along the slices of a domain. A commit asks only the places whose reducers ran.
protocol LayoutNode<Root>: Sendable {
    associatedtype Root

    /// Appends the JSON of this part.
    func write(_ root: Root, to writer: inout JSONWriter) throws

    /// What stands at some tokens below this part, unless it is more than `countMax` things.
    func select(_ root: Root, _ tokens: ArraySlice<String>, countMax: Int) throws -> SelectedValue

    /// About how many things this part holds: the entities of tables count each, all else as one.
    func count(_ root: Root) -> Int

    /// Adds the operations that make the new part of the old one. `scope` narrows it to one slice below this place.
    func compare(_ old: Root, _ new: Root, scope: ArraySlice<String>, into patch: inout JSONPatch) throws

    /// Sets this part from its JSON.
    func read(_ node: JSONNode, into root: inout Root) throws(JSONFault)
}

/// What was found at a place.
package enum SelectedValue: Sendable {
    case nothing
    /// JSON that the state keeps anyway.
    case cached([UInt8])
    /// JSON that was put together.
    case encoded([UInt8])
    /// More than was wanted at once.
    case overBudget

    /// The JSON, if there is any.
    package var text: [UInt8]? {
        switch self {
        case .cached(let text), .encoded(let text): text
        case .nothing, .overBudget: nil
        }
    }
}

extension LayoutNode {
    func count(_ root: Root) -> Int { 1 }

    func text(_ root: Root) throws -> [UInt8] {
        var writer = JSONWriter()
        try write(root, to: &writer)
        return writer.bytes
    }

    /// The JSON at some tokens below this part, or nil where there is nothing.
    func select(_ root: Root, _ tokens: ArraySlice<String>) throws -> [UInt8]? {
        try select(root, tokens, countMax: .max).text
    }

    /// All of this part, unless it is too much.
    func whole(_ root: Root, countMax: Int) throws -> SelectedValue {
        count(root) > countMax ? .overBudget : .encoded(try text(root))
    }
}

/// A whole state that is encoded and compared as one value.
///
/// It costs its size at each of its commits.
struct ValueNode<Root: Codable & Sendable>: LayoutNode {
    func write(_ root: Root, to writer: inout JSONWriter) throws {
        try JSON.write(root, to: &writer)
    }

    func select(_ root: Root, _ tokens: ArraySlice<String>, countMax: Int) throws -> SelectedValue {
        JSONText.select(tokens, in: try JSON.encode(root)).map(SelectedValue.encoded) ?? .nothing
    }

    func compare(_ old: Root, _ new: Root, scope: ArraySlice<String>, into patch: inout JSONPatch) throws {
        try patch.compare(to: try JSON.encode(new)) { try JSON.encode(old) }
    }

    func read(_ node: JSONNode, into root: inout Root) throws(JSONFault) {
        root = try node.decode()
    }
}

/// A state made of named members, each compared for itself.
struct ObjectNode<Root: Sendable>: LayoutNode {
    let members: [LayoutField<Root>]
    private let names: [String]

    init(members: [LayoutField<Root>]) {
        self.members = members
        names = members.map(\.name)
    }

    func write(_ root: Root, to writer: inout JSONWriter) throws {
        writer.byte(UInt8(ascii: "{"))
        var isFirst = true
        for member in members {
            writer.separator(&isFirst)
            writer.string(member.name)
            writer.byte(UInt8(ascii: ":"))
            try member.write(root, &writer)
        }
        writer.byte(UInt8(ascii: "}"))
    }

    func select(_ root: Root, _ tokens: ArraySlice<String>, countMax: Int) throws -> SelectedValue {
        guard let token = tokens.first else { return try whole(root, countMax: countMax) }
        return try member(token)?.select(root, tokens.dropFirst(), countMax) ?? .nothing
    }

    func count(_ root: Root) -> Int { members.reduce(1) { $0 + $1.count(root) } }

    func compare(_ old: Root, _ new: Root, scope: ArraySlice<String>, into patch: inout JSONPatch) throws {
        for member in members where scope.isEmpty || scope.first == member.name {
            try patch.descend(member.name) { patch throws in try member.compare(old, new, scope.dropFirst(), &patch) }
        }
    }

    func read(_ node: JSONNode, into root: inout Root) throws(JSONFault) {
        guard let found = node.members else { throw JSONFault(.mismatch, at: node.pointer, "expected an object") }
        for (key, value) in found where member(key) == nil {
            throw JSONFault(
                .mismatch, at: value.pointer,
                "the domain declares no such member; it declares \(members.map(\.name).joined(separator: ", "))")
        }
        // In the order of the declaration, which a table relies on. What is not there keeps its initial value, so that
        // a domain can grow.
        for member in members {
            guard let value = found.first(where: { JSONPointer.sameBytes($0.key, member.name) })?.value else {
                continue
            }
            try member.read(value, &root)
        }
    }

    private func member(_ token: String) -> LayoutField<Root>? {
        // Names by themselves: looking through them asks nobody for the type of the members.
        for index in names.indices where JSONPointer.sameBytes(names[index], token) { return members[index] }
        return nil
    }
}

/// A named part of a larger state, reached by key path.
///
/// An object that holds what is to be done with the part, and no generic value: lists of those Swift looks up by type
/// at each call, which costs more than the comparison of a small part.
final class LayoutField<Root: Sendable>: Sendable {
    let name: String
    let write: @Sendable (Root, inout JSONWriter) throws -> Void
    let select: @Sendable (Root, ArraySlice<String>, Int) throws -> SelectedValue
    let count: @Sendable (Root) -> Int
    let compare: @Sendable (Root, Root, ArraySlice<String>, inout JSONPatch) throws -> Void
    let read: @Sendable (JSONNode, inout Root) throws(JSONFault) -> Void

    /// Makes a member of the part at a key path.
    init<Part: Sendable>(
        _ name: String, _ path: any WritableKeyPath<Root, Part> & Sendable, _ node: some LayoutNode<Part>
    ) {
        self.name = name
        let part = FieldReader(path)
        write = { try node.write(part.of($0), to: &$1) }
        select = { try node.select(part.of($0), $1, countMax: $2) }
        count = { node.count(part.of($0)) }
        compare = { try node.compare(part.of($0), part.of($1), scope: $2, into: &$3) }
        read = { (json, root) throws(JSONFault) in try node.read(json, into: &root[keyPath: path]) }
    }
}

/// Reads a part where it lies in the root's memory: a key path followed at run time costs more than a small part.
private struct FieldReader<Root: Sendable, Part: Sendable>: Sendable {
    private let path: any WritableKeyPath<Root, Part> & Sendable
    /// Nil where the part is computed.
    private let offset: Int?

    init(_ path: any WritableKeyPath<Root, Part> & Sendable) {
        self.path = path
        offset = MemoryLayout<Root>.offset(of: path)
    }

    func of(_ root: Root) -> Part {
        guard let offset else { return root[keyPath: path] }
        return withUnsafePointer(to: root) { UnsafeRawPointer($0).load(fromByteOffset: offset, as: Part.self) }
    }
}
