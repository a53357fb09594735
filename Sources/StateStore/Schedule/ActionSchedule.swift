package import StateJSON

/// The actions that are to be dispatched later, by their names and in the order of their times.
///
/// A copy costs nothing, and a change O(log n): a snapshot has the schedule of its version.
package struct ActionSchedule: Sendable {
    private var entries = PersistentMap<ScheduleKey, ScheduledAction>()
    private var order = PersistentMap<ScheduledAction.Order, ScheduledAction>()
    /// How many of them are places that expire.
    private var placesCount = 0
    /// About how many bytes of memory they take.
    package private(set) var bytesCount = 0
    private var shares = PersistentMap<ScheduleKey, Share>()

    /// The part of one client.
    struct Share: Sendable { var (count, bytesCount) = (0, 0) }

    package init() {}

    package var isEmpty: Bool { entries.isEmpty }
    package var count: Int { entries.count }
    /// The action that is due first.
    package var first: ScheduledAction? { order.first?.value }
    var hasPlaces: Bool { placesCount > 0 }

    package subscript(name: ScheduledName) -> ScheduledAction? { entries[name.key] }

    func share(of owner: ScheduleKey) -> Share { shares[owner] ?? Share() }

    /// Counts an action that was added, or removed.
    private mutating func addToShares(_ action: ScheduledAction, _ sign: Int) {
        bytesCount += sign * action.weight
        if action.name.isPlace { placesCount += sign }
        guard let owner = action.owner else { return }
        var share = share(of: owner)
        (share.count, share.bytesCount) = (share.count + sign, share.bytesCount + sign * action.weight)
        if share.count > 0 { shares.set(owner, share) } else { shares.remove(owner) }
    }

    /// The actions that are due at a time, in their order, at most as many as are asked for.
    package func due(at time: Timestamp, limit: Int) -> [ScheduledAction] {
        var found: [ScheduledAction] = []
        while found.count < limit, found.count < order.count {
            let next = order[at: found.count].value
            guard next.due <= time else { break }
            found.append(next)
        }
        return found
    }

    /// Calls a function with each action, in the order of their times.
    package func visit<Failure: Error>(_ body: (ScheduledAction) throws(Failure) -> Void) throws(Failure) {
        try order.visit { (_, action) throws(Failure) in try body(action) }
    }

    /// Whether an action is there, as the commit of this version has scheduled it.
    func has(_ action: ScheduledAction) -> Bool { entries[action.name.key]?.order == action.order }

    /// The places that expire at a place and below it.
    func places(atOrBelow pointer: String) -> [ScheduledAction] {
        let key = ScheduleKey(place: pointer)
        var found: [ScheduledAction] = []
        var position = entries.position(of: key)
        while position < entries.count, entries[at: position].key.isAtOrBelow(key) {
            found.append(entries[at: position].value)
            position += 1
        }
        return found
    }

    /// Adds an action, or replaces the one of its name.
    ///
    /// - Returns: whether it replaces one.
    @discardableResult
    mutating func put(_ action: ScheduledAction) -> Bool {
        let isReplaced = remove(action.name) != nil
        entries.set(action.name.key, action)
        order.set(action.order, action)
        addToShares(action, 1)
        return isReplaced
    }

    @discardableResult
    mutating func remove(_ name: ScheduledName) -> ScheduledAction? {
        guard !entries.isEmpty, let action = entries[name.key] else { return nil }
        entries.remove(name.key)
        order.remove(action.order)
        addToShares(action, -1)
        return action
    }

    /// Makes the changes of a commit.
    package mutating func apply(_ changes: ScheduleChanges?) {
        for change in changes?.changes ?? [] {
            switch change {
            case .put(let action, _): put(action)
            case .removed(let name, _): remove(name)
            }
        }
    }
}

extension ActionSchedule: Equatable {
    package static func == (left: ActionSchedule, right: ActionSchedule) -> Bool { left.json == right.json }

    /// UTF-8 JSON: an array of the actions, in the order of their times.
    package var json: [UInt8] {
        var writer = JSONWriter()
        var isFirst = true
        writer.byte(UInt8(ascii: "["))
        order.visit { _, action in
            writer.separator(&isFirst)
            writer.raw(action.json)
        }
        writer.byte(UInt8(ascii: "]"))
        return writer.bytes
    }

    /// Reads ``json``; O(n log n).
    ///
    /// - Parameter change: how IDs that are cursors are spelled.
    package init(_ json: [UInt8], under change: EpochChange? = nil) throws(JSONFault) {
        let node = JSONNode(try JSONDocument(json, depthMax: 1010))
        guard let elements = node.elements else { throw JSONFault(.mismatch, at: .root, "expected an array") }
        var found: [(ScheduledAction.Order, ScheduledAction)] = []
        var types: Set<ExactText> = []
        found.reserveCapacity(elements.count)
        for element in elements {
            let action = try ScheduledAction(element, root: { change?.id($0) ?? $0 }) { type in
                types.insert(ExactText(type)).memberAfterInsert.text
            }
            if let last = found.last, !(last.0 < action.order) {
                throw JSONFault(.mismatch, at: element.pointer, "expected the actions in the order of their times")
            }
            found.append((action.order, action))
        }
        let named = found.map { ($0.1.name.key, $0.1) }.sorted { $0.0 < $1.0 }
        for (key, next) in zip(named, named.dropFirst()) where !(key.0 < next.0) {
            throw JSONFault(.mismatch, at: .root, "expected one action of a name")
        }
        (order, entries) = (PersistentMap(sorted: found), PersistentMap(sorted: named))
        for (_, action) in found { addToShares(action, 1) }
    }
}
