internal import StateJSON
package import StateStore
internal import Synchronization

/// The access of the client of a request: a grant, read against the catalogue of a domain.
///
/// It is an object, because requests with one credential share it, and because a revocation ends it for all of them.
package final class Access: Sendable {
    /// The client's subject, or nil if the server does not ask.
    package let subject: String?
    let grant: Grant
    /// When the credential ends by itself; nil for never.
    package let expiry: Timestamp?
    /// The kind of the credential, or nil if the server does not ask.
    let credential: CredentialKind?
    let isUnlimited: Bool
    /// Whether the client may see metrics and every reason of readiness, and operate the journal.
    package let operates: Bool
    private let mayFork: Bool
    let seesOthers: Bool
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

    /// The access of every client of a server that does not ask who they are.
    package init() {
        (subject, isUnlimited, operates, mayFork, seesOthers) = (nil, true, true, true, true)
        (parts, views, visibility, share) = (nil, nil, nil, nil)
        (grant, expiry, credential) = (.everything, nil, nil)
        var types = TypeSet()
        types.insert("*")
        (seenTypes, dispatchedTypes) = (types, types)
    }

    /// Reads a grant against a catalogue.
    ///
    /// An entry that the grant misspells, or that names a view or a store that the domain has not, allows nothing.
    ///
    /// - Parameter expiry: when the credential ends by itself; nil for never.
    package init(
        _ grant: Grant, subject: String, in catalogue: Catalogue, expiry: Timestamp? = nil,
        by credential: CredentialKind? = nil
    ) {
        (self.subject, self.grant, self.expiry, self.credential) = (subject, grant, expiry, credential)
        share = "subject " + Self.escaped(subject)
        operates = grant.operate
        mayFork = grant.fork
        seesOthers = grant.others
        var dispatched = TypeSet()
        for type in grant.dispatch { dispatched.insert(type) }
        dispatchedTypes = dispatched
        var isWhole = false
        var pointers: [JSONPointer] = []
        var seenViews: Set<ExactText> = []
        var seen = TypeSet()
        for entry in grant.read.compactMap(ReadEntry.init) {
            switch entry {
            case .everything:
                isWhole = true
                seen.insert("*")
            case .pointer(let pointer): pointers.append(pointer.naming(subject))
            case .view(let name): seenViews.insert(ExactText(name))
            case .actions(let pattern): seen.insert(pattern)
            case .store(let name):
                guard let store = catalogue.stores.first(where: { JSONPointer.sameBytes($0.name, name) }) else { break }
                pointers.append(store.pointer)
                seenViews.formUnion(store.views.values.map { ExactText($0) })
                for type in store.types { seen.insert(type) }
            }
        }
        parts = isWhole ? nil : PointerSet(pointers)
        views = isWhole ? nil : seenViews
        seenTypes = seen
        isUnlimited = isWhole && grant.others && grant.dispatch.contains("*")
        visibility = isWhole && grant.others ? nil : Self.visibility(of: grant, subject)
    }

    /// A text in ASCII that no other text has: a percent sign and two digits for each other byte.
    private static func escaped(_ text: String) -> String {
        text.utf8.reduce(into: "") { escaped, byte in
            if byte < 0x80, byte != UInt8(ascii: "%") {
                escaped.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                escaped += "%" + String(byte, radix: 16)
            }
        }
    }

    private static func visibility(of grant: Grant, _ subject: String) -> String {
        // The actions that a client may see are its own where it may not see those of others.
        let entries = Set(grant.read.map { ExactText($0) }).map(\.text).sorted {
            $0.utf8.lexicographicallyPrecedes($1.utf8)
        }
        // The lengths keep apart what a separator could not: an entry may have any character.
        let isOfSubject = !grant.others || grant.read.contains { $0.contains(JSONPointer.subjectMark) }
        let texts = entries + (isOfSubject ? ["", subject] : [])
        return ContentHash(Array(texts.map { "\($0.utf8.count):\($0)" }.joined().utf8)).text
    }

    /// To whose share of limits the requests count: the subject's, unless the server does not ask who the clients are.
    ///
    /// It is ASCII, so that its bytes are equal where Swift takes it for equal.
    package let share: String?

    // MARK: The end

    /// Whether the grant has ended: the credential was revoked, or the server has noticed that it has expired.
    package var hasEnded: Bool { ended.load(ordering: .acquiring) }

    /// Whether the grant has ended by a time, also where the server has not noticed yet.
    package func hasEnded(at time: @autoclosure () -> Timestamp) -> Bool {
        hasEnded || expiry.map { $0 <= time() } ?? false
    }

    /// Ends the access of every request that holds it.
    package func end() { ended.store(true, ordering: .releasing) }

    // MARK: What the client may see

    func sees(_ pointer: JSONPointer) -> Bool { parts?.covers(pointer) ?? true }

    var hidesParts: Bool { parts != nil }

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

    /// Whether the client may see everything: the whole state of each version, and each action.
    package var seesEverything: Bool { parts == nil && views == nil && seesEveryAction }

    /// Whether the client may have a copy of the journal, in which is everything.
    var backsUp: Bool { operates && seesEverything }

    /// Whether the client may make forks: one shows all of the history.
    package var forks: Bool { mayFork && seesEverything }

    /// Whether the client may make an earlier state the present one.
    ///
    /// The grant has everything, or it names that action by its whole type, and sees everything.
    var restores: Bool { grant.isEverything || seesEverything && dispatchedTypes.names(Commit.restoreType) }

    /// Whether the client may dispatch actions of a type.
    package func dispatches(_ type: String) -> Bool { dispatchedTypes.contains(type) }

    /// Whether the client may dispatch an action that is for the domain alone: a hook whose grant names the whole type.
    func dispatchesInternal(_ type: String) -> Bool {
        subject.map(Self.isOfHook) ?? false && dispatchedTypes.names(type)
    }

    /// Whether the client may dispatch an action: its type, at places that the client may see.
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
}

extension JSONPointer {
    static let subjectMark = "{subject}"

    /// The pointer with a subject in place of each `{subject}`: the text of a token, whatever characters it has.
    func naming(_ subject: String) -> JSONPointer {
        JSONPointer(tokens.map { $0.replacing(Self.subjectMark, with: subject) })
    }
}

extension Access: Hashable {
    /// Accesses are equal when they are the same object.
    package static func == (left: Access, right: Access) -> Bool { left === right }

    /// Hashes the identity; a key holds the access, so that no other one gets its identity.
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension Access {
    /// The beginning of the subjects of hooks, which no client has.
    package static let hookPrefix = "hook:"

    package static func isOfHook(_ subject: String) -> Bool { subject.utf8.starts(with: hookPrefix.utf8) }

    /// The fault in the name of a client's subject, or nil.
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
