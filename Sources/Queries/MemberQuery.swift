internal import StateJSON
package import StateStore

/// A query on the members of an object or an array: which of them, in which order, how many, and what of each.
package struct MemberQuery: Sendable {
    /// A place in each member, by which members are sorted.
    struct Order: Sendable {
        var pointer: JSONPointer
        var isDescending: Bool
    }

    private let filter: JSONPath.Condition?
    private let order: [Order]
    let window: Range<Int>
    private let fields: [JSONPointer]
    let wantsCount: Bool
    /// The member behind which the window begins; nil for the first of all.
    let after: Anchor?
    /// Whether the answer says what it took; such a query is not watched.
    private let explains: Bool
    /// The names in a member that the filter and the order look at; nil for the whole member.
    private let names: [[UInt8]]?
    /// The hash of the filter and the order, which tells an ``Anchor`` of this query from one of another.
    private let hash: String
    package let identity: String
    package let bytesCount: Int

    /// The most values that one evaluation looks at: some seconds of a processor.
    package static let stepsMax = 20_000_000
    /// The most pointers in `sort` and in `fields`: each costs time, and in `sort` memory, for every member.
    private static let pointersMax = 16
    /// The most parts of such a pointer.
    private static let tokensMax = 32

    /// Reads the parts of a query.
    ///
    /// - Parameters:
    ///   - filter: a logical expression of RFC 9535, in which `@` is the member; nil for all members.
    ///   - sort: pointers with commas between, each with `-` before it for descending order; nil for the members' own order.
    ///   - window: the members of the answer, by their places in the order.
    ///   - fields: pointers with commas between; nil for whole members.
    ///   - wantsCount: whether the answer says how many members the filter lets through.
    ///   - after: the `next` of an answer to the same filter and sort, behind whose members the window begins.
    ///   - explains: whether the answer says what it took.
    /// - Throws: ``Fault``.
    package init(
        filter: String?, sort: String?, window: Range<Int>, fields: String?, wantsCount: Bool, after: String? = nil,
        explains: Bool = false
    ) throws(Fault) {
        var patternsBytes = 0
        self.filter = try filter.map { text throws(Fault) in
            do throws(QueryFault) {
                var parser = JSONPathParser(text, hasRoot: false)
                defer { patternsBytes = parser.patternsBytes }
                return try parser.wholeCondition()
            } catch {
                throw Fault(parameter: "filter", offset: error.offset, detail: error.detail)
            }
        }
        order = try Self.pointers(sort, "sort") { text in
            let isDescending = text.hasPrefix("-")
            return JSONPointer(text: String(isDescending ? text.dropFirst() : text)).map {
                Order(pointer: $0, isDescending: isDescending)
            }
        }
        self.fields = try Self.pointers(fields, "fields") { JSONPointer(text: String($0)) }
        let sorting = order.map(\.pointer.tokens.first)
        let filtering = self.filter.map(\.names) ?? []
        names = sorting.contains(nil) ? nil : filtering.map { ($0 + sorting.compactMap(\.self)).map { Array($0.utf8) } }
        (self.window, self.wantsCount, self.explains) = (window, wantsCount, explains)
        // With their lengths, the parts cannot run into each other.
        let parts = [filter, sort, fields, after].map { $0.map { "=\($0.utf8.count):\($0)" } ?? "-" }
        hash = String(ContentHash(Array((parts[0] + parts[1]).utf8)).text.prefix(10))
        identity =
            parts.joined(separator: "\n") + "\n\(window.lowerBound),\(window.upperBound),\(wantsCount),\(explains)"
        // A condition takes some twenty times the memory of its text.
        bytesCount = 32 * identity.utf8.count + patternsBytes
        guard let after else {
            self.after = nil
            return
        }
        guard let anchor = Anchor(text: after, query: hash, count: order.count) else {
            throw Fault(
                parameter: "after", offset: 0, detail: "expected the next of an answer to the same filter and sort")
        }
        self.after = anchor
    }

    /// A part of a query that cannot be read.
    package struct Fault: Error, Sendable, Equatable {
        /// The name of the parameter.
        package var parameter: String
        /// The place in its text, in characters from 0.
        package var offset: Int
        package var detail: String
    }

    private static func pointers<Value>(
        _ text: String?, _ parameter: String, _ read: (Substring) -> Value?
    ) throws(Fault) -> [Value] {
        guard let text else { return [] }
        var values: [Value] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard values.count < pointersMax else {
                throw Fault(
                    parameter: parameter, offset: text.distance(from: text.startIndex, to: part.startIndex),
                    detail: "expected at most \(pointersMax) pointers")
            }
            guard part.utf8.count(where: { $0 == UInt8(ascii: "/") }) <= tokensMax else {
                throw Fault(
                    parameter: parameter, offset: text.distance(from: text.startIndex, to: part.startIndex),
                    detail: "expected a pointer of at most \(tokensMax) parts")
            }
            guard !part.isEmpty, let value = read(part) else {
                throw Fault(
                    parameter: parameter, offset: text.distance(from: text.startIndex, to: part.startIndex),
                    detail: "expected a JSON Pointer such as /due" + (parameter == "sort" ? " or -/due" : ""))
            }
            values.append(value)
        }
        return values
    }
}

