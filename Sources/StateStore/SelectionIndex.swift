internal import StateJSON

/// Who waits for which selection, and the encodings that are known to be current.
///
/// A commit finds the selections that overlap what it touched; the others cost it nothing.
struct SelectionIndex: Sendable {
    private struct Entry {
        /// The value now, where it has been asked for since it last changed.
        var encoded: Encoded?
        /// Who waits, and for what.
        var parked: [WaiterToken: WaitCondition] = [:]
    }

    private var entries: [Selection: Entry] = [:]
    private var tree = PointerTree<Selection>()
    private let viewReads: [String: [JSONPointer]]
    private var idleBytes = 0
    private var idleCount = 0
    /// Encodings that nobody waits for are kept up to here, then dropped together.
    private let idleBytesMax = 32 << 20
    private let idleCountMax = 4096

    init(viewReads: [String: [JSONPointer]]) {
        self.viewReads = viewReads
    }

    private func places(of selection: Selection) -> [JSONPointer] {
        switch selection {
        case .pointer(let pointer): [pointer]
        case .view(let name): viewReads[name] ?? [.root]
        }
    }

    /// The current value, where it is known.
    func encoded(_ selection: Selection) -> Encoded? { entries[selection]?.encoded }

    /// Notes the current value.
    mutating func note(_ encoded: Encoded, for selection: Selection) {
        if idleCount >= idleCountMax || idleBytes + encoded.bytes.count > idleBytesMax { dropIdle() }
        withEntry(selection) { $0.encoded = encoded }
        idleCount += 1
        idleBytes += encoded.bytes.count
    }

    private mutating func dropIdle() {
        for (selection, entry) in entries where entry.parked.isEmpty { removeEntry(selection) }
        (idleCount, idleBytes) = (0, 0)
    }

    mutating func park(_ token: WaiterToken, at selection: Selection, until condition: WaitCondition) {
        withEntry(selection) { $0.parked[token] = condition }
    }

    mutating func remove(_ token: WaiterToken, at selection: Selection) {
        entries[selection]?.parked[token] = nil
        if let entry = entries[selection], entry.parked.isEmpty, entry.encoded == nil { removeEntry(selection) }
    }

    private mutating func withEntry(_ selection: Selection, _ change: (inout Entry) -> Void) {
        if entries[selection] == nil {
            entries[selection] = Entry()
            for place in places(of: selection) { tree.insert(selection, at: place) }
        }
        change(&entries[selection, default: Entry()])
    }

    private mutating func removeEntry(_ selection: Selection) {
        entries[selection] = nil
        for place in places(of: selection) { tree.remove(selection, at: place) }
    }

    /// The selections, among those known here, whose value a change at these places may have changed.
    func selections(touchedBy pointers: some Sequence<JSONPointer>) -> Set<Selection> {
        var found: Set<Selection> = []
        for pointer in pointers { tree.collect(overlapping: pointer, into: &found) }
        return found
    }

    /// Whether somebody waits for a selection.
    func isAwaited(_ selection: Selection) -> Bool { entries[selection]?.parked.isEmpty == false }

    /// Sets the value of a selection that may have changed and takes out those whom it concerns.
    mutating func settle(_ selection: Selection, _ encoded: Encoded?) -> [WaiterToken] {
        guard var entry = entries[selection] else { return [] }
        lazy var value = encoded?.value
        let woken = entry.parked.filter { $0.value.isMet(by: encoded) { value } }.map(\.key)
        if woken.count == entry.parked.count {
            entry.parked = [:]
        } else {
            for token in woken { entry.parked[token] = nil }
        }
        entry.encoded = encoded
        entries[selection] = entry
        if entry.parked.isEmpty, encoded == nil { removeEntry(selection) }
        return woken
    }

    /// Forgets the value of a selection that may have changed and that nobody waits for.
    mutating func forget(_ selection: Selection) {
        guard let entry = entries[selection] else { return }
        if entry.parked.isEmpty { removeEntry(selection) } else { entries[selection]?.encoded = nil }
    }
}
