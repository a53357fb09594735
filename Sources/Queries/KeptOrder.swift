internal import StateJSON
internal import StateStore
internal import Synchronization

final class KeptOrder: KeptMembers {
    private let members: Mutex<OrderedMembers>

    /// Nil if the order does not know the name of a member, for an array, and without a value.
    init?(_ query: MemberQuery, _ texts: MemberTexts, _ order: @escaping MemberOrder) throws {
        guard let members = try OrderedMembers(query, texts, order) else { return nil }
        self.members = Mutex(members)
    }

    var bytesCount: Int { members.withLock(\.bytesCount) }
    var answerCountMax: Int { members.withLock(\.query.window.count) }

    func update(_ changed: [ChangedMember], stepsMax: Int?) throws -> Bool {
        try members.withLock { try $0.update(changed, stepsMax: stepsMax) }
    }

    func answer(from before: [UInt8], _ value: (String) throws -> [UInt8]?) throws -> [UInt8] {
        try members.withLock { try $0.answer(from: before, value) }
    }
}

private struct OrderedMembers: Sendable {
    private struct Entry {
        let key: EntityKey
        let values: [SortKey?]
    }

    let query: MemberQuery
    private let order: MemberOrder
    private var entries: [Entry] = []
    private var values: [JSONKey: [SortKey?]] = [:]
    /// Where the last answer shows the members that are as they were.
    private var shown: [JSONKey: Range<Int>] = [:]
    private var textBytes = 0

    init?(_ query: MemberQuery, _ texts: MemberTexts, _ order: @escaping MemberOrder) throws {
        (self.query, self.order) = (query, order)
        var evaluation = try query.evaluation(stepsMax: MemberQuery.stepsMax)
        var (hasTexts, areOrdered) = (false, true)
        try texts { text throws in
            guard areOrdered else { return }
            let document = try JSONDocument(encoded: text)
            hasTexts = true
            areOrdered = try MemberQuery.isObject(document)
            guard areOrdered else { return }
            for member in document.children(of: document.root) where areOrdered {
                areOrdered = try take(document, member, &evaluation)
            }
        }
        guard hasTexts, areOrdered else { return nil }
        if query.isSorted { entries.sort { Self.isBefore($0, $1, query) } }
    }

    /// False if the order does not know the member's name.
    private mutating func take(
        _ document: JSONDocument, _ member: Int, _ evaluation: inout JSONPathEvaluation
    ) throws -> Bool {
        let text = document.string(member - 1)
        guard let key = order(text) else { return false }
        if let found = try query.sortKeys(of: document, at: member, &evaluation) {
            entries.append(Entry(key: key, values: found))
            values[JSONKey(text)] = found
            textBytes += Self.textBytes(text, found)
            evaluation.heldBytes = bytesCount
        }
        return true
    }

    private static func textBytes(_ name: String, _ values: [SortKey?]) -> Int {
        values.reduce(2 * name.utf8.count) { $0 + ($1?.textBytes ?? 0) }
    }

    var bytesCount: Int { entries.count * (96 + 64 * query.sortCount) + textBytes + 64 * shown.count }

    private static func isBefore(_ left: Entry, _ right: Entry, _ query: MemberQuery) -> Bool {
        query.isBefore(left.values, right.values) ?? (left.key < right.key)
    }

    private func index(of entry: Entry) -> Int {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if Self.isBefore(entries[middle], entry, query) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    mutating func update(_ members: [ChangedMember], stepsMax: Int?) throws -> Bool {
        var evaluation = try query.evaluation(stepsMax: stepsMax ?? MemberQuery.stepsMax, isQuick: stepsMax != nil)
        let found = try members.map { member in
            try member.value.flatMap { try query.sortKeys(of: $0, &evaluation) }
        }
        var mayDiffer = false
        for (member, new) in zip(members, found) {
            let old = values[member.name]
            guard old != nil || new != nil else { continue }
            var (before, after): (Int?, Int?) = (nil, nil)
            let start = start
            if let old {
                let index = index(of: Entry(key: member.order, values: old))
                entries.remove(at: index)
                textBytes -= Self.textBytes(member.name.text, old)
                if index >= start { before = index - start }
            }
            if let new {
                let entry = Entry(key: member.order, values: new)
                let index = index(of: entry)
                entries.insert(entry, at: index)
                let start = self.start
                textBytes += Self.textBytes(member.name.text, new)
                if index >= start { after = index - start }
            }
            values[member.name] = new
            shown[member.name] = nil
            let isCountOther = query.wantsCount && (old == nil) != (new == nil)
            mayDiffer = mayDiffer || isCountOther || concernsAnswer(before, after)
        }
        return mayDiffer
    }

    private var start: Int {
        guard let after = query.after, let key = order(after.name) else { return 0 }
        let anchor = Entry(key: key, values: after.values)
        let index = index(of: anchor)
        let isThere = index < entries.count && !Self.isBefore(anchor, entries[index], query)
        return isThere ? index + 1 : index
    }

    private func concernsAnswer(_ before: Int?, _ after: Int?) -> Bool {
        // A member that comes or goes moves all behind it, and decides whether there are more.
        guard let before, let after else {
            return (before ?? after).map { $0 <= query.window.upperBound } ?? false
        }
        return min(before, after) < query.window.upperBound && max(before, after) >= query.window.lowerBound
    }

    mutating func answer(from before: [UInt8], _ value: (String) throws -> [UInt8]?) throws -> [UInt8] {
        var answer = AnswerWriter(query)
        var now: [JSONKey: Range<Int>] = [:]
        let (first, last) = (start + query.window.lowerBound, start + query.window.upperBound)
        for entry in entries.prefix(last).dropFirst(first) {
            let (name, key) = (entry.key.token, JSONKey(entry.key.token))
            let known = before.isEmpty ? nil : shown[key]
            let member = try known.map { before[$0] } ?? query.member(name, value(name))[...]
            guard let range = answer.take(member, Anchor(values: entry.values, name: name, number: 0)) else { break }
            now[key] = range
        }
        shown = now
        return try answer.end(count: entries.count, hasMore: last < entries.count).bytes
    }
}

/// Ends where the answer would have more than ``MemberQuery/answerBytesMax``.
struct AnswerWriter {
    private let query: MemberQuery
    private var writer = JSONWriter()
    private var last: Anchor?
    private var isFull = false

    init(_ query: MemberQuery) {
        self.query = query
        writer.raw("{\"members\":[")
    }

    /// Nil where the answer has become too long for another member.
    mutating func take(_ member: ArraySlice<UInt8>, _ anchor: Anchor) -> Range<Int>? {
        // The first one always comes.
        isFull = last != nil && writer.bytes.count + member.count > MemberQuery.answerBytesMax
        guard !isFull else { return nil }
        if last != nil { writer.byte(UInt8(ascii: ",")) }
        writer.raw(member)
        last = anchor
        return writer.bytes.count - member.count..<writer.bytes.count
    }

    /// The error is ``QueryStop/page``: the members that are left out could not be asked for.
    mutating func end(count: Int, hasMore: Bool) throws(QueryStop) -> JSONWriter {
        writer.byte(UInt8(ascii: "]"))
        let next = hasMore || isFull ? last?.text(query: query.hash) : nil
        guard next != nil || !isFull else { throw .page }
        if let next {
            writer.raw(",\"next\":")
            writer.string(next)
        }
        if query.wantsCount {
            writer.raw(",\"count\":")
            writer.integer(count)
        }
        writer.byte(UInt8(ascii: "}"))
        return writer
    }
}
