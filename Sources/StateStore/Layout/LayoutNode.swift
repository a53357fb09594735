internal import StateJSON
internal import Synchronization

/// A node in the layout of a state: it writes, reads, selects and compares one part of the state as JSON.
///
/// The nodes form a tree along the slices of a domain. A commit compares only the nodes whose reducers ran.
protocol LayoutNode<Root>: Sendable {
    associatedtype Root

    func write(_ root: Root, to writer: inout JSONWriter) throws

    func select(_ root: Root, _ tokens: ArraySlice<String>, countMax: Int) throws -> SelectedValue

    func has(_ root: Root, _ tokens: ArraySlice<String>) throws -> Bool

    func declares(_ tokens: ArraySlice<String>) -> Bool

    /// The order of the members of an object at a place, where it is always the same; nil elsewhere.
    func memberOrder(_ tokens: ArraySlice<String>) -> MemberOrder?

    /// Hands out the value at a place, as ``MemberTexts`` says.
    func visitTexts(_ root: Root, _ tokens: ArraySlice<String>, _ take: ([UInt8]) throws -> Void) throws

    /// About how many parts there are to encode: each entity of a table counts one, and every other value counts one.
    func count(_ root: Root) -> Int

    func compare(_ old: Root, _ new: Root, into patch: inout JSONPatch) throws

    /// The comparison of the part at a place, or of the one around it that is compared as a whole: it is made once for the
    /// reducers that change the part, because the way to it costs as much as the comparison of a small one.
    func comparison(at place: ArraySlice<String>) -> Comparison<Root>

    func read(_ node: JSONNode, into root: inout Root) throws(JSONFault)

    /// Carries out the operations of a recorded patch that lie in this part, in their order.
    ///
    /// - Throws: ``JSONFault`` or ``PatchMismatch`` where they do not fit; the part is then undefined.
    func apply(_ operations: [PatchOperation], to root: inout Root) throws
}

/// Adds the operations to a patch that turn a part of the first state into that of the second one.
typealias Comparison<Root> = @Sendable (Root, Root, inout JSONPatch) throws -> Void

/// The result of a selection.
package enum SelectedValue: Sendable {
    case nothing
    /// JSON that the state has cached.
    case cached([UInt8])
    /// JSON that the selection has encoded.
    case encoded([UInt8])
    /// The value has more parts than the caller allows.
    case overBudget

    /// The UTF-8 JSON, or nil without a value and over budget.
    package var bytes: [UInt8]? {
        switch self {
        case .cached(let bytes), .encoded(let bytes): bytes
        case .nothing, .overBudget: nil
        }
    }
}

extension LayoutNode {
    func declares(_ tokens: ArraySlice<String>) -> Bool { true }

    func memberOrder(_ tokens: ArraySlice<String>) -> MemberOrder? { nil }

    func comparison(at place: ArraySlice<String>) -> Comparison<Root> { { try compare($0, $1, into: &$2) } }

    func visitTexts(_ root: Root, _ tokens: ArraySlice<String>, _ take: ([UInt8]) throws -> Void) throws {
        if let bytes = try select(root, tokens) { try take(bytes) }
    }

    func has(_ root: Root, _ tokens: ArraySlice<String>) throws -> Bool {
        // The part itself is there: nothing is encoded for that.
        if tokens.isEmpty { return true }
        if case .nothing = try select(root, tokens, countMax: .max) { return false }
        return true
    }

    func count(_ root: Root) -> Int { 1 }

    func bytes(_ root: Root) throws -> [UInt8] {
        var writer = JSONWriter()
        try write(root, to: &writer)
        return writer.bytes
    }

    /// Carries out operations on the part's JSON; O(n) in the size of the part.
    func apply(_ operations: [PatchOperation], to root: inout Root) throws {
        var value = try JSONValue(parsing: try bytes(root), depthMax: 1000)
        for operation in operations { try operation.apply(to: &value) }
        try read(try PatchOperation.node(value), into: &root)
    }

    func select(_ root: Root, _ tokens: ArraySlice<String>) throws -> [UInt8]? {
        try select(root, tokens, countMax: .max).bytes
    }

    func whole(_ root: Root, countMax: Int) throws -> SelectedValue {
        count(root) > countMax ? .overBudget : .encoded(try bytes(root))
    }
}

