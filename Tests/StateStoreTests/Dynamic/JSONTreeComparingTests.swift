import StateJSON
import TestSupport
import Testing

@testable import StateStore

@Suite("The comparison of JSON trees")
struct JSONTreeComparingTests {
    /// A value of `count` children, of which the first `changed` differ.
    private static func value(_ kind: String, _ count: Int, changed: Int) -> JSONValue {
        let children = (0..<count).map { number -> JSONValue in
            let text = JSONValue.string(number < changed ? "new" : "old")
            return kind.hasSuffix("objects") ? ["t": text, "pad": .string(String(repeating: "x", count: 600))] : text
        }
        if kind.hasPrefix("array") { return .array(children) }
        var object = JSONObject()
        for (number, child) in children.enumerated() { object.append("\(number)", child) }
        return .object(object)
    }

    private static func patch(_ old: JSONTree, _ new: JSONTree) throws -> [JSONValue] {
        var patch = JSONPatch()
        try JSONTree.compare(old, new, into: &patch)
        guard case .array(let operations) = try JSONValue(parsing: patch.text, depthMax: 1000) else { return [] }
        return operations
    }

    @Test(
        "1,000 differences of an object or an array are an operation each, and one more replaces it, and nothing else",
        arguments: ["array", "object", "array of objects", "object of objects"], [1000, 1001])
    func limit(kind: String, changed: Int) throws {
        func tree(_ changed: Int) -> JSONTree {
            JSONTree(["many": Self.value(kind, 1500, changed: changed), "n": .integer(Int64(changed))])
        }

        let operations = try Self.patch(tree(0), tree(changed))

        #expect(operations.count == (changed == 1000 ? 1001 : 2))
        guard changed > 1000 else { return }
        #expect(operations.contains { $0[pointer: "/path"] == "/many" && $0[pointer: "/op"] == "replace" })
        #expect(operations.contains { $0[pointer: "/path"] == "/n" })
    }

    @Test("what grows out of a short value, or shrinks into one, is replaced", arguments: ["array", "object"])
    func growth(kind: String) throws {
        let (short, long) = (JSONTree(Self.value(kind, 1, changed: 0)), JSONTree(Self.value(kind, 20_000, changed: 0)))

        for (old, new) in [(short, long), (long, short)] {
            let operations = try Self.patch(JSONTree.object(of: "a", old), JSONTree.object(of: "a", new))
            #expect(operations.count == 1)
            #expect(operations.first?[pointer: "/value"] == new.value)
        }
    }

    @Test("an equal value is no change, also of an array whose elements were inserted one by one")
    func equal() throws {
        var tree = JSONTree(.array((0..<400).map { .integer($0) }))
        tree = try #require(tree.applying("add", at: ["7"], JSONTree("inserted")))

        #expect(try Self.patch(tree, JSONTree(tree.value)).isEmpty)
        #expect(JSONTree(tree.value).sharing(tree) === tree)
    }

    @Test("a value that shares what it can is the same value, and its patch is small", arguments: 1...4)
    func sharing(seed: Int) throws {
        var generator = SplitMix(seed: UInt64(seed))
        for kind in ["array", "object", "array of objects", "object of objects"] {
            let old = JSONTree(["a": Self.value(kind, 5000, changed: 0), "b": 1])
            var changed = old
            for _ in 0..<Int.random(in: 0...5, using: &generator) {
                let place = "\(Int.random(in: 0..<5000, using: &generator))"
                changed = try #require(changed.applying("replace", at: ["a", place], JSONTree(.double(0.5))))
            }
            let sent = JSONTree(changed.value)

            let shared = sent.sharing(old)

            #expect(shared.text == sent.text, "seed \(seed), \(kind)")
            #expect(shared.bytesCount == sent.bytesCount && shared.memoryBytes == sent.memoryBytes)
            #expect(shared.depth == sent.depth && shared.partsCount == sent.partsCount)
            #expect((shared === old) == (sent.text == old.text), "seed \(seed), \(kind)")
            #expect(try Self.patch(old, shared).count <= 5)
        }
    }

    @Test("elements that come or go in a long array move no other element", arguments: [0, 2500, 4999], [true, false])
    func moves(position: Int, isInsertion: Bool) throws {
        let old = JSONTree(Self.value("array of objects", 5000, changed: 0))
        let name = "\(position)"
        let changed = try #require(
            isInsertion ? old.applying("add", at: [name], JSONTree("x")) : old.applying("remove", at: [name], nil))

        let operations = try Self.patch(old, JSONTree(changed.value).sharing(old))

        #expect(operations.count == 1)
        var value = old.value
        try value.apply(patch: .array(operations))
        #expect(value == changed.value)
    }

    @Test("a comparison gives up at the difference behind the thousandth")
    func early() {
        var patch = JSONPatch()
        var count = 0
        let (old, new) = ((0..<200_000).map { ("\($0)", 0) }, (0..<200_000).map { ("\($0)", 1) })
        patch.compareChildren(0, { [UInt8(ascii: "0")] }) { (patch) throws(JSONPatch.ManyDifferences) in
            for (before, after) in zip(old, new) {
                count += 1
                try patch.compareChild { if before != after { $0.replace(1, with: [UInt8(ascii: "1")]) } }
            }
        }

        #expect(count == 1001)
    }

    @Test("a patch is no longer than its differences allow: a wide change of a long value replaces no megabytes")
    func wide() throws {
        var members = JSONObject()
        for index in 0..<3000 { members.append("k\(index)", .string(String(repeating: "x", count: 2000))) }
        let old = JSONTree(["m": .object(members)])
        var merged = JSONObject()
        for index in 0..<1001 { merged.append("k\(index)", 1) }
        let new = try #require(old.tree(at: ["m"])).merging(JSONTree(.object(merged)))
        let changed = try #require(old.applying("replace", at: ["m"], new))

        let operations = try Self.patch(old, changed)
        var patch = JSONPatch()
        patch.compare(old.text, changed.text)

        #expect(operations.count == 1001)
        #expect(patch.text.count < 100_000)
    }

    @Test("a tree equals a value as two values are equal", arguments: 1...8)
    func equality(seed: Int) throws {
        let values: [JSONValue] = try [
            "1", "1.0", "10e-1", "0", "-0.0", "\"1\"", "null", "true", "[1]", "[1.0]", "[1,2]", "{}", #"{"a":1}"#,
            #"{"a":1.0,"b":[]}"#, #"{"b":[],"a":1}"#, "[]", #""é""#, "18446744073709551615", "1.8446744073709551615e19",
        ].map { try JSONValue(parsing: Array($0.utf8)) }
        // Beside a long text, a short value is in a tree of its own.
        let pad = JSONValue.string(String(repeating: "x", count: 600 * (seed % 2)))
        for left in values {
            for right in values {
                #expect(
                    JSONTree([left, pad]).equals([right, pad]) == ([left, pad] == [right, pad]), "\(left) \(right)")
                #expect(
                    JSONTree(["l": left, "p": pad]).equals(["p": pad, "l": right]) == (left == right),
                    "\(left) \(right)")
            }
        }
        #expect(!JSONTree([pad]).equals(["a": pad]) && !JSONTree(["a": pad]).equals([pad]))
    }
}