extension MemberQuery: MembersQuery {
    /// The answer for the members of a value, as compact UTF-8 JSON, or nil without a value.
    ///
    /// It is an object with `members`, each with its `key`, the token of its pointer, and its `value`. O(n) in the bytes of the
    /// value, and O(m log m) for m members that are sorted.
    ///
    /// - Parameters:
    ///   - memberOrder: the order of the value's own members by their names, if there is one.
    ///   - stepsMax: the most values that the evaluation looks at.
    /// - Throws: ``QueryTooCostly``, and ``NoMembers``.
    package func answer(
        to texts: MemberTexts, _ memberOrder: MemberOrder? = nil, stepsMax: Int = Self.stepsMax
    ) throws -> [UInt8]? {
        let begun = ContinuousClock.now
        var evaluation = JSONPathEvaluation(root: .null, stepsMax: stepsMax)
        var (found, matched, isObject, number) = ([Found](), MatchedTexts(), Bool?.none, 0)
        /// The place of the anchor's member now; the next one has it where the member has gone.
        var anchorPlace = after.map { Double($0.number) - 0.5 }
        try texts { text throws in
            let document = try JSONDocument(encoded: text)
            isObject = try Self.isObject(document)
            var (child, matches) = (document.firstChild(document.root), false)
            while !document.isEnd(child) {
                let place = isObject == true ? child + 1 : child
                if let after, isObject == true, memberOrder == nil,
                    JSONPointer.sameBytes(document.string(child), after.name)
                {
                    anchorPlace = Double(number)
                }
                if let keys = try sortKeys(of: value(of: document, at: place), &evaluation) {
                    found.append(Found(text: matched.texts.count, place: place, number: number, keys: keys))
                    matches = true
                }
                child = document.after(place)
                number += 1
            }
            if matches { matched.texts.append(text) }
        }
        guard let isObject else { return nil }
        let memberOrder = isObject ? memberOrder : nil
        if let after, !isObject { anchorPlace = Double(after.number) }
        if isSorted { found.sort { isBefore($0.keys, $1.keys) ?? ($0.number < $1.number) } }
        func name(_ member: Found) throws -> String {
            isObject ? try matched.document(member.text).string(member.place - 1) : String(member.number)
        }
        func isBehindAnchor(_ member: Found) throws -> Bool {
            guard let after else { return true }
            if let isBehind = isBefore(after.values, member.keys) { return isBehind }
            guard let memberOrder else { return Double(member.number) > anchorPlace ?? 0 }
            guard let key = memberOrder(try name(member)), let anchor = memberOrder(after.name) else { return false }
            return anchor < key
        }
        let start = after == nil ? 0 : try found.firstIndex(where: isBehindAnchor) ?? found.count
        let shown = found[window(behind: start, of: found.count)]
        // In the order of the texts, so that each is parsed once.
        var members = [[UInt8]](repeating: [], count: shown.count)
        for index in shown.indices.sorted(by: { shown[$0].number < shown[$1].number }) {
            var writer = JSONWriter()
            let member = shown[index]
            self.member(try name(member), try matched.document(member.text), member.place, to: &writer)
            members[index - shown.startIndex] = writer.bytes
        }
        var writer = JSONWriter(capacity: members.reduce(64) { $0 + $1.count + 1 })
        writer.raw("{\"members\":[")
        var isFirst = true
        for member in members {
            writer.separator(&isFirst)
            writer.raw(member)
        }
        let last = shown.endIndex < found.count ? shown.last : nil
        end(
            &writer, count: found.count,
            last: try last.map {
                Anchor(values: $0.keys, name: try name($0), number: memberOrder == nil ? $0.number : 0)
            })
        if explains {
            writer.bytes.removeLast()
            explain(to: &writer, members: number, matched: found.count, stepsMax - evaluation.stepsLeft, begun)
        }
        return writer.bytes
    }