/// A node that encodes and compares its part as one value.
///
/// Each commit of its reducers costs O(n) in the size of the part: 1,000 structs of five fields in an array some 1.4 ms.
struct ValueNode<Root: Codable & Sendable>: LayoutNode {
    private let size = EncodedSize()

    func write(_ root: Root, to writer: inout JSONWriter) throws {
        let before = writer.bytes.count
        try JSON.write(root, to: &writer)
        size.note(writer.bytes.count - before)
    }

    /// A value below the part costs as much as the whole part, which is encoded for it.
    func select(_ root: Root, _ tokens: ArraySlice<String>, countMax: Int) throws -> SelectedValue {
        guard count(root) <= countMax else { return .overBudget }
        return JSONText.select(tokens, in: try bytes(root)).map(SelectedValue.encoded) ?? .nothing
    }

    /// One part for each four bytes of the newest known encoding: 4 KB take about as long as 1,000 entities, 0.1 ms.
    func count(_ root: Root) -> Int { 1 + size.bytesCount / 4 }

    func compare(_ old: Root, _ new: Root, into patch: inout JSONPatch) throws {
        size.note(try patch.compare(old, to: new))
    }

    func read(_ node: JSONNode, into root: inout Root) throws(JSONFault) {
        root = try node.decode()
        size.note(node.textCount)
    }
}

/// The bytes of the newest encoding of a part, of whatever state it was.
///
/// Any thread may use it.
private final class EncodedSize: Sendable {
    private let count = Atomic(0)

    var bytesCount: Int { count.load(ordering: .relaxed) }

    func note(_ bytesCount: Int) { count.store(bytesCount, ordering: .relaxed) }
}

struct ObjectNode<Root: Sendable>: LayoutNode {
    let members: [LayoutField<Root>]
    private let names: [String]
    private let areASCII: Bool
    /// The members without their type: Swift looks up the metadata of a generic element type at each access to a list.
    private let fields: [any AnyObject & Sendable]

    init(members: [LayoutField<Root>]) {
        self.members = members
        names = members.map(\.name)
        areASCII = names.allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } }
        fields = members
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

    func has(_ root: Root, _ tokens: ArraySlice<String>) throws -> Bool {
        guard let token = tokens.first else { return true }
        return try member(token)?.has(root, tokens.dropFirst()) ?? false
    }

    func declares(_ tokens: ArraySlice<String>) -> Bool {
        tokens.first.map { member($0)?.declares(tokens.dropFirst()) ?? false } ?? true
    }

    func memberOrder(_ tokens: ArraySlice<String>) -> MemberOrder? {
        tokens.first.flatMap { member($0)?.memberOrder(tokens.dropFirst()) }
    }

    func visitTexts(_ root: Root, _ tokens: ArraySlice<String>, _ take: ([UInt8]) throws -> Void) throws {
        guard let token = tokens.first else { return try take(try bytes(root)) }
        try member(token)?.visitTexts(root, tokens.dropFirst(), take)
    }

    func count(_ root: Root) -> Int { members.reduce(1) { $0 + $1.count(root) } }

    func compare(_ old: Root, _ new: Root, into patch: inout JSONPatch) throws {
        for index in names.indices { try field(index).compare(old, new, &patch) }
    }

    func comparison(at place: ArraySlice<String>) -> Comparison<Root> {
        guard let name = place.first, let member = member(name) else { return { try compare($0, $1, into: &$2) } }
        return member.comparison(place.dropFirst())
    }

    func read(_ node: JSONNode, into root: inout Root) throws(JSONFault) {
        guard let found = node.members else { throw JSONFault(.mismatch, at: node.pointer, "expected an object") }
        for (key, value) in found where member(key) == nil {
            throw JSONFault(
                .mismatch, at: value.pointer,
                "the domain declares no such member; it declares \(members.map(\.name).joined(separator: ", "))")
        }
        // The members are read in the order of the declaration, because the order of a table needs its entities. A member
        // that the JSON does not have keeps its initial value, so that a domain can declare new parts.
        for member in members {
            guard let value = found.first(where: { JSONPointer.sameBytes($0.key, member.name) })?.value else {
                continue
            }
            try member.read(value, &root)
        }
    }

    /// Each member gets its operations in one call, in the order of the declaration.
    func apply(_ operations: [PatchOperation], to root: inout Root) throws {
        var lists = Array(repeating: [PatchOperation](), count: members.count)
        for operation in operations {
            guard let token = operation.tokens.first else {
                guard let value = operation.value else { throw operation.mismatch }
                try read(try PatchOperation.node(value), into: &root)
                continue
            }
            guard let index = names.firstIndex(where: { JSONPointer.sameBytes($0, token) }) else {
                throw operation.mismatch
            }
            lists[index].append(operation.inner)
        }
        for (index, list) in lists.enumerated() where !list.isEmpty { try field(index).apply(list, &root) }
    }

    private func member(_ token: String) -> LayoutField<Root>? {
        // Equal strings can have different bytes, but the same bytes are equal strings, and those are compared faster. A
        // string that equals an ASCII one in other bytes has more of them.
        for index in names.indices
        where names[index] == token
            && (areASCII ? names[index].utf8.count == token.utf8.count : JSONPointer.sameBytes(names[index], token))
        {
            return field(index)
        }
        return nil
    }

    private func field(_ index: Int) -> LayoutField<Root> {
        unsafeDowncast(fields[index], to: LayoutField<Root>.self)
    }
}

