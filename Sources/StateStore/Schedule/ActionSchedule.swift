package import StateJSON

/// The actions that are to be dispatched later, by their names and in the order of their times.
///
/// A copy costs nothing, and a change O(log n): a snapshot has the schedule of its version.
package struct ActionSchedule: Sendable {
    fileprivate struct Content {
        var entries = PersistentMap<ScheduleKey, ScheduledAction>()
        var order = PersistentMap<ScheduledAction.Order, ScheduledAction>()
        var placesCount = 0
        var bytesCount = 0
        var shares = PersistentMap<ScheduleKey, Share>()
    }

    /// The content as an object, because every snapshot and every call of a reducer has a schedule.
    private final class Shared: Sendable {
        let content: Content
        init(_ content: consuming Content) { self.content = content }
        static let empty = Shared(Content())
    }

    private var shared: Shared

    struct Share: Sendable { var (count, bytesCount) = (0, 0) }

    package init() { shared = .empty }

    package var isEmpty: Bool { shared.content.entries.isEmpty }
    package var count: Int { shared.content.entries.count }
    package var bytesCount: Int { shared.content.bytesCount }
    package var first: ScheduledAction? { shared.content.order.first?.value }
    var hasPlaces: Bool { shared.content.placesCount > 0 }

    package subscript(name: ScheduledName) -> ScheduledAction? { shared.content.entries[name.key] }

    func share(of owner: ScheduleKey) -> Share { shared.content.shares[owner] ?? Share() }

    package func due(at time: Timestamp, limit: Int) -> [ScheduledAction] {
        var found: [ScheduledAction] = []
        while found.count < limit, found.count < count {
            let next = shared.content.order[at: found.count].value
            guard next.due <= time else { break }
            found.append(next)
        }
        return found
    }

    package func visit<Failure: Error>(_ body: (ScheduledAction) throws(Failure) -> Void) throws(Failure) {
        try shared.content.order.visit { (_, action) throws(Failure) in try body(action) }
    }

    func has(_ action: ScheduledAction) -> Bool { shared.content.entries[action.name.key]?.order == action.order }

    func places(atOrBelow pointer: String) -> [ScheduledAction] {
        let (key, entries) = (ScheduleKey(place: pointer), shared.content.entries)
        var found: [ScheduledAction] = []
        var position = entries.position(of: key)
        while position < entries.count, entries[at: position].key.isAtOrBelow(key) {
            found.append(entries[at: position].value)
            position += 1
        }
        return found
    }

    /// Returns whether the action replaces one of its name.
    @discardableResult
    mutating func put(_ action: ScheduledAction) -> Bool {
        var content = shared.content
        defer { shared = Shared(content) }
        return content.put(action)
    }

    @discardableResult
    mutating func remove(_ name: ScheduledName) -> ScheduledAction? {
        var content = shared.content
        guard let removed = content.remove(name) else { return nil }
        shared = Shared(content)
        return removed
    }

    package mutating func apply(_ changes: ScheduleChanges?) {
        guard let changes else { return }
        var content = shared.content
        for change in changes.changes {
            switch change {
            case .put(let action, _): _ = content.put(action)
            case .removed(let name, _): _ = content.remove(name)
            }
        }
        shared = Shared(content)
    }
}

extension ActionSchedule.Content {
    fileprivate mutating func put(_ action: ScheduledAction) -> Bool {
        let isReplaced = remove(action.name) != nil
        entries.set(action.name.key, action)
        order.set(action.order, action)
        count(action, 1)
        return isReplaced
    }

    fileprivate mutating func remove(_ name: ScheduledName) -> ScheduledAction? {
        guard !entries.isEmpty, let action = entries[name.key] else { return nil }
        entries.remove(name.key)
        order.remove(action.order)
        count(action, -1)
        return action
    }

    fileprivate mutating func count(_ action: ScheduledAction, _ sign: Int) {
        bytesCount += sign * action.weight
        if action.name.isPlace { placesCount += sign }
        guard let owner = action.owner else { return }
        var share = shares[owner] ?? ActionSchedule.Share()
        (share.count, share.bytesCount) = (share.count + sign, share.bytesCount + sign * action.weight)
        if share.count > 0 { shares.set(owner, share) } else { shares.remove(owner) }
    }
}

extension ActionSchedule: Equatable {
    package static func == (left: ActionSchedule, right: ActionSchedule) -> Bool { left.json == right.json }

    /// UTF-8 JSON: an array of the actions, in the order of their times.
    package var json: [UInt8] {
        var writer = JSONWriter()
        writer.array(shared.content.order.map { $1 }) { action, writer in writer.raw(action.json) }
        return writer.bytes
    }

    /// Reads ``json``, with IDs that are cursors as `change` spells them; O(n log n).
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
        var content = Content()
        (content.order, content.entries) = (PersistentMap(sorted: found), PersistentMap(sorted: named))
        for (_, action) in found { content.count(action, 1) }
        shared = Shared(content)
    }
}