    private func explain(
        to writer: inout JSONWriter, members: Int, matched: Int, _ steps: Int, _ begun: ContinuousClock.Instant
    ) {
        writer.raw(",\"explain\":{\"members\":")
        writer.integer(members)
        writer.raw(",\"matched\":")
        writer.integer(matched)
        writer.raw(",\"steps\":")
        writer.integer(steps)
        writer.raw(",\"milliseconds\":")
        writer.integer(Int((ContinuousClock.now - begun) / .milliseconds(1)))
        writer.raw("}}")
    }

    /// The indices of the members of the answer, of so many members in the order.
    func window(behind start: Int, of count: Int) -> Range<Int> {
        (min(count, start + window.lowerBound)..<min(count, start + window.upperBound))
    }

    private func member(_ name: String, _ document: JSONDocument, _ place: Int, to writer: inout JSONWriter) {
        writer.raw("{\"key\":")
        writer.string(name)
        writer.raw(",\"value\":")
        if fields.isEmpty {
            document.write(place, to: &writer)
        } else {
            fields(of: JSONValue.value(of: document, at: place)).write(to: &writer)
        }
        writer.byte(UInt8(ascii: "}"))
    }

    /// A member of the answer, of its value as UTF-8 JSON.
    func member(_ name: String, _ json: [UInt8]?) throws -> [UInt8] {
        guard let json else { throw MemberIsGone() }
        let document = try JSONDocument(encoded: json)
        var writer = JSONWriter(capacity: json.count + 64)
        member(name, document, document.root, to: &writer)
        return writer.bytes
    }

    /// Writes what comes behind the members of the answer.
    ///
    /// - Parameter last: the last of the members, if there are more behind it.
    func end(_ writer: inout JSONWriter, count: Int, last: Anchor?) {
        writer.byte(UInt8(ascii: "]"))
        if let next = last?.text(query: hash) {
            writer.raw(",\"next\":")
            writer.string(next)
        }
        if wantsCount {
            writer.raw(",\"count\":")
            writer.integer(count)
        }
        writer.byte(UInt8(ascii: "}"))
    }

    package func kept(of texts: MemberTexts, _ order: @escaping MemberOrder) throws -> (any KeptMembers)? {
        explains ? nil : try KeptOrder(self, texts, order)
    }

    package func answered(to texts: MemberTexts, _ memberOrder: MemberOrder?) throws -> [UInt8]? {
        try answer(to: texts, memberOrder)
    }

    /// Whether a document is an object, or an array.
    static func isObject(_ document: JSONDocument) throws(NoMembers) -> Bool {
        switch document.kind(document.root) {
        case UInt8(ascii: "{"): return true
        case UInt8(ascii: "["): return false
        default: throw NoMembers()
        }
    }

    /// A member that the filter lets through.
    private struct Found {
        /// The index of the text in which it is.
        var text: Int
        /// The index of the value in the document of that text.
        var place: Int
        /// The place among the members, which decides between equals.
        var number: Int
        /// The values of the member at the pointers of the order.
        var keys: [SortKey?]
    }

