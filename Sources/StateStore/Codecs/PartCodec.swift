internal import StateJSON

protocol PartCodec<Part>: Sendable {
    associatedtype Part

    /// The tree of a part, which shares with an earlier one of the part what has not changed, or is it.
    func tree(of part: Part, after earlier: JSONTree?, _ encoder: JSONEncodingSession) throws -> JSONTree

    /// The step is made once for the reducers that change a place, because the way there costs as much as a small part.
    func step(at place: ArraySlice<String>) -> TreeStep<Part>

    func read(_ node: JSONNode, into part: inout Part) throws(JSONFault)

    /// Returns the part's own tree; the part is undefined where the tree does not fit it.
    func read(_ tree: JSONTree, after earlier: JSONTree, into part: inout Part) throws -> JSONTree
}

/// Makes the tree of a part of an earlier one, and adds the operations to a patch that lead there.
typealias TreeStep<Part> = @Sendable (Part, JSONTree, JSONEncodingSession, inout JSONPatch) throws -> JSONTree

extension PartCodec {
    func step(at _: ArraySlice<String>) -> TreeStep<Part> { wholeStep }

    var wholeStep: TreeStep<Part> {
        { part, earlier, encoder, patch in
            let tree = try tree(of: part, after: earlier, encoder)
            try JSONTree.compare(earlier, tree, into: &patch)
            return tree
        }
    }

    func tree(of part: Part) throws -> JSONTree { try tree(of: part, after: nil, JSONEncodingSession()) }

    func readAll(_ tree: JSONTree, into part: inout Part) throws -> JSONTree {
        try read(JSONNode(try JSONDocument(try tree.encoded(), depthMax: 1000)), into: &part)
        return try self.tree(of: part)
    }
}

/// The codec of a part that is one leaf: each commit costs O(n), for 1,000 structs of five fields some 1.4 ms.
struct ValueCodec<Part: Codable & Sendable>: PartCodec {
    func tree(of part: Part, after earlier: JSONTree?, _ encoder: JSONEncodingSession) throws -> JSONTree {
        guard let earlier else { return JSONTree(leaf: try JSON.encode(part)) }
        return try encoder.text(of: part, unlike: earlier.leaf).map { JSONTree(leaf: $0) } ?? earlier
    }

    /// Most actions change one leaf: its texts are compared without a walk of the trees.
    func step(at _: ArraySlice<String>) -> TreeStep<Part> {
        { part, earlier, encoder, patch in
            let before = earlier.leaf
            guard let text = try encoder.text(of: part, unlike: before) else { return earlier }
            patch.compare(before, text)
            return JSONTree(leaf: text)
        }
    }

    func read(_ node: JSONNode, into part: inout Part) throws(JSONFault) { part = try node.decode() }

    func read(_ tree: JSONTree, after earlier: JSONTree, into part: inout Part) throws -> JSONTree {
        tree === earlier ? earlier : try readAll(tree, into: &part)
    }
}

struct SliceCodec<Part: Sendable>: PartCodec {
    let members: [SliceMember<Part>]
    private let names: MemberNames
    /// The members without their type: Swift looks up the metadata of a generic element type at each access to a list.
    private let objects: [any AnyObject & Sendable]

    init(members: [SliceMember<Part>]) {
        self.members = members
        names = MemberNames(members.map(\.name))
        objects = members
    }

    func tree(of part: Part, after earlier: JSONTree?, _ encoder: JSONEncodingSession) throws -> JSONTree {
        guard var tree = earlier else {
            return JSONTree(record: try members.map { try $0.tree(part, nil, encoder) }, names)
        }
        for index in objects.indices {
            tree = tree.replacing(index, by: try member(index).tree(part, tree.record[index], encoder))
        }
        return tree
    }

    func step(at place: ArraySlice<String>) -> TreeStep<Part> {
        guard let name = place.first, let index = names.index(of: name) else { return wholeStep }
        let (inner, path) = (member(index).step(place.dropFirst()), names.paths[index])
        return { part, earlier, encoder, patch in
            patch.enter(path)
            let tree = try inner(part, earlier.record[index], encoder, &patch)
            patch.leave(path)
            return earlier.replacing(index, by: tree)
        }
    }

    func read(_ node: JSONNode, into part: inout Part) throws(JSONFault) {
        guard let found = node.members else { throw JSONFault(.mismatch, at: node.pointer, "expected an object") }
        for (key, value) in found where names.index(of: key) == nil {
            throw JSONFault(
                .mismatch, at: value.pointer,
                "the domain declares no such member; it declares \(names.all.joined(separator: ", "))")
        }
        // The members are read in the order of the declaration, because the order of a table needs its entities. A member
        // that the JSON does not have keeps its initial value, so that a domain can declare new parts.
        for member in members {
            guard let value = found.first(where: { JSONPointer.sameBytes($0.key, member.name) })?.value else {
                continue
            }
            try member.read(value, &part)
        }
    }

