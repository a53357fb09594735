package import StateJSON
package import StateStore

/// The rights of a subject to read and dispatch, as a token file and the claims of a JWT spell them.
///
/// Each entry of ``read`` is a JSON Pointer, for that part of the state, in which `{subject}` stands for the subject;
/// `view:NAME`, for a view; `store:NAME`, for a derived store with its views and the actions that its reducers handle;
/// `actions:TYPE`, for the actions of that type in the log; `*`, for everything. Each entry of ``dispatch`` is an
/// action type. A type with `*` at its end stands for every type that begins so.
package struct Grant: Sendable, Hashable, Codable {
    package var read: [String]
    package var dispatch: [String]
    package var others: Bool
    /// Whether the subject may see metrics and every reason of readiness, and operate the journal.
    package var operate: Bool
    package var fork: Bool

    package init(
        read: [String] = [], dispatch: [String] = [], others: Bool = false, operate: Bool = false, fork: Bool = false
    ) {
        self.fork = fork
        self.read = read
        self.dispatch = dispatch
        self.others = others
        self.operate = operate
    }

    package static let everything = Grant(read: ["*"], dispatch: ["*"], others: true, operate: true, fork: true)

    package var isEverything: Bool { read.contains("*") && dispatch.contains("*") && others && operate && fork }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        read = try members.decodeIfPresent([String].self, forKey: .read) ?? []
        dispatch = try members.decodeIfPresent([String].self, forKey: .dispatch) ?? []
        others = try members.decodeIfPresent(Bool.self, forKey: .others) ?? false
        operate = try members.decodeIfPresent(Bool.self, forKey: .operate) ?? false
        fork = try members.decodeIfPresent(Bool.self, forKey: .fork) ?? false
    }

    /// The first entry that a new grant must not have, in a sentence, or nil: also one that is spelled well and allows nothing.
    package var newFault: String? {
        for entry in dispatch where entry.contains(":/") || entry.hasPrefix("/") {
            return
                "\"\(entry)\" is not an action type: a dispatch names a type such as document/set, and a read names a place"
        }
        return fault
    }

    package var fault: String? {
        for entry in read where ReadEntry(entry) == nil {
            return
                "\"\(entry)\" cannot be read: it must be a JSON Pointer such as /tasks, view:NAME, store:NAME, actions:TYPE, or *"
        }
        for entry in dispatch where entry.isEmpty || entry.dropLast().contains("*") {
            return "\"\(entry)\" is not an action type: it must be one such as tasks/add, or begin one and end with *"
        }
        return nil
    }

    package var json: JSONValue {
        .of(
            ("read", .array(read.map { .string($0) })), ("dispatch", .array(dispatch.map { .string($0) })),
            ("others", .bool(others)), ("operate", .bool(operate)), ("fork", .bool(fork)))
    }

    /// A sentence for each entry that allows nothing in a domain, and one for a grant that allows nothing at all.
    package func warnings(in catalogue: Catalogue, dispatching types: [String]? = nil) -> [String] {
        let types = types ?? catalogue.whole.open.map(\.type)
        if read.isEmpty, dispatch.isEmpty, !operate {
            return ["the token allows nothing: it has no read and no dispatch"]
        }
        return read.compactMap { entry in
            ReadEntry(entry).flatMap { $0.warning(in: catalogue) }.map { "read \(entry): \($0)" }
        }
            + dispatch.compactMap { pattern in
                pattern == Commit.restoreType
                    ? nil : TypeSet.warning(pattern, among: types).map { "dispatch \(pattern): \($0)" }
            }
    }
}

enum ReadEntry {
    case everything
    case pointer(JSONPointer)
    case view(String), store(String), actions(String)

    init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
        switch (parts.first, parts.dropFirst().first) {
        case ("view", let name?): self = .view(name)
        case ("store", let name?): self = .store(name)
        case ("actions", let type?) where !type.dropLast().contains("*"): self = .actions(type)
        case _ where text == "*": self = .everything
        default:
            guard text.hasPrefix("/"), let pointer = JSONPointer(text: text) else { return nil }
            self = .pointer(pointer)
        }
    }

    func warning(in catalogue: Catalogue) -> String? {
        switch self {
        case .everything: return nil
        case .pointer(let pointer):
            guard !catalogue.parts.contains(where: { $0.pointer.overlaps(pointer) }) else { return nil }
            let known = (catalogue.stores.map(\.pointer) + catalogue.parts.map(\.pointer)).map(\.description)
            return "the state has no such part" + NearestNames.hint(pointer.description, among: known)
        case .view(let name): return Self.warning("view", name, among: Array(catalogue.whole.views.keys))
        case .store(let name): return Self.warning("derived store", name, among: catalogue.stores.map(\.name))
        case .actions(let pattern):
            return Commit.isOfTheStore(pattern) ? nil : TypeSet.warning(pattern, among: catalogue.types)
        }
    }

    private static func warning(_ kind: String, _ name: String, among names: [String]) -> String? {
        names.contains(name) ? nil : "there is no such \(kind)" + NearestNames.hint(name, among: names)
    }
}

struct TypeSet: Sendable {
    let isEverything: Bool
    private let names: Set<ExactText>
    /// The beginnings of the types of patterns, sorted by bytes; none begins with another.
    private var prefixes: [String] = []

    init(_ patterns: [String]) {
        let ends = { (pattern: String) in pattern.hasSuffix("*") }
        isEverything = patterns.contains("*")
        names = Set(patterns.filter { !ends($0) }.map { ExactText($0) })
        let sorted = patterns.filter(ends).map { String($0.dropLast()) }
            .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        for prefix in sorted where !hasPrefix(of: prefix) { prefixes.append(prefix) }
    }

    func contains(_ type: String) -> Bool { isEverything || names.contains(ExactText(type)) || hasPrefix(of: type) }
    func names(_ type: String) -> Bool { names.contains(ExactText(type)) }

    private func hasPrefix(of text: String) -> Bool {
        // Whatever lies between a prefix and a text that it begins, begins with it as well.
        let index = firstIndex(after: text)
        return index > 0 && text.utf8.starts(with: prefixes[index - 1].utf8)
    }

    private func firstIndex(after text: String) -> Int {
        var range = 0..<prefixes.count
        while !range.isEmpty {
            let middle = (range.lowerBound + range.upperBound) / 2
            if text.utf8.lexicographicallyPrecedes(prefixes[middle].utf8) {
                range = range.lowerBound..<middle
            } else {
                range = middle + 1..<range.upperBound
            }
        }
        return range.lowerBound
    }

    static func warning(_ pattern: String, among types: [String]) -> String? {
        guard !types.contains(where: TypeSet([pattern]).contains) else { return nil }
        guard pattern.hasSuffix("*") else {
            return "there is no such action type" + NearestNames.hint(pattern, among: types)
        }
        let beginnings = Set(
            types.flatMap { type in type.indices.filter { type[$0] == "/" }.map { "\(type[...$0])*" } })
        return "no action type begins so" + NearestNames.hint(pattern, among: beginnings.sorted())
    }
}
