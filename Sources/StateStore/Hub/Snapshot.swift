package import StateJSON
internal import Synchronization

/// A state whose type only its domain knows: Swift looks up the metadata of a generic type at each mention, and moves
/// its values through witnesses.
package struct StateBox: Sendable {
    private let object: any AnyObject & Sendable

    init(_ box: Box<some Sendable>) { object = box }

    package static func of(_ state: consuming some Sendable) -> StateBox { StateBox(Box(state)) }

    /// The state, which is of this type: the cost is that of a copy.
    package func state<State: Sendable>(as _: State.Type = State.self) -> State { box(of: State.self).value }

    func isOf<State: Sendable>(_: State.Type) -> Bool { type(of: object) == Box<State>.self }

    /// The tree that the state of a domain without Swift types is; nil for any other state.
    var document: JSONTree? { isOf(JSONTree.self) ? box(of: JSONTree.self).value : nil }

    /// The box of its type.
    ///
    /// - Precondition: the state is of this type.
    @inline(__always)
    func box<State: Sendable>(of _: State.Type) -> Box<State> { unsafeDowncast(object, to: Box<State>.self) }
}

final class Box<State: Sendable>: Sendable {
    typealias Reduce = @Sendable (inout State, any Action, ReducerContext) throws(Rejection) -> Void

    let value: State

    init(_ value: consuming State) { self.value = value }

    static func reducer(_ apply: @escaping Reduce) -> Box<StateBox>.Reduce {
        { (state, action, context) throws(Rejection) in
            state = try state.box(of: State.self).reduced(by: apply, action, context)
        }
    }

    /// The state that an action makes of this one; a method of a box need not look up the type of the new one.
    private func reduced(
        by apply: Reduce, _ action: any Action, _ context: ReducerContext
    ) throws(Rejection) -> StateBox {
        var state = value
        try apply(&state, action, context)
        return StateBox(Box(consume state))
    }

    static func step(_ step: @escaping TreeStep<State>) -> TreeStep<StateBox> {
        { box, earlier, encoder, patch in try step(box.box(of: State.self).value, earlier, encoder, &patch) }
    }
}

/// The state at one version, an object so that readers, subscribers and the next turn share it without a copy.
package final class Snapshot: Sendable {
    // exclusivity unchecked: only the turn that makes a snapshot changes it, and a check takes as long as ten accesses.

    let state: StateBox
    /// The tree of the state; while a turn makes the snapshot, that of the one before.
    ///
    /// unsafe: as ``viewVersions``.
    @exclusivity(unchecked) nonisolated(unsafe) package internal(set) var tree: JSONTree
    package let cursor: Cursor
    /// The last-changed version of each view, by the view's number; 0 where nothing that it reads has changed since the start.
    ///
    /// Empty for a past state, whose views have no values in a cache.
    ///
    /// unsafe: only the turn that makes the snapshot sets it, before another thread can have the snapshot.
    @exclusivity(unchecked) nonisolated(unsafe) var viewVersions: [Version]
    /// The bytes of the state as compact JSON, if somebody has counted them.
    ///
    /// unsafe: as ``viewVersions``.
    @exclusivity(unchecked) nonisolated(unsafe) var bytesCount: Int?
    /// The actions that are to be dispatched later.
    ///
    /// unsafe: as ``viewVersions``.
    @exclusivity(unchecked) nonisolated(unsafe) package internal(set) var schedule: ActionSchedule
    private let domain: CompiledDomain

    init(
        _ state: StateBox, _ tree: JSONTree, of domain: CompiledDomain, at cursor: Cursor, viewVersions: [Version],
        schedule: ActionSchedule = ActionSchedule()
    ) {
        self.schedule = schedule
        (self.state, self.tree) = (state, tree)
        self.cursor = cursor
        self.viewVersions = viewVersions
        self.domain = domain
    }

    init(_ state: StateBox, after before: Snapshot) {
        (self.state, domain) = (state, before.domain)
        cursor = Cursor(before.cursor.epoch, before.version + 1)
        (viewVersions, schedule, tree) = (before.viewVersions, before.schedule, before.tree)
    }

    var version: Version { cursor.version }

    package func tree(at place: JSONPointer) -> JSONTree? { tree.tree(at: place.tokens[...]) }

    /// The long value at a place of a document, which keeps the tag that somebody makes of it; nil elsewhere.
    package func longTree(at place: JSONPointer) -> JSONTree? {
        state.document?.tree(at: place.tokens[...]).flatMap { $0.isLong ? $0 : nil }
    }

    /// The bytes of the state as compact JSON; nil where nobody has counted them.
    package var jsonBytes: Int? { state.document?.bytesCount ?? bytesCount }

    /// The bytes of memory of the state, with what it shares with others; 0 where nobody counts them.
    package var memoryBytes: Int { state.document?.memoryBytes ?? 0 }

    package var loadCount: Int { domain.loads.value }

    func change(ofView number: Int) -> Cursor? {
        viewVersions.isEmpty ? nil : Cursor(cursor.epoch, viewVersions[number])
    }

    /// Only the turn that has made the snapshot calls this.
    func noteViewVersions(changedPointers: [JSONPointer], by entries: [ActionEntry]) {
        // A batch has many actions of few types; nearly every commit has one action.
        var seen: Set<Int> = []
        for entry in entries where entries.count == 1 || seen.insert(entry.number).inserted {
            for reads in entry.reads where reads.overlap(changedPointers, isAlone: entries.count == 1) {
                viewVersions[reads.view] = version
            }
        }
    }

    /// The value of a selection, unless it has more than `countMax` parts to encode; O(n) in its size.
    package func selected(_ selection: Selection, countMax: Int) throws -> SelectedValue {
        try domain.select(selection, in: self, countMax: countMax)
    }

    /// O(n) in the size of the value.
    package func encoded(_ selection: Selection) throws -> Encoded? {
        try selected(selection, countMax: .max).bytes.map(Encoded.init)
    }

    /// The whole state as UTF-8 JSON, at a cost of O(n); never throws for a committed state.
    package func whole() throws -> [UInt8] {
        try selected(.pointer(.root), countMax: .max).bytes ?? []
    }
}

