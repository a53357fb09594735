package import StateJSON

extension JSONTree {
    /// Does what ``compare(_:_:into:)`` does for two values of documents, where nothing is encoded.
    package static func compareDocuments(_ old: JSONTree, _ new: JSONTree, into patch: inout JSONPatch) {
        guard old !== new else { return }
        switch (old.shape, new.shape) {
        case (.text(let before), .text(let after)): patch.compare(before, after)
        case (.object(let before), .object(let after)):
            patch.compareChildren(old.bytesCount, { new.text }) {
                (patch) throws(JSONPatch.ManyDifferences) in
                try PersistentMap.visitDifferences(before, after) {
                    (key, before, after) throws(JSONPatch.ManyDifferences) in
                    guard before !== after else { return }
                    try patch.compareChild { patch in
                        switch (before.map(tree), after.map(tree)) {
                        case (let before?, let after?):
                            patch.descend(key.token) { compareDocuments(before, after, into: &$0) }
                        case (nil, let after?): patch.add(member: key.token, value: after.text)
                        case (let before?, nil): patch.remove(member: key.token, before.bytesCount)
                        case (nil, nil): break
                        }
                    }
                }
            }
        case (.array(let before), .array(let after)): compare(old, before, new, after, into: &patch)
        default:
            guard old.isArray == new.isArray, let old = old.opened, let new = new.opened else {
                return patch.replace(old.bytesCount, with: new.text)
            }
            compareDocuments(old, new, into: &patch)
        }
    }

    private static func compare(
        _ old: JSONTree, _ before: PersistentList, _ new: JSONTree, _ after: PersistentList,
        into patch: inout JSONPatch
    ) {
        // Many differences are none to list.
        let differences = try? PersistentList.differences(
            before, after, countMax: JSONPatch.differencesMax(of: old.bytesCount))
        let moved = differences.map { $0.removed.count + $0.inserted.count } ?? .max
        if moved > 0, !old.isLong, !new.isLong {
            if moved > 16, moved > after.count / 2 { return patch.compare(old.text, new.text) }
            // An array that comes as a whole has other places for the same elements than one that has been changed.
            if old.equals(new) { return }
        }
        guard let differences else { return patch.replace(old.bytesCount, with: new.text) }
        patch.compareChildren(old.bytesCount, { new.text }) {
            (patch) throws(JSONPatch.ManyDifferences) in
            // Removing from the end and then inserting from the start leaves every other index of the operations valid.
            for (position, element) in differences.removed.reversed() {
                patch.remove(at: position, element.bytesCount)
            }
            for (position, element) in differences.inserted { patch.insert(at: position, value: element.text) }
            for (position, before, after) in differences.replaced {
                try patch.compareChild { $0.descend(String(position)) { compareDocuments(before, after, into: &$0) } }
            }
        }
    }

    /// The value with the trees of an old one wherever the two are equal, so that ``compare(_:_:into:)`` finds the
    /// differences without a walk, or the old value itself.
    ///
    /// The text of each part that the comparison will write as a whole is ready. The cost is O(n) in both values.
    package func sharing(_ old: JSONTree?) -> JSONTree {
        if let shared = old.flatMap({ shared(with: $0) }) { return shared }
        if isLong { prepareText() }
        return self
    }

    /// Nil for a value that the old one has too little in common with.
    private func shared(with old: JSONTree) -> JSONTree? {
        var count = 0
        let countMax = JSONPatch.differencesMax(of: old.bytesCount)
        switch (old.shape, shape) {
        case (.text(let before), .text(let after)): return before == after ? old : self
        case (.object(let before), .object(let after)):
            var members = before
            do throws(JSONPatch.ManyDifferences) {
                try PersistentMap.visitDifferences(before, after) {
                    (key, before, after) throws(JSONPatch.ManyDifferences) in
                    let shared = after.map { Self.tree($0).sharing(before.map(Self.tree)) }
                    guard shared !== before else { return }
                    if let shared { members.set(key, shared) } else { members.remove(key) }
                    count += 1
                    guard count <= countMax else { throw JSONPatch.ManyDifferences() }
                }
            } catch { return nil }
            return count == 0 ? old : sizes.map { JSONTree(.object(members), $0) }
        case (.array(let before), .array(let after)):
            let (olds, news) = (before.elements, after.elements)
            let shorter = min(olds.count, news.count)
            var (start, tail) = (0, 0)
            if olds.count != news.count {
                while start < shorter, news[start].equals(olds[start]) { start += 1 }
                while tail < shorter - start, news[news.count - 1 - tail].equals(olds[olds.count - 1 - tail]) {
                    tail += 1
                }
            }
            var elements = before
            count = abs(olds.count - news.count)
            for index in start..<shorter - tail where count <= countMax {
                let shared = news[index].sharing(olds[index])
                guard shared !== olds[index] else { continue }
                elements[index] = shared
                count += 1
            }
            guard count <= countMax else { return nil }
            for index in (shorter - tail..<olds.count - tail).reversed() { elements.remove(at: index) }
            for index in shorter - tail..<news.count - tail { elements.insert(news[index].sharing(nil), at: index) }
            return count == 0 ? old : sizes.map { JSONTree(.array(elements), $0) }
        default: return nil
        }
    }

    package func equals(_ other: JSONTree) -> Bool {
        self === other || bytesCount == other.bytesCount && text == other.text
    }

    /// Whether the value equals another one as values do, numbers in any spelling; the cost is that of what is equal.
    package func equals(_ other: JSONValue) -> Bool {
        switch (shape, other) {
        case (.object(let members), .object(let object)):
            return members.count == object.members.count
                && object.members.allSatisfy { key, value in
                    members[Self.key(key)].map { Self.tree($0).equals(value) } ?? false
                }
        case (.array(let elements), .array(let values)):
            guard elements.count == values.count else { return false }
            var index = 0
            do throws(Unequal) {
                try elements.visit { (element) throws(Unequal) in
                    guard element.equals(values[index]) else { throw Unequal() }
                    index += 1
                }
            } catch { return false }
            return true
        case (.text(let text), .string): return text == other.text
        case (.text(let text), _):
            return text.first != UInt8(ascii: "\"") && (text == other.text || value == other)
        default: return false
        }
    }

    private struct Unequal: Error {}
}

/// An action with values that may be long, and that the state may have already.
///
/// They are looked up before the turn, which then has only the differences to compare.
package protocol SharingAction: Action {
    func sharing(_ state: JSONTree) -> Self
}

extension UntypedStore {
    /// The transaction with what its long values, and those that it expects, and the published state have in common.
    ///
    /// The cost is that of the values, so a caller with long ones is on a thread that serves nobody else. Another state in the
    /// turn makes the turn longer, and its outcome is the same.
    package func prepared(_ transaction: Transaction) -> Transaction {
        var (items, expectations) = (transaction.items, transaction.expectations)
        guard transaction.isPreparable, let state = latest.state.document else {
            return transaction
        }
        for index in expectations.indices where !expectations[index].isHidden {
            guard case .value(let value) = expectations[index].wanted,
                let tree = state.tree(at: expectations[index].pointer.tokens[...]), tree.isLong
            else { continue }
            expectations[index].known = (tree, tree.equals(value))
        }
        for index in items.indices where transaction.isLong {
            guard case .action(let action as any SharingAction) = items[index].content else { continue }
            items[index].content = .action(action.sharing(state))
        }
        return transaction.copy(
            items, wantsRepresentation: transaction.wantsRepresentation, expectations: expectations)
    }
}
