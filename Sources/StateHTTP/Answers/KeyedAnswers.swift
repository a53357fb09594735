internal import DequeModule
internal import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore
internal import Synchronization

/// The members of an answer to a query: their keys in order, and what their values hash to.
package struct AnswerMembers: Sendable {
    let tag: String
    private let keys: [JSONKey]
    private let values: [JSONKey: ContentHash]
    private let count: Int?

    /// Reads an answer; O(n) in its bytes.
    init?(_ encoded: Encoded) {
        guard let document = try? JSONDocument(encoded: encoded.body) else { return nil }
        var keys: [JSONKey] = []
        var (values, count): ([JSONKey: ContentHash], Int?) = ([:], nil)
        var name = document.firstChild(document.root)
        while !document.isEnd(name) {
            switch document.string(name) {
            case "members":
                var member = document.firstChild(name + 1)
                while !document.isEnd(member) {
                    // A member has its key first, and then its value.
                    let key = document.firstChild(member)
                    var value = JSONWriter()
                    document.write(document.after(key + 1) + 1, to: &value)
                    keys.append(JSONKey(document.string(key + 1)))
                    values[keys[keys.count - 1]] = ContentHash(value.bytes)
                    member = document.after(member)
                }
            case "count":
                if case .integer(let number) = JSONValue.value(of: document, at: name + 1) { count = Int(number) }
            default: break
            }
            name = document.after(name + 1)
        }
        (tag, self.keys, self.values, self.count) = (encoded.tag, keys, values, count)
    }

    var bytesCount: Int { keys.reduce(256) { $0 + 96 + 2 * $1.text.utf8.count } }

    /// Returns whether there is a difference to an earlier answer, which is nil if the client knows none.
    func write(since before: AnswerMembers?, to writer: inout JSONWriter) -> Bool {
        guard let before else {
            Self.list("initial", keys, true, to: &writer)
            return true
        }
        let added = keys.filter { before.values[$0] == nil }
        let removed = before.keys.filter { values[$0] == nil }
        let changed = keys.filter { key in before.values[key].map { $0 != values[key] } ?? false }
        let moved = moved(since: before)
        var isFirst = true
        for (name, keys) in [("added", added), ("changed", changed), ("moved", moved), ("removed", removed)]
        where !keys.isEmpty {
            Self.list(name, keys, isFirst, to: &writer)
            isFirst = false
        }
        if !added.isEmpty || !moved.isEmpty || !removed.isEmpty { Self.list("order", keys, isFirst, to: &writer) }
        return !added.isEmpty || !moved.isEmpty || !removed.isEmpty || !changed.isEmpty
    }

    private static func list(_ name: String, _ keys: [JSONKey], _ isFirst: Bool, to writer: inout JSONWriter) {
        if !isFirst { writer.byte(UInt8(ascii: ",")) }
        writer.string(name)
        writer.byte(UInt8(ascii: ":"))
        writer.array(keys) { key, writer in writer.string(key.text) }
    }

    func writeCount(to writer: inout JSONWriter) {
        guard let count else { return }
        writer.raw(",\"count\":")
        writer.integer(count)
    }

    /// The fewest keys in both answers that have to move, so that the others keep their order.
    private func moved(since before: AnswerMembers) -> [JSONKey] {
        let places = Dictionary(before.keys.enumerated().map { ($1, $0) }) { first, _ in first }
        let kept = keys.compactMap { key in places[key].map { (key, $0) } }
        // The longest increasing subsequence of the former places stays; `ends` has the last index of one of each length.
        var ends: [Int] = []
        var previous = [Int?](repeating: nil, count: kept.count)
        for index in kept.indices {
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if kept[ends[middle]].1 < kept[index].1 { low = middle + 1 } else { high = middle }
            }
            if low > 0 { previous[index] = ends[low - 1] }
            if low == ends.count { ends.append(index) } else { ends[low] = index }
        }
        var stays: Set<Int> = []
        var next = ends.last
        while let index = next {
            stays.insert(index)
            next = previous[index]
        }
        return kept.indices.filter { !stays.contains($0) }.map { kept[$0].0 }
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

/// The answer that the client of a query with `as=keyed` knows.
package struct KeyedQuery: Sendable {
    /// The `next` of the answer before; nil for a client that knows nothing.
    package let since: Cursor?
    let before: AnswerMembers?
    let answers: KeyedAnswers
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
            return response(to: .ourFault, latest: reading.cursor, requestID: request.requestID)
        }
        keyed.answers.note(members, to: request.selection, at: reading.cursor)
        var writer = JSONWriter()
        writer.raw("{\"collections\":{")
        var lists = JSONWriter()
        lists.string((request.store.inner(place) ?? place).description)
        lists.raw(":{")
        if members.write(since: keyed.before, to: &lists) {
            writer.raw(lists.bytes)
            writer.byte(UInt8(ascii: "}"))
        }
        writer.byte(UInt8(ascii: "}"))
        members.writeCount(to: &writer)
        writer.raw(",\"next\":")
        writer.string(reading.cursor.description)
        writer.raw(",\"more\":false}")
        var response = Response.json(.ok, writer.bytes, style: request.style, latest: reading.cursor)
        if let seconds = request.wait?.applied { response.fields[.preferenceApplied] = "wait=\(seconds)" }
        return compressed(response, request.coding)
    }
}