    /// The texts with members that the filter lets through, of which the last one that was asked for is parsed.
    private struct MatchedTexts {
        var texts: [[UInt8]] = []
        private var newest: (text: Int, document: JSONDocument)?

        mutating func document(_ text: Int) throws -> JSONDocument {
            if let newest, newest.text == text { return newest.document }
            let document = try JSONDocument(encoded: texts[text])
            newest = (text, document)
            return document
        }
    }

    var isSorted: Bool { !order.isEmpty }
    var sortCount: Int { order.count }

    /// A member as far as the filter and the order look at it.
    func value(of document: JSONDocument, at place: Int) -> JSONValue {
        filter == nil && !isSorted ? .null : JSONValue.value(of: document, at: place, names: names)
    }

    /// The values of a member by which it is sorted; nil if the filter does not let it through.
    func sortKeys(of value: JSONValue, _ evaluation: inout JSONPathEvaluation) throws -> [SortKey?]? {
        if let filter, try !evaluation.holds(filter, for: value) { return nil }
        return order.map { value[pointer: $0.pointer].map(SortKey.init) }
    }

    /// Whether the left values come first; nil for equal ones.
    func isBefore(_ left: [SortKey?], _ right: [SortKey?]) -> Bool? {
        for index in order.indices {
            switch (left[index], right[index]) {
            case (nil, nil): continue
            // A missing value comes last in either direction.
            case (_?, nil): return true
            case (nil, _?): return false
            case (let leftKey?, let rightKey?):
                if leftKey < rightKey { return !order[index].isDescending }
                if rightKey < leftKey { return order[index].isDescending }
            }
        }
        return nil
    }

    /// The fields of a member, in their nesting.
    private func fields(of value: JSONValue) -> JSONValue {
        var chosen = JSONValue.object(JSONObject())
        for pointer in fields {
            guard let field = value[pointer: pointer] else { continue }
            for length in 1..<max(1, pointer.tokens.count) {
                let parent = JSONPointer(Array(pointer.tokens[..<length]))
                if chosen[pointer: parent] == nil {
                    _ = chosen.apply("add", at: parent.tokens[...], .object(JSONObject()))
                }
            }
            // A pointer before may have brought it, with what is around it or inside.
            let operation = chosen[pointer: pointer] == nil ? "add" : "replace"
            _ = chosen.apply(operation, at: pointer.tokens[...], field)
        }
        return chosen
    }
}

/// A query on a value that is neither an object nor an array.
package struct NoMembers: Error {}

/// A value in the order of a query: null, false, true, numbers, texts by their Unicode scalars, then arrays and objects, which
/// are equal.
enum SortKey: Comparable {
    case constant(Int)
    case number(Number)
    case text(String)
    case container

    init(_ value: JSONValue) {
        switch value {
        case .null: self = .constant(0)
        case .bool(let isTrue): self = .constant(isTrue ? 2 : 1)
        case .integer, .unsigned, .double, .decimal: self = Number(value).map { .number($0) } ?? .container
        case .string(let text): self = .text(text)
        case .array, .object: self = .container
        }
    }

    /// A value with the same place in the order.
    var json: JSONValue {
        switch self {
        case .constant(0): .null
        case .constant(let rank): .bool(rank == 2)
        case .number(let number): number.json
        case .text(let text): .string(text)
        case .container: .array([])
        }
    }

    /// The bytes of memory that a long text takes.
    var textBytes: Int { if case .text(let text) = self { text.utf8.count } else { 0 } }

    private var rank: Int {
        switch self {
        case .constant(let rank): rank
        case .number: 3
        case .text: 4
        case .container: 5
        }
    }

    static func < (left: SortKey, right: SortKey) -> Bool {
        switch (left, right) {
        case (.number(let left), .number(let right)): left < right
        case (.text(let left), .text(let right)): left.utf8.lexicographicallyPrecedes(right.utf8)
        default: left.rank < right.rank
        }
    }

    static func == (left: SortKey, right: SortKey) -> Bool { !(left < right) && !(right < left) }
}
