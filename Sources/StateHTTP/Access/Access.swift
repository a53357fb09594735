internal import StateJSON
package import StateStore
internal import Synchronization

/// The access of a request's client; an object, because requests share it and a revocation ends it for all of them.
package final class Access: Sendable {
    package let subject: String?
    let grant: Grant
    package let expiry: Timestamp?
    let credential: CredentialKind?
    let isUnlimited: Bool
    package var operates: Bool { grant.operate }
    var seesOthers: Bool { grant.others }
    var seesAll: Bool { parts == nil }
    var dispatchesAll: Bool { grant.dispatch.contains("*") }
    /// The parts of the state that the client may see; nil for the whole state.
    let parts: PointerSet?
    /// The names of the views, in the whole store, that the client may see; nil for all.
    private let views: Set<ExactText>?
    private let seenTypes: TypeSet
    private let dispatchedTypes: TypeSet
    /// A name of the visible part of everything, which another grant of the client changes; nil for everything.
    let visibility: String?
    private let ended = Atomic(false)

    package convenience init() { self.init(.everything, subject: nil, in: nil) }

    /// Reads a grant; an entry that is misspelled, or names a view or store that the domain has not, allows nothing.
    package init(
        _ grant: Grant, subject: String?, in catalogue: Catalogue?, expiry: Timestamp? = nil,
        by credential: CredentialKind? = nil
    ) {
        (self.subject, self.grant, self.expiry, self.credential) = (subject, grant, expiry, credential)
        share = subject.map { "subject \($0.percentEncoded)" }
        dispatchedTypes = TypeSet(grant.dispatch)
        var isWhole = false
        var pointers: [JSONPointer] = []
        var seenViews: Set<ExactText> = []
        var seen: [String] = []
        for entry in grant.read.compactMap(ReadEntry.init) {
            switch entry {
            case .everything:
                isWhole = true
                seen.append("*")
            case .pointer(let pointer): pointers.append(pointer.naming(subject ?? ""))
            case .view(let name): seenViews.insert(ExactText(name))
            case .actions(let pattern): seen.append(pattern)
            case .store(let name):
                guard let store = catalogue?.stores.first(where: { JSONPointer.sameBytes($0.name, name) }) else {
                    break
                }
                pointers.append(store.pointer)
                seenViews.formUnion(store.views.values.map { ExactText($0) })
                seen += store.types
            }
        }
        parts = isWhole ? nil : PointerSet(pointers)
        views = isWhole ? nil : seenViews
        seenTypes = TypeSet(seen)
        isUnlimited = isWhole && grant.others && grant.dispatch.contains("*")
        visibility = isWhole && grant.others ? nil : Self.visibility(of: grant, subject ?? "")
    }

    private static func visibility(of grant: Grant, _ subject: String) -> String {
        let entries = Set(grant.read.map { ExactText($0) }).map(\.text).sorted {
            $0.utf8.lexicographicallyPrecedes($1.utf8)
        }
        // The actions that a client may see are its own where it may not see those of others.
        let isOfSubject = !grant.others || grant.read.contains { $0.contains(JSONPointer.subjectMark) }
        let texts = entries + (isOfSubject ? ["", subject] : [])
        // The lengths keep apart what a separator could not: an entry may have any character.
        return ContentHash(Array(texts.map { "\($0.utf8.count):\($0)" }.joined().utf8)).text
    }

    /// The subject's share of limits, nil if the server does not ask; in ASCII, so that equal texts have equal bytes.
    package let share: String?

    package var hasEnded: Bool { ended.load(ordering: .acquiring) }

    /// Whether the grant has ended by a time, also where the server has not noticed yet.
    package func hasEnded(at time: @autoclosure () -> Timestamp) -> Bool {
        hasEnded || expiry.map { $0 <= time() } ?? false
    }

    package func end() { ended.store(true, ordering: .releasing) }

    func sees(_ pointer: JSONPointer) -> Bool { parts?.covers(pointer) ?? true }

    /// The parts at or below a pointer, or around it, that the client may see; nil stands for the pointer itself.
    func parts(of pointer: JSONPointer) -> [JSONPointer]? {
        guard let parts, !parts.covers(pointer) else { return nil }
        return parts.overlapping(pointer)
    }

    func seesSome(of pointer: JSONPointer) -> Bool { parts?.overlaps(pointer) ?? true }

    func filter(_ pointer: JSONPointer) -> PointerFilter {
        parts.map { PointerFilter(pointer, in: $0) } ?? PointerFilter(pointer)
    }

    func sees(view name: String) -> Bool { views?.contains(ExactText(name)) ?? true }
    func sees(type: String) -> Bool { seenTypes.contains(type) }

    func sees(actionsBy subject: String?) -> Bool {
        seesOthers || ExactText(optional: subject) == ExactText(optional: self.subject)
    }

    var seesEveryAction: Bool { seesOthers && seenTypes.isEverything }

    package var seesEverything: Bool { parts == nil && views == nil && seesEveryAction }

    var backsUp: Bool { operates && seesEverything }

    /// Whether the client may make forks: one shows all of the history.
    package var forks: Bool { grant.fork && seesEverything }

    /// Whether the client may make an earlier state the present one.
    var restores: Bool { grant.isEverything || seesEverything && dispatchedTypes.names(Commit.restoreType) }
    package func dispatches(_ type: String) -> Bool { dispatchedTypes.contains(type) }

    /// Whether the client may dispatch an action that is for the domain alone: a hook whose grant names the whole type.
    func dispatchesInternal(_ type: String) -> Bool {
        subject.map(Self.isOfHook) ?? false && dispatchedTypes.names(type)
    }

    package func dispatches(_ action: any Action) -> Bool {
        dispatches(action.typeName) && hiddenPlace(of: action) == nil
    }

    func hiddenPlace(
        of action: any Action, at outer: (JSONPointer) -> JSONPointer = { $0 }
    ) -> (name: JSONPointer, place: JSONPointer)? {
        // The cast takes its time, and nothing is hidden from most clients.
        guard parts != nil, let action = action as? any PlacedAction else { return nil }
        return action.places.first { !sees(outer($0.place)) }
    }

    package static let hookPrefix = "hook:"

    package static func isOfHook(_ subject: String) -> Bool { subject.utf8.starts(with: hookPrefix.utf8) }

    package static func fault(inSubject subject: String) -> String? {
        !isOfHook(subject) && (1...255).contains(subject.utf8.count)
            && subject.unicodeScalars.allSatisfy { scalar in
                switch scalar.properties.generalCategory {
                case .control, .spaceSeparator, .lineSeparator, .paragraphSeparator: false
                default: true
                }
            }
            ? nil : "a subject has 1 to 255 bytes, without spaces and control characters, and does not begin with hook:"
    }
}

extension JSONPointer {
    static let subjectMark = "{subject}"

    func naming(_ subject: String) -> JSONPointer {
        JSONPointer(tokens.map { $0.replacing(Self.subjectMark, with: subject) })
    }
}

extension Access: Hashable {
    package static func == (left: Access, right: Access) -> Bool { left === right }

    /// Hashes the identity; a key holds the access, so that no other one gets its identity.
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
