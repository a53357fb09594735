internal import DequeModule
internal import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore
internal import Synchronization

package struct AnswerMembers: Sendable {
    let tag: String
    private let keys: [JSONKey]
    private let values: [JSONKey: ContentHash]
    let count: Int?

    /// Reads an answer; O(n) in its bytes.
    init?(_ encoded: Encoded) {
        guard let document = try? JSONDocument(encoded: encoded.body), let parts = JSONNode(document).members else {
            return nil
        }
        var keys: [JSONKey] = []
        var (values, count): ([JSONKey: ContentHash], Int?) = ([:], nil)
        for (name, part) in parts {
            switch name {
            case "members":
                for member in part.elements ?? [] {
                    // A member has its key first, and then its value.
                    let fields = member.members.map { Array($0.prefix(2)) } ?? []
                    guard fields.count == 2, let key = fields[0].value.string.map({ JSONKey($0) }) else { return nil }
                    keys.append(key)
                    values[key] = ContentHash(fields[1].value.text)
                }
            case "count": if case .integer(let number) = part.value { count = Int(number) }
            default: break
            }
        }
        (tag, self.keys, self.values, self.count) = (encoded.tag, keys, values, count)
    }

    var bytesCount: Int { keys.reduce(256) { $0 + 96 + 2 * $1.text.utf8.count } }

    /// The lists that make the difference to an earlier answer, which is nil if the client knows none.
    func lists(since before: AnswerMembers?) -> [(name: String, keys: [JSONKey])] {
        guard let before else { return [("initial", keys)] }
        let added = keys.filter { before.values[$0] == nil }
        let removed = before.keys.filter { values[$0] == nil }
        let changed = keys.filter { key in before.values[key].map { $0 != values[key] } ?? false }
        let moved = moved(since: before)
        let lists = [("added", added), ("changed", changed), ("moved", moved), ("removed", removed)]
        let isOrdered = added.isEmpty && moved.isEmpty && removed.isEmpty
        return lists.filter { !$0.1.isEmpty } + (isOrdered ? [] : [("order", keys)])
    }

    /// The fewest keys in both answers that have to move, so that the others keep their order.
    private func moved(since before: AnswerMembers) -> [JSONKey] {
        let places = Dictionary(before.keys.enumerated().map { ($1, $0) }) { first, _ in first }
        let kept = keys.compactMap { key in places[key].map { (key, $0) } }
        // The longest increasing subsequence of the former places stays; `ends` has the last place of one of each length.
        var ends: [Int] = []
        let lengths = kept.map { _, place in
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if ends[middle] < place { low = middle + 1 } else { high = middle }
            }
            if low == ends.count { ends.append(place) } else { ends[low] = place }
            return low
        }
        // The last that ends one of a length comes behind the last before it that ends one of the next shorter length.
        var (moved, length): ([JSONKey], Int) = ([], ends.count - 1)
        for ((key, _), own) in zip(kept, lengths).reversed() {
            if own == length { length -= 1 } else { moved.append(key) }
        }
        return moved.reversed()
    }
}

/// The newest answers to queries that clients follow with `as=keyed`, by the cursor that the client has.
///
/// At its limits the oldest goes; the client of one that has gone gets all keys again. Any thread may call any method.
package final class KeyedAnswers: Sendable {
    private struct Key: Hashable {
        let selection: Selection
        let cursor: Cursor

        var bytesCount: Int { 128 + selection.queryBytesCount }
    }

    private struct State {
        var answers: [Key: AnswerMembers] = [:]
        var order: Deque<Key> = []
        var bytesCount = 0
    }

    private let state = Mutex(State())
    private let bytesMax: Int

    package init(bytesMax: Int = 16 << 20) { self.bytesMax = bytesMax }

    func answer(to selection: Selection, at cursor: Cursor) -> AnswerMembers? {
        state.withLock { $0.answers[Key(selection: selection, cursor: cursor)] }
    }

    func note(_ answer: AnswerMembers, to selection: Selection, at cursor: Cursor) {
        let key = Key(selection: selection, cursor: cursor)
        state.withLock { state in
            guard state.answers.updateValue(answer, forKey: key) == nil else { return }
            state.order.append(key)
            state.bytesCount += key.bytesCount + answer.bytesCount
            while state.bytesCount > bytesMax, let oldest = state.order.popFirst() {
                state.bytesCount -= oldest.bytesCount + (state.answers.removeValue(forKey: oldest)?.bytesCount ?? 0)
            }
        }
    }
}

package struct KeyedQuery: Sendable {
    /// The `next` of the answer before; nil for a client that knows nothing.
    package let since: Cursor?
    let before: AnswerMembers?
}

/// Two queries for the same selection are equal where their clients know the same answer.
extension KeyedQuery: Hashable {
    package static func == (left: KeyedQuery, right: KeyedQuery) -> Bool {
        left.since == right.since && (left.before == nil) == (right.before == nil)
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(since) }
}

extension Contract {
    func keyedResponse(to request: ReadRequest, _ keyed: KeyedQuery, _ reading: Reading, _ encoded: Encoded) -> Response
    {
        guard let members = AnswerMembers(encoded), case .query(_, of: .pointer(let place)) = request.selection else {
            return response(to: .ourFault, latest: reading.cursor, name: request.name)
        }
        keyedAnswers.note(members, to: request.selection, at: reading.cursor)
        let lists = members.lists(since: keyed.before)
        let body = JSONWriter.object { writer in
            writer.key("collections")
            writer.object { writer in
                guard !lists.isEmpty else { return }
                writer.key(escaping: (request.store.inner(place) ?? place).description)
                writer.object { writer in
                    for (name, keys) in lists {
                        writer.key(escaping: name)
                        writer.array(keys) { $1.string($0.text) }
                    }
                }
            }
            if let count = members.count { writer.member("count", count) }
            writer.member("next", reading.cursor.description)
            writer.member("more", false)
        }
        return applied(request.wait, request.coding, to: .json(.ok, body, style: request.style, latest: reading.cursor))
    }
}
