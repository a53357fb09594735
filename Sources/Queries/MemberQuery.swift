internal import StateJSON
package import StateStore

package struct MemberQuery: Sendable {
    struct Order: Sendable {
        var pointer: JSONPointer
        var isDescending: Bool
    }

    private let filter: JSONPath.Condition?
    private let order: [Order]
    let window: Range<Int>
    private let fields: [JSONPointer]
    let wantsCount: Bool
    let after: Anchor?
    /// Such a query is not watched.
    private let explains: Bool
    private let patterns: [LiteralPattern]
    /// Nil for the whole member.
    private let names: [[UInt8]]?
    /// Tells an ``Anchor`` of this query from one of another.
    let hash: String
    package let identity: String
    package let bytesCount: Int

    /// Some seconds of a processor.
    package static let stepsMax = 20_000_000
    package static let timeMax = JSONPathEvaluation.timeMax
    package static let answerBytesMax = 1 << 20
    /// Each costs time, and in `sort` memory, for every member.
    private static let pointersMax = 16
    private static let tokensMax = 32

    /// `filter` is a logical expression of RFC 9535 on the member `@`; `sort` has pointers with commas between, each
    /// with `-` before it for descending order; the window counts behind `after`, the `next` of an earlier answer.
    package init(
        filter: String?, sort: String?, window: Range<Int>, fields: String?, wantsCount: Bool, after: String? = nil,
        explains: Bool = false
    ) throws(Fault) {
        var patterns: [LiteralPattern] = []
        self.filter = try filter.map { text throws(Fault) in
            var parser = JSONPathParser(text)
            defer { patterns = parser.patterns }
            return try parser.wholeCondition()
        }
        self.patterns = patterns
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
        bytesCount = 32 * identity.utf8.count
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

    package struct Fault: Error, Sendable, Equatable {
        package var parameter: String
        /// In characters from 0.
        package var offset: Int
        package var detail: String
    }

    private static func parts(
        of text: String, _ parameter: String
    ) throws(Fault) -> [(text: Substring, offset: Int)] {
        guard text.hasPrefix("[") else {
            return text.split(separator: ",", omittingEmptySubsequences: false).map {
                ($0, text.distance(from: text.startIndex, to: $0.startIndex))
            }
        }
        guard case .array(let elements)? = try? JSONValue(parsing: Array(text.utf8), depthMax: 1) else {
            throw Fault(parameter: parameter, offset: 0, detail: #"expected a JSON array of pointers, ["/a,b","/c"]"#)
        }
        // A value that is no text is no pointer either.
        return elements.map { if case .string(let text) = $0 { (text[...], 0) } else { ("?", 0) } }
    }

    private static func pointers<Value>(
        _ text: String?, _ parameter: String, _ read: (Substring) -> Value?
    ) throws(Fault) -> [Value] {
        guard let text else { return [] }
        var values: [Value] = []
        for (part, offset) in try parts(of: text, parameter) {
            func fault(_ wanted: String) -> Fault {
                Fault(parameter: parameter, offset: offset, detail: "expected \(wanted)")
            }
            guard values.count < pointersMax else { throw fault("at most \(pointersMax) pointers") }
            guard part.utf8.count(where: { $0 == UInt8(ascii: "/") }) <= tokensMax else {
                throw fault("a pointer of at most \(tokensMax) parts")
            }
            // The empty pointer is the member itself; behind a comma it is a slip.
            let mayBeEmpty = parameter == "sort" && (text.isEmpty || text.hasPrefix("["))
            guard !part.isEmpty || mayBeEmpty, let value = read(part) else {
                throw fault("a JSON Pointer such as /due" + (parameter == "sort" ? " or -/due" : ""))
            }
            values.append(value)
        }
        return values
    }
}

extension MemberQuery: MembersQuery {
    func evaluation(stepsMax: Int, isQuick: Bool = false) throws -> JSONPathEvaluation {
        JSONPathEvaluation(
            patterns: try patterns.compiled(isQuick: isQuick || QueryWork.current.servesOthers),
            stepsMax: stepsMax, isQuick: isQuick)
    }

    /// `members`, each with its `key`, the token of its pointer, and its `value`; O(n) in the bytes of the value, and
    /// O(m log m) for m members that are sorted, of which at most twice the window's end are kept.
    package func answer(
        to texts: MemberTexts, _ memberOrder: MemberOrder? = nil, stepsMax: Int = Self.stepsMax
    ) throws -> [UInt8]? {
        let begun = ContinuousClock.now
        var evaluation = try evaluation(stepsMax: stepsMax)
        let anchorPlace = try anchorPlace(in: texts, memberOrder)
        var (found, isObject) = ([Found](), Bool?.none)
        var (number, textNumber, count, behindCount) = (0, 0, 0, 0)
        func isBehindAnchor(_ keys: [SortKey?], _ name: () -> String) -> Bool {
            guard let after else { return true }
            if let isBehind = isBefore(after.values, keys) { return isBehind }
            guard isObject == true, let memberOrder else { return Double(number) > anchorPlace }
            guard let key = memberOrder(name()), let anchor = memberOrder(after.name) else { return false }
            return anchor < key
        }
        try texts { text throws in
            let document = try JSONDocument(encoded: text)
            isObject = try Self.isObject(document)
            for place in document.children(of: document.root) {
                defer { number += 1 }
                guard let keys = try sortKeys(of: document, at: place, &evaluation) else { continue }
                count += 1
                guard isBehindAnchor(keys, { document.string(place - 1) }) else { continue }
                behindCount += 1
                guard isSorted ? !window.isEmpty : window.contains(behindCount - 1) else { continue }
                if found.last?.textNumber != textNumber { evaluation.heldBytes += text.count }
                found.append(Found(text: text, textNumber: textNumber, place: place, number: number, keys: keys))
                evaluation.heldBytes += found[found.count - 1].bytesCount
                // Twice as many as the window needs, so that a member costs little.
                if isSorted, found.count >= 2 * window.upperBound + 256 { evaluation.heldBytes = keepFirst(of: &found) }
            }
            textNumber += 1
        }
        guard let isObject else { return nil }
        if isSorted { _ = keepFirst(of: &found) }
        var answer = AnswerWriter(self)
        var parsed: (text: Int, document: JSONDocument)?
        for member in found.dropFirst(isSorted ? window.lowerBound : 0) {
            if parsed?.text != member.textNumber {
                parsed = (member.textNumber, try JSONDocument(encoded: member.text))
            }
            guard let document = parsed?.document else { break }
            let name = isObject ? document.string(member.place - 1) : String(member.number)
            var writer = JSONWriter()
            self.member(name, document, member.place, to: &writer)
            let place = isObject && memberOrder != nil ? 0 : member.number
            guard answer.take(writer.bytes[...], Anchor(values: member.keys, name: name, number: place)) != nil else {
                break
            }
        }
        var writer = try answer.end(count: count, hasMore: behindCount > window.upperBound)
        if explains {
            writer.bytes.removeLast()
            explain(to: &writer, members: number, matched: count, stepsMax - evaluation.stepsLeft, begun)
        }
        return writer.bytes
    }

    /// The place behind which members that are equal to the anchor's in the order come, where it decides.
    private func anchorPlace(in texts: MemberTexts, _ memberOrder: MemberOrder?) throws -> Double {
        guard let after, memberOrder == nil else { return Double(after?.number ?? 0) }
        // The next member has the place of one that has gone.
        var (place, number) = (Double(after.number) - 0.5, 0)
        try texts { text throws in
            let document = try JSONDocument(encoded: text)
            guard try Self.isObject(document) else { return place = Double(after.number) }
            for member in document.children(of: document.root) {
                if JSONPointer.sameBytes(document.string(member - 1), after.name) { place = Double(number) }
                number += 1
            }
        }
        return place
    }

    private func explain(
        to writer: inout JSONWriter, members: Int, matched: Int, _ steps: Int, _ begun: ContinuousClock.Instant
    ) {
        let milliseconds = Int64((ContinuousClock.now - begun) / .milliseconds(1))
        let explain: JSONValue = [
            "members": .integer(Int64(members)), "matched": .integer(Int64(matched)), "steps": .integer(Int64(steps)),
            "milliseconds": .integer(milliseconds),
        ]
        writer.raw(",\"explain\":")
        explain.write(to: &writer)
        writer.byte(UInt8(ascii: "}"))
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

    func member(_ name: String, _ json: [UInt8]?) throws -> [UInt8] {
        guard let json else { throw MemberIsGone() }
        let document = try JSONDocument(encoded: json)
        var writer = JSONWriter(capacity: json.count + 64)
        member(name, document, document.root, to: &writer)
        return writer.bytes
    }

    package func kept(of texts: MemberTexts, _ order: @escaping MemberOrder) throws -> (any KeptMembers)? {
        explains ? nil : try KeptOrder(self, texts, order)
    }

    package func answered(to texts: MemberTexts, _ memberOrder: MemberOrder?) throws -> [UInt8]? {
        try answer(to: texts, memberOrder)
    }

    static func isObject(_ document: JSONDocument) throws(NoMembers) -> Bool {
        switch document.kind(document.root) {
        case UInt8(ascii: "{"): return true
        case UInt8(ascii: "["): return false
        default: throw NoMembers()
        }
    }

    private func keepFirst(of found: inout [Found]) -> Int {
        found.sort { isBefore($0.keys, $1.keys) ?? ($0.number < $1.number) }
        found.removeSubrange(min(found.count, window.upperBound)...)
        var texts: Set<Int> = []
        return found.reduce(0) { $0 + $1.bytesCount + (texts.insert($1.textNumber).inserted ? $1.text.count : 0) }
    }

    private struct Found {
        let text: [UInt8]
        let textNumber: Int
        let place: Int
        /// The place among the members, which decides between equals.
        let number: Int
        let keys: [SortKey?]

        var bytesCount: Int { keys.reduce(96) { $0 + MemoryLayout<SortKey?>.stride + ($1?.textBytes ?? 0) } }
    }

    var isSorted: Bool { !order.isEmpty }
    var sortCount: Int { order.count }

    func sortKeys(
        of document: JSONDocument, at place: Int, _ evaluation: inout JSONPathEvaluation
    ) throws(QueryStop) -> [SortKey?]? {
        var value = JSONValue.null
        if filter != nil || isSorted { value = try evaluation.value(of: document, at: place, names: names) }
        return try sortKeys(of: value, &evaluation)
    }

    func sortKeys(of value: JSONValue, _ evaluation: inout JSONPathEvaluation) throws(QueryStop) -> [SortKey?]? {
        try evaluation.spend(1)
        if let filter, try !evaluation.holds(filter, for: value) { return nil }
        try evaluation.spend(order.count)
        return order.map { value[pointer: $0.pointer].map(SortKey.init) }
    }

    /// Nil for equal values.
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

package struct NoMembers: Error {}

/// Null, false, true, numbers, texts by their Unicode scalars, then arrays and objects, which are equal.
enum SortKey: Comparable {
    case constant(Int)
    case number(JSONNumber)
    case text(ExactText)
    case container

    init(_ value: JSONValue) {
        switch value {
        case .null: self = .constant(0)
        case .bool(let isTrue): self = .constant(isTrue ? 2 : 1)
        case .integer, .unsigned, .double, .decimal: self = JSONNumber(value).map { .number($0) } ?? .container
        case .string(let text): self = .text(ExactText(text))
        case .array, .object: self = .container
        }
    }

    var json: JSONValue {
        switch self {
        case .constant(0): .null
        case .constant(let rank): .bool(rank == 2)
        case .number(let number): number.json
        case .text(let text): .string(text.text)
        case .container: .array([])
        }
    }

    var textBytes: Int { if case .text(let text) = self { text.text.utf8.count } else { 0 } }
}
