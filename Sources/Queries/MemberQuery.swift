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
    package let identity: String

    /// The most values that one evaluation looks at: some seconds of a processor.
    package static let stepsMax = 20_000_000
    /// The most pointers in `sort` and in `fields`: each costs time, and in `sort` memory, for every member.
    private static let pointersMax = 16

    /// Reads the parts of a query.
    ///
    /// - Parameters:
    ///   - filter: a logical expression of RFC 9535, in which `@` is the member; nil for all members.
    ///   - sort: pointers with commas between, each with `-` before it for descending order; nil for the members' own order.
    ///   - window: the members of the answer, by their places in the order.
    ///   - fields: pointers with commas between; nil for whole members.
    ///   - wantsCount: whether the answer says how many members the filter lets through.
    /// - Throws: ``Fault``.
    package init(
        filter: String?, sort: String?, window: Range<Int>, fields: String?, wantsCount: Bool
    ) throws(Fault) {
        self.filter = try filter.map { text throws(Fault) in
            do throws(QueryFault) {
                var parser = JSONPathParser(text, hasRoot: false)
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
        (self.window, self.wantsCount) = (window, wantsCount)
        // With their lengths, the parts cannot run into each other.
        identity =
            [filter, sort, fields].map { $0.map { "=\($0.utf8.count):\($0)" } ?? "-" }.joined(separator: "\n")
            + "\n\(window.lowerBound),\(window.upperBound),\(wantsCount)"
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
    /// The answer for the members of a value, as compact UTF-8 JSON, or nil for a value without members.
    ///
    /// It is an object with `members`, each with its `key`, the token of its pointer, and its `value`. O(n) in the bytes of the
    /// value, and O(m log m) for m members that are sorted.
    ///
    /// - Parameters:
    ///   - json: valid UTF-8 JSON.
    ///   - stepsMax: the most values that the evaluation looks at.
    /// - Throws: ``QueryTooCostly``.
    package func answer(to json: [UInt8], stepsMax: Int = Self.stepsMax) throws -> [UInt8]? {
        let document = try JSONDocument(json, depthMax: .max)
        let isObject = document.kind(document.root) == UInt8(ascii: "{")
        guard isObject || document.kind(document.root) == UInt8(ascii: "[") else { return nil }
        var evaluation = JSONPathEvaluation(root: .null, stepsMax: stepsMax)
        var found: [Found] = []
        var (child, number) = (document.firstChild(document.root), 0)
        while !document.isEnd(child) {
            let place = isObject ? child + 1 : child
            let value = looksAtValues ? JSONValue.value(of: document, at: place) : .null
            if let keys = try sortKeys(of: value, &evaluation) {
                found.append(Found(place: place, number: number, keys: keys))
            }
            child = document.after(place)
            number += 1
        }
        let count = found.count
        if isSorted { found.sort { isBefore($0.keys, $1.keys) ?? ($0.number < $1.number) } }
        var writer = JSONWriter()
        writer.raw("{\"members\":[")
        var isFirst = true
        for member in found[window.clamped(to: 0..<count)] {
            writer.separator(&isFirst)
            let name = isObject ? document.string(member.place - 1) : String(member.number)
            self.member(name, document, member.place, to: &writer)
        }
        end(&writer, count: count)
        return writer.bytes
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
        let document = try JSONDocument(json, depthMax: .max)
        var writer = JSONWriter(capacity: json.count + 64)
        member(name, document, document.root, to: &writer)
        return writer.bytes
    }

    /// Writes what comes behind the members of the answer.
    func end(_ writer: inout JSONWriter, count: Int) {
        writer.byte(UInt8(ascii: "]"))
        if wantsCount {
            writer.raw(",\"count\":")
            writer.integer(count)
        }
        writer.byte(UInt8(ascii: "}"))
    }

    package func kept(of json: [UInt8], _ order: MemberOrder) throws -> (any KeptMembers)? {
        let document = try JSONDocument(json, depthMax: .max)
        switch document.kind(document.root) {
        case UInt8(ascii: "{"): return try KeptOrder(self, document, order)
        case UInt8(ascii: "["): return nil
        default: throw NoMembers()
        }
    }

    package func answered(to json: [UInt8]) throws -> [UInt8] {
        guard let answer = try answer(to: json) else { throw NoMembers() }
        return answer
    }

    /// A member that the filter lets through.
    private struct Found {
        /// The index of the value in the document.
        var place: Int
        /// The place among the members, which decides between equals.
        var number: Int
        /// The values of the member at the pointers of the order.
        var keys: [SortKey?]
    }

    var isSorted: Bool { !order.isEmpty }
    var sortCount: Int { order.count }
    /// Whether the filter or the order looks at the values of members.
    var looksAtValues: Bool { filter != nil || isSorted }

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
