package import StateJSON
internal import StateStore

/// A store as the client of a request sees it: what the path names, cut to what the client's access allows.
package struct VisibleStore: Sendable {
    let scope: Scope
    package let access: Access
    /// The path of the whole store, without a slash at the end.
    var root = "/v1"

    /// The name of the derived store; empty for the whole store.
    package var name: String { scope.name }
    /// The pointer to the store's state in the whole state.
    package var pointer: JSONPointer { scope.pointer }
    var isWhole: Bool { scope.isWhole }
    var isFork: Bool { root != "/v1" }
    var path: String { isWhole ? root : "\(root)/stores/\(name)" }

    func outer(_ pointer: JSONPointer) -> JSONPointer { scope.outer(pointer) }
    func inner(_ pointer: JSONPointer) -> JSONPointer? { scope.inner(pointer) }

    var seesWholeState: Bool { access.sees(pointer) }

    var views: [String: String] {
        access.isUnlimited ? scope.views : scope.views.filter { access.sees(view: $0.value) }
    }

    var types: [String] { scope.open.map(\.type).filter(access.dispatches) }

    func dispatches(_ type: String) -> Bool { type.withBytes(entry(named:)) != nil }

    func entry(named type: UnsafeBufferPointer<UInt8>) -> ActionEntry? {
        guard let entry = scope.entries[type], !entry.isInternal || access.dispatchesInternal(entry.type),
            access.isUnlimited || access.dispatches(entry.type)
        else { return nil }
        return entry
    }

    func fault(inPlacesOf action: any Action) -> (name: JSONPointer, fault: String)? {
        guard let (name, place) = access.hiddenPlace(of: action, at: outer) else { return nil }
        return (
            name,
            "this credential may not see \(place.tokens.isEmpty ? "all of the document" : place.shown), and so it may not change or use it"
        )
    }

    var restores: Bool { isWhole && !isFork && access.restores }

    func sees(type: String) -> Bool {
        (scope.entries[type] != nil || isWhole && Commit.isOfTheStore(type)) && access.sees(type: type)
    }

    /// A name means a type, or with a `*` at its end every type that begins so.
    func typesSeen(by name: String) -> [String] {
        guard name.utf8.last == UInt8(ascii: "*") else { return sees(type: name) ? [name] : [] }
        let all = scope.types + (isWhole ? Commit.typesOfTheStore : [])
        return all.filter { $0.utf8.starts(with: name.utf8.dropLast()) && access.sees(type: $0) }
    }

    /// The subjects among whose commits an ID is looked for, in this order; nil stands for all.
    ///
    /// A client that may not see the actions of others finds its own IDs only: an ID of another client is as one that no commit
    /// has.
    package var subjectsSought: [String?] {
        guard let subject = access.subject else { return [nil] }
        return access.seesOthers ? [subject, nil] : [subject]
    }

    /// The part of the whole state at a pointer; a part that the client may not see is never there.
    func selection(_ pointer: JSONPointer) -> Selection { access.sees(pointer) ? .pointer(pointer) : .hidden(pointer) }

    /// The filter sees what the client sees: it passes no commit because of something that is hidden from the client.
    ///
    /// The `path` is a pointer into the whole state; nil, and no `types`, stand for all.
    func filter(path: JSONPointer?, types: [String], by subject: String?) -> ChangesFilter {
        var filter = ChangesFilter(types: types)
        filter.paths = path.map { access.filter($0) }
        let subject = ExactText(optional: subject)
        filter.by = subject
        let own = access.seesOthers ? nil : ExactText(access.subject ?? "")
        if subject != nil, types.isEmpty, !access.seesEveryAction {
            // A commit whose action is hidden has no subject to be found by.
            filter.types = scope.types.filter(sees(type:))
            if filter.types.isEmpty { filter.paths = .nothing }
        }
        if !types.isEmpty || subject != nil, let own {
            // Actions of others are hidden, so that no filter finds them.
            if let subject, subject != own { filter.paths = .nothing }
            filter.by = own
        }
        filter.within = scope.filter.map { within in
            access.isUnlimited
                ? within
                : .init(pointer: within.pointer, types: within.types.filter(access.sees(type:)), by: own)
        }
        return filter
    }
}

extension VisibleStore: Hashable {
    package static func == (left: VisibleStore, right: VisibleStore) -> Bool {
        left.scope === right.scope && left.access == right.access && left.root == right.root
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(access) }
}