/// A named member of a layout node, read by key path.
///
/// The field is an object of closures and not a generic value: Swift looks up the metadata of a generic element at each
/// call, which costs more than comparing a small part.
final class LayoutField<Root: Sendable>: Sendable {
    let name: String
    let write: @Sendable (Root, inout JSONWriter) throws -> Void
    let select: @Sendable (Root, ArraySlice<String>, Int) throws -> SelectedValue
    let has: @Sendable (Root, ArraySlice<String>) throws -> Bool
    let declares: @Sendable (ArraySlice<String>) -> Bool
    let memberOrder: @Sendable (ArraySlice<String>) -> MemberOrder?
    let visitTexts: @Sendable (Root, ArraySlice<String>, ([UInt8]) throws -> Void) throws -> Void
    let count: @Sendable (Root) -> Int
    let path: any PartialKeyPath<Root> & Sendable
    let comparison: @Sendable (ArraySlice<String>) -> Comparison<Root>
    let compare: Comparison<Root>
    let read: @Sendable (JSONNode, inout Root) throws(JSONFault) -> Void
    let apply: @Sendable ([PatchOperation], inout Root) throws -> Void

    init<Part: Sendable>(
        _ name: String, _ path: any WritableKeyPath<Root, Part> & Sendable, _ node: some LayoutNode<Part>
    ) {
        self.name = name
        self.path = path
        let part = StoredMember(path)
        has = { root, tokens in try part.read(root) { try node.has($0, tokens) } }
        declares = { node.declares($0) }
        memberOrder = { node.memberOrder($0) }
        visitTexts = { root, tokens, take in try part.read(root) { try node.visitTexts($0, tokens, take) } }
        write = { root, writer in try part.read(root) { try node.write($0, to: &writer) } }
        select = { root, tokens, countMax in try part.read(root) { try node.select($0, tokens, countMax: countMax) } }
        count = { root in part.read(root) { node.count($0) } }
        let place = JSONPatch.path(name)
        let comparison = { @Sendable (rest: ArraySlice<String>) -> Comparison<Root> in
            let compare = node.comparison(at: rest)
            return { old, new, patch in
                patch.enter(place)
                try part.read(old) { old in try part.read(new) { new in try compare(old, new, &patch) } }
                patch.leave(place)
            }
        }
        self.comparison = comparison
        compare = comparison([])
        apply = { operations, root in try node.apply(operations, to: &root[keyPath: path]) }
        read = { (json, root) throws(JSONFault) in try node.read(json, into: &root[keyPath: path]) }
    }
}

/// A key path to a part of a value, which reads a stored property at its offset.
///
/// A key path looks up the metadata of generic types at each access, which costs more than comparing a small part.
struct StoredMember<Root: Sendable, Part: Sendable>: Sendable {
    private let path: any WritableKeyPath<Root, Part> & Sendable
    /// The offset of the part in the memory of the value, or nil for a computed property, one with observers, and one
    /// behind a reference.
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
    /// Calls a function with the value that the pointer points to, without a copy of it.
    ///
    /// Swift copies a value of an unknown type where it can, and it cannot where the type need not be copyable.
    @inline(__always)
    func lend<Result>(to body: (borrowing Pointee) throws -> Result) rethrows -> Result { try body(pointee) }
}
