import StateJSON
import TestSupport
import Testing

@testable import StateStore

@Suite("A JSON tree")
struct JSONTreeTests {
    @Test("operations on a tree are those on the value, and its differences are a patch", arguments: 1...12)
    func model(seed: Int) throws {
        var generator = SplitMix(seed: UInt64(seed))
        var value: JSONValue = Self.value(depth: 3, using: &generator)
        var tree = JSONTree(value)
        for _ in 0..<100 {
            let (before, earlier) = (value, tree)
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let (operation, pointer, new) = Self.operation(on: value, using: &generator)
                var changed = value
                let isThere = changed.apply(operation, at: pointer.tokens[...], new)

                let applied = tree.applying(operation, at: pointer.tokens[...], new.map { JSONTree($0) })

                #expect((applied != nil) == isThere, "seed \(seed), \(operation) at \(pointer)")
                if let applied, isThere { (tree, value) = (applied, changed) }
            }
            #expect(tree.value == value, "seed \(seed)")
            #expect(tree.text == JSONTree(value).text, "seed \(seed): the order of members")
            #expect(tree.bytesCount == tree.text.count, "seed \(seed)")
            #expect(tree.partsCount == JSONTree(value).partsCount, "seed \(seed)")
            #expect(tree.memoryBytes == JSONTree(value).memoryBytes, "seed \(seed)")
            #expect(tree.depth == value.depth, "seed \(seed)")
            #expect(earlier.value == before, "seed \(seed): a tree before a change stays as it was")
            var patch = JSONPatch()
            try JSONTree.compare(earlier, tree, into: &patch)
            var patched = before
            try patched.apply(patch: JSONValue(parsing: patch.text, depthMax: 1000))
            #expect(abs(patch.growth - (tree.bytesCount - earlier.bytesCount)) <= 8, "seed \(seed): but for commas")
            #expect(patched == value, "seed \(seed): \(String(decoding: patch.text, as: UTF8.self))")
            #expect(patch.isEmpty == (before == value), "seed \(seed)")
            let pointer = Self.place(in: value, using: &generator)
            #expect(tree.tree(at: pointer.tokens[...])?.value == value[pointer: pointer], "seed \(seed), \(pointer)")
        }
    }

    @Test("a merge into a tree is that of RFC 7396, member by member or in one walk", arguments: 1...12)
    func merging(seed: Int) throws {
        var generator = SplitMix(seed: UInt64(seed))
        var large = JSONObject()
        for id in 0..<400 { large.append("\(id)", ["n": .integer(Int64(id))]) }
        for value in [.object(large), Self.value(depth: 3, using: &generator)] {
            var patch = JSONObject()
            for id in 0..<Int.random(in: 1...60, using: &generator) {
                patch.append("\(id * 7)", [nil, ["m": nil, "n": 1], 5, [:]].randomElement(using: &generator) ?? nil)
            }
            for patch in [.object(patch), Self.value(depth: 2, using: &generator)] {
                let merged = JSONTree(value).merging(JSONTree(patch))

                #expect(merged.value == value.merging(patch), "seed \(seed)")
                #expect(merged.text == JSONTree(value.merging(patch)).text, "seed \(seed)")
                #expect(merged.bytesCount == merged.text.count && merged.depth == merged.value.depth, "seed \(seed)")
            }
        }
    }

    @Test("a change of one entity of 100,000 makes one operation, and shares the rest")
    func large() throws {
        var object = JSONObject()
        for id in 0..<100_000 { object.append("\(id)", ["title": .string("task \(id)"), "done": false]) }
        let tree = JSONTree(["entities": .object(object), "ids": .array((0..<100_000).map { .integer($0) })])

        let changed = try #require(tree.applying("replace", at: ["entities", "70000", "done"], JSONTree(true)))
        let moved = try #require(changed.applying("add", at: ["ids", "50000"], JSONTree(-1)))

        var patch = JSONPatch()
        try JSONTree.compare(tree, moved, into: &patch)
        let expected =
            #"[{"op":"replace","path":"/entities/70000/done","value":true},{"op":"add","path":"/ids/50000","value":-1}]"#
        #expect(String(decoding: patch.text, as: UTF8.self) == expected)
    }

    @Test("an element can be inserted at one place again and again")
    func insertions() throws {
        var tree = JSONTree(.array((0..<200).map { .integer($0) }))
        for number in 0..<2_000 {
            tree = try #require(tree.applying("add", at: ["100"], JSONTree(.integer(Int64(number)))))
        }

        let expected = Array(0..<100) + (0..<2_000).reversed() + Array(100..<200)
        #expect(tree.value == .array(expected.map { .integer(Int64($0)) }))
    }

    @Test("members are ordered by number, then by their bytes, and a name has one spelling")
    func order() {
        let tree = JSONTree(["b": 1, "10": 2, "9": 3, "e\u{301}": 4, "\u{E9}": 5, "01": 6, "": 7, "-1": 8])

        #expect(
            String(decoding: tree.text, as: UTF8.self)
                == "{\"-1\":8,\"9\":3,\"10\":2,\"\":7,\"01\":6,\"b\":1,\"e\u{301}\":4,\"\u{E9}\":5}")
    }

    @Test(
        "the depth of a value counts its arrays and objects",
        arguments: [
            ("1", 0), ("[]", 1), (#"{"a":[{}]}"#, 3), (#"["[[[","\"[[",{"[":[[]]}]"#, 4),
        ])
    func depth(text: String, depth: Int) throws {
        #expect(JSONTree(try JSONValue(parsing: Array(text.utf8))).depth == depth)
    }

    @Test("what is nested deeply is looked at once, and not once for each level", .timeLimit(.minutes(1)))
    func nesting() {
        var object = JSONObject()
        for number in 0..<200_000 { object.append("\(number)", 1) }
        var value = JSONValue.object(object)
        for _ in 0..<400 { value = .array([value]) }

        #expect(JSONTree(value).depth == 401)
    }

    // MARK: Random values

    private static let names = ["a", "b", "1", "20", "~/", "long name of a member with some text in it", "\u{E9}"]

    private static func value(depth: Int, using generator: inout SplitMix) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 9 : 5), using: &generator) {
        case 0: return .null
        case 1: return .integer(.random(in: -5...5, using: &generator))
        case 2: return .double(.random(in: 0...1, using: &generator))
        case 3: return .string(String(repeating: "x\"", count: .random(in: 0...40, using: &generator)))
        case 4: return .bool(.random(using: &generator))
        case 5, 6:
            return .array(
                (0..<Int.random(in: 0...20, using: &generator)).map { _ in value(depth: depth - 1, using: &generator) })
        default:
            var object = JSONObject()
            for name in names where Bool.random(using: &generator) {
                object[name] = value(depth: depth - 1, using: &generator)
            }
            for id in 0..<Int.random(in: 0...20, using: &generator) {
                object["\(id)"] = value(depth: depth - 1, using: &generator)
            }
            return .object(object)
        }
    }

    /// A pointer along the members of a value, sometimes to what is not there.
    private static func place(in value: JSONValue, using generator: inout SplitMix) -> JSONPointer {
        var (tokens, value): ([String], JSONValue) = ([], value)
        while Int.random(in: 0..<4, using: &generator) > 0 {
            switch value {
            case .object(let object):
                let name = object.members.randomElement(using: &generator)?.key ?? "a"
                tokens.append(Int.random(in: 0..<8, using: &generator) == 0 ? names[3] : name)
                value = object[tokens[tokens.count - 1]] ?? .null
            case .array(let elements):
                let index = Int.random(in: 0...elements.count, using: &generator)
                tokens.append(Int.random(in: 0..<12, using: &generator) == 0 ? "-" : "\(index)")
                value = index < elements.count ? elements[index] : .null
            default: return JSONPointer(tokens)
            }
        }
        return JSONPointer(tokens)
    }

    private static func operation(
        on value: JSONValue, using generator: inout SplitMix
    ) -> (String, JSONPointer, JSONValue?) {
        let place = place(in: value, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: return ("remove", place, nil)
        case 1: return ("replace", place, Self.value(depth: 2, using: &generator))
        default: return ("add", place, Self.value(depth: 2, using: &generator))
        }
    }

    @Test("a slice whose name equals a part's as Swift strings do is no part where its bytes differ")
    func otherBytes() {
        let recorded = JSONTree(["K": 1, "\u{212A}": 2])

        #expect(throws: JSONFault.self) {
            try JSONLayout.fit(recorded, to: ["/K"], initial: JSONTree(["K": 0]), dropping: [])
        }
    }
}

extension JSONValue {
    /// The depth by a walk.
    fileprivate var depth: Int {
        switch self {
        case .object(let object): 1 + (object.members.map(\.value.depth).max() ?? 0)
        case .array(let elements): 1 + (elements.map(\.depth).max() ?? 0)
        default: 0
        }
    }

    /// The function of RFC 7396, section 2.
    fileprivate func merging(_ patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        var target = if case .object(let object) = self { object } else { JSONObject() }
        for (name, value) in changes.members {
            target[name] = value == .null ? JSONValue?.none : (target[name] ?? .null).merging(value)
        }
        return .object(target)
    }
}
