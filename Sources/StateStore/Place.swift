internal import StateJSON

/// A part of a state and its place in the JSON: how it is written, read, pointed into and compared.
///
/// Places make a tree along the slices of a domain. A commit asks only the places whose reducers ran.
protocol Place<Root>: Sendable {
    associatedtype Root

    /// Appends the JSON of this part.
    func write(_ root: Root, to writer: inout JSONWriter) throws

    /// The JSON at some tokens below this part, or nil where there is nothing.
    func select(_ root: Root, _ tokens: ArraySlice<String>) throws -> [UInt8]?

    /// About how many things have to be written for ``select(_:_:)``: the entities of tables count each, all else as one.
    ///
    /// 0 where nothing has to be written: an entity keeps its text.
    func count(_ root: Root, _ tokens: ArraySlice<String>) -> Int

    /// Adds the operations that make the new part of the old one. `scope` narrows it to one slice below this place.
    func compare(_ old: Root, _ new: Root, scope: ArraySlice<String>, into patch: inout JSONPatch) throws

    /// Sets this part from its JSON.
    func read(_ node: JSONNode, into root: inout Root) throws(JSONFault)
}

extension Place {
    func count(_ root: Root, _ tokens: ArraySlice<String>) -> Int { 1 }

    func text(_ root: Root) throws -> [UInt8] {
        var writer = JSONWriter()
        try write(root, to: &writer)
        return writer.bytes
    }
}

/// A whole state that is encoded and compared as one value.
///
/// It costs its size at each of its commits.
struct ValuePlace<Root: Codable & Sendable>: Place {
    func write(_ root: Root, to writer: inout JSONWriter) throws {
        try JSON.write(root, to: &writer)
    }

    func select(_ root: Root, _ tokens: ArraySlice<String>) throws -> [UInt8]? {
        JSONText.select(tokens, in: try JSON.encode(root))
    }

    func compare(_ old: Root, _ new: Root, scope: ArraySlice<String>, into patch: inout JSONPatch) throws {
        try patch.compare(to: try JSON.encode(new)) { try JSON.encode(old) }
    }

    func read(_ node: JSONNode, into root: inout Root) throws(JSONFault) {
        root = try node.decode()
    }
}

/// A state made of named members, each compared for itself.
struct ObjectPlace<Root: Sendable>: Place {
    let members: [(name: String, place: any Place<Root>)]

    func write(_ root: Root, to writer: inout JSONWriter) throws {
        writer.byte(UInt8(ascii: "{"))
        var isFirst = true
        for (name, place) in members {
            writer.separator(&isFirst)
            writer.string(name)
            writer.byte(UInt8(ascii: ":"))
            try place.write(root, to: &writer)
        }
        writer.byte(UInt8(ascii: "}"))
    }

    func select(_ root: Root, _ tokens: ArraySlice<String>) throws -> [UInt8]? {
        guard let token = tokens.first else { return try text(root) }
        return try member(token)?.select(root, tokens.dropFirst())
    }

    func count(_ root: Root, _ tokens: ArraySlice<String>) -> Int {
        guard let token = tokens.first else { return members.reduce(1) { $0 + $1.place.count(root, []) } }
        return member(token)?.count(root, tokens.dropFirst()) ?? 1
    }

    func compare(_ old: Root, _ new: Root, scope: ArraySlice<String>, into patch: inout JSONPatch) throws {
        for (name, place) in members where scope.isEmpty || scope.first == name {
            var failure: (any Error)?
            patch.descend(name) { patch in
                do {
                    try place.compare(old, new, scope: scope.dropFirst(), into: &patch)
                } catch { failure = error }
            }
            if let failure { throw failure }
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
        for (name, place) in members {
            guard let value = found.first(where: { $0.key.utf8.elementsEqual(name.utf8) })?.value else { continue }
            try place.read(value, into: &root)
        }
    }

    private func member(_ token: String) -> (any Place<Root>)? {
        // By index: taking out each pair would count the references of each place.
        for index in members.indices where JSONPointer.sameBytes(members[index].name, token) {
            return members[index].place
        }
        return nil
    }
}

/// A part of a larger state, reached by key path.
struct MemberPlace<Root, Part: Sendable>: Place {
    let path: any WritableKeyPath<Root, Part> & Sendable
    let part: any Place<Part>
    /// Where the part lies in the root's memory; nil where it is computed.
    private let offset: Int?

    init(path: any WritableKeyPath<Root, Part> & Sendable, part: any Place<Part>) {
        self.path = path
        self.part = part
        offset = MemoryLayout<Root>.offset(of: path)
    }

    /// The part, read where it lies: a key path followed at run time costs more than the comparison of a small part.
    private func part(of root: Root) -> Part {
        guard let offset else { return root[keyPath: path] }
        return withUnsafePointer(to: root) { UnsafeRawPointer($0).load(fromByteOffset: offset, as: Part.self) }
    }

    func write(_ root: Root, to writer: inout JSONWriter) throws { try part.write(root[keyPath: path], to: &writer) }

    func select(_ root: Root, _ tokens: ArraySlice<String>) throws -> [UInt8]? {
        try part.select(root[keyPath: path], tokens)
    }

    func count(_ root: Root, _ tokens: ArraySlice<String>) -> Int { part.count(root[keyPath: path], tokens) }

    func compare(_ old: Root, _ new: Root, scope: ArraySlice<String>, into patch: inout JSONPatch) throws {
        try part.compare(part(of: old), part(of: new), scope: scope, into: &patch)
    }

    func read(_ node: JSONNode, into root: inout Root) throws(JSONFault) {
        try part.read(node, into: &root[keyPath: path])
    }
}
