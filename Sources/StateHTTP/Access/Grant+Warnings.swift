internal import StateJSON
package import StateStore

extension Grant {
    /// A sentence for each entry that allows nothing in a domain, with the nearest name that would, and one for a grant that
    /// allows nothing at all.
    package func warnings(in catalogue: Catalogue) -> [String] {
        if read.isEmpty, dispatch.isEmpty, !operate {
            return ["the token allows nothing: it has no read and no dispatch"]
        }
        return read.compactMap { entry in
            ReadEntry(entry).flatMap { $0.warning(in: catalogue) }.map { "read \(entry): \($0)" }
        }
            + dispatch.compactMap { pattern in
                TypeSet.warning(pattern, among: catalogue.types).map { "dispatch \(pattern): \($0)" }
            }
    }
}

extension ReadEntry {
    fileprivate func warning(in catalogue: Catalogue) -> String? {
        switch self {
        case .everything: return nil
        case .pointer(let pointer):
            guard !catalogue.parts.contains(where: { $0.pointer.overlaps(pointer) }) else { return nil }
            let known = (catalogue.stores.map(\.pointer) + catalogue.parts.map(\.pointer)).map(\.description)
            return "the state has no such part" + NearestNames.hint(pointer.description, among: known)
        case .view(let name):
            return Self.warning("view", name, among: Array(catalogue.whole.views.keys))
        case .store(let name):
            return Self.warning("derived store", name, among: catalogue.stores.map(\.name))
        case .actions(let pattern):
            return Commit.isOfTheStore(pattern) ? nil : TypeSet.warning(pattern, among: catalogue.types)
        }
    }

    private static func warning(_ kind: String, _ name: String, among names: [String]) -> String? {
        names.contains(name) ? nil : "there is no such \(kind)" + NearestNames.hint(name, among: names)
    }
}

extension TypeSet {
    /// A warning about a pattern that no action type of a domain matches, or nil.
    fileprivate static func warning(_ pattern: String, among types: [String]) -> String? {
        var set = TypeSet()
        set.insert(pattern)
        guard !types.contains(where: set.contains) else { return nil }
        guard pattern.hasSuffix("*") else {
            return "there is no such action type" + NearestNames.hint(pattern, among: types)
        }
        // The beginnings of types, up to each of their slashes.
        let beginnings = Set(
            types.flatMap { type in type.indices.filter { type[$0] == "/" }.map { "\(type[...$0])*" } })
        return "no action type begins so" + NearestNames.hint(pattern, among: beginnings.sorted())
    }
}