package final class Encoded: Sendable {
    /// Compact UTF-8 JSON and a line feed: the body of an answer, which clients share.
    package let body: [UInt8]
    package var json: ArraySlice<UInt8> { body.dropLast() }
    package var bytes: [UInt8] { Array(json) }
    /// The content tag: a strong hash of exactly these bytes.
    package let tag: String
    private let forms = Mutex<[String: [UInt8]]>([:])
    private let companion = Mutex<(any AnyObject & Sendable)?>(nil)
    private let held = Mutex<HeldMemory?>(nil)

    /// Up to so many bytes a value is kept for each selection that is watched.
    static let smallBytesMax = 64 << 10
    private static let uncountedBytesMax = 1024

    /// O(n) in the number of bytes, which it hashes.
    package init(_ bytes: [UInt8]) {
        tag = bytes.withUnsafeBytes { ContentHash($0) }.text
        // A buffer that has grown has up to as much room again, which nobody counts.
        var body: [UInt8] = []
        body.reserveCapacity(bytes.count + 1)
        body += bytes
        body.append(UInt8(ascii: "\n"))
        self.body = body
    }

    /// Indented UTF-8 JSON for people; the first call costs O(n), and clients of one value share the result.
    package func indented() -> [UInt8] { form("indented", JSONText.indented) }

    package var isIndented: Bool { has("indented") }

    package func form(_ name: String, _ make: ([UInt8]) -> [UInt8]) -> [UInt8] {
        if let known = forms.withLock({ $0[name] }) { return known }
        let made = make(body)
        return forms.withLock { forms in
            // A concurrent call may have made the same bytes; clients share those of the first.
            let shared = forms[name] ?? made
            forms[name] = shared
            // A refusal is ignored: the forms of a value are made in any case.
            _ = held.withLock { $0?.hold(forms.values.reduce(body.count) { $0 + $1.count }) }
            return shared
        }
    }

    package func has(_ form: String) -> Bool { forms.withLock { $0[form] != nil } }

    package var bytesCount: Int { forms.withLock { $0.values.reduce(body.count) { $0 + $1.count } } }

    package func kept<Companion>() -> Companion? { companion.withLock { $0 as? Companion } }

    /// Keeps what the server makes of the bytes as long as the value, such as the event with it; clients share it.
    package func keep(_ object: some AnyObject & Sendable) {
        companion.withLock { $0 = object }
        _ = held.withLock { $0?.hold(2 * body.count) }
    }

    var isLarge: Bool { body.count > Self.smallBytesMax }

    func uncount() { _ = held.withLock { exchange(&$0, with: nil) } }

    /// Counts the bytes as long as the value lives, unless they do already; counts nothing where there is no room.
    func count(in memory: ClientMemory, for client: String) -> ClientMemory.Refusal? {
        guard body.count > Self.uncountedBytesMax else { return nil }
        return held.withLock { held in
            guard held == nil else { return nil }
            let counted = HeldMemory(memory, for: client)
            if let refusal = counted.hold(body.count) { return refusal }
            held = counted
            return nil
        }
    }

    /// The cost is O(n) in the number of bytes, at each access.
    var value: JSONValue? {
        // Losing the error is right: the store has encoded these bytes, so they are JSON.
        try? JSONValue(parsing: body, depthMax: .max)
    }
}

package struct Reading: Sendable {
    package let cursor: Cursor
    package let encoded: Encoded?

    package init(cursor: Cursor, encoded: Encoded?) {
        self.cursor = cursor
        self.encoded = encoded
    }
}