    /// The members are read in the order of the declaration, because the order of a table needs its entities.
    func read(_ tree: JSONTree, after earlier: JSONTree, into part: inout Part) throws -> JSONTree {
        guard case .record(let found) = tree.shape else { return try readAll(tree, into: &part) }
        var tree = tree
        let changed = found.indices.filter { found[$0] !== earlier.record[$0] }
        for index in changed {
            tree = tree.replacing(index, by: try member(index).readChanges(found[index], earlier.record[index], &part))
        }
        // The order of a table gives its entities their places.
        for index in found.indices where changed.contains(where: { members[$0].sharesPart(with: members[index]) }) {
            tree = tree.replacing(index, by: try member(index).tree(part, tree.record[index], JSONEncodingSession()))
        }
        return tree
    }

    private func member(_ index: Int) -> SliceMember<Part> {
        unsafeDowncast(objects[index], to: SliceMember<Part>.self)
    }
}

/// A named member of a state, as closures: Swift looks up the metadata of a generic element at each call.
final class SliceMember<Root: Sendable>: Sendable {
    let name: String
    let path: any PartialKeyPath<Root> & Sendable
    let tree: @Sendable (Root, JSONTree?, JSONEncodingSession) throws -> JSONTree
    let step: @Sendable (ArraySlice<String>) -> TreeStep<Root>
    let read: @Sendable (JSONNode, inout Root) throws(JSONFault) -> Void
    let readChanges: @Sendable (JSONTree, JSONTree, inout Root) throws -> JSONTree

    init<Part: Sendable>(
        _ name: String, _ path: any WritableKeyPath<Root, Part> & Sendable, _ codec: some PartCodec<Part>
    ) {
        self.name = name
        self.path = path
        let part = StoredMember(path)
        tree = { root, earlier, encoder in
            try part.read(root) { try codec.tree(of: $0, after: earlier, encoder) }
        }
        step = { rest in
            let step = codec.step(at: rest)
            return { root, earlier, encoder, patch in try part.read(root) { try step($0, earlier, encoder, &patch) } }
        }
        read = { (json, root) throws(JSONFault) in try codec.read(json, into: &root[keyPath: path]) }
        readChanges = { tree, earlier, root in try codec.read(tree, after: earlier, into: &root[keyPath: path]) }
    }

    /// The two members of a table have one path.
    func sharesPart(with other: SliceMember) -> Bool { self !== other && path == other.path }
}

/// A key path that reads a stored property at its offset: Swift's own looks up generic metadata at each access.
struct StoredMember<Root: Sendable, Part: Sendable>: Sendable {
    private let path: any WritableKeyPath<Root, Part> & Sendable
    /// Nil for a computed property, one with observers, and one behind a reference.
    private let offset: Int?

    init(_ path: any WritableKeyPath<Root, Part> & Sendable) {
        self.path = path
        offset = MemoryLayout<Root>.offset(of: path)
    }

    @inline(__always)
    func read<Result>(_ root: Root, _ body: (borrowing Part) throws -> Result) rethrows -> Result {
        guard let offset else { return try body(root[keyPath: path]) }
        return try withUnsafePointer(to: root) { root in
            try UnsafeRawPointer(root).advanced(by: offset).assumingMemoryBound(to: Part.self).lend(to: body)
        }
    }
}

extension UnsafePointer where Pointee: ~Copyable {
    /// Swift copies a value of an unknown type where it can, and it cannot where the type need not be copyable.
    @inline(__always)
    func lend<Result>(to body: (borrowing Pointee) throws -> Result) rethrows -> Result { try body(pointee) }
}

/// The names of the members of a slice, which all its trees share.
final class MemberNames: Sendable {
    static let none = MemberNames([])

    let all: [String]
    let paths: [[UInt8]]

    init(_ names: [String]) { (all, paths) = (names, names.map(JSONPatch.path)) }

    func index(of name: String) -> Int? { all.firstIndex { JSONPointer.sameBytes($0, name) } }
}

extension JSONTree {
    convenience init(leaf text: [UInt8]) { self.init(.leaf(text)) }

    var leaf: [UInt8] { if case .leaf(let text) = shape { text } else { preconditionFailure("no leaf") } }

    var record: [JSONTree] { if case .record(let all) = shape { all } else { preconditionFailure("no record") } }

    func replacing(_ index: Int, by tree: JSONTree) -> JSONTree {
        var members = record
        guard members[index] !== tree else { return self }
        members[index] = tree
        return JSONTree(record: members, names)
    }

    /// Adds the operations that turn an old value at the patch's current pointer into a new one.
    ///
    /// The cost is that of the differences, and of equal values that are not the same object. An object or an array of
    /// a document with many differences is replaced as a whole.
    static func compare(_ old: JSONTree, _ new: JSONTree, into patch: inout JSONPatch) throws {
        guard old !== new else { return }
        switch (old.shape, new.shape) {
        case (.leaf(let before), .leaf(let after)): patch.compare(before, after)
        case (.record(let before), .record(let after)):
            for index in before.indices where before[index] !== after[index] {
                patch.enter(old.names.paths[index])
                try compare(before[index], after[index], into: &patch)
                patch.leave(old.names.paths[index])
            }
        case (.entities(let before), .entities(let after)): try compare(before, after, into: &patch)
        case (.order(let before), .order(let after)): try compare(before, after, into: &patch)
        default: compareDocuments(old, new, into: &patch)
        }
    }
}
