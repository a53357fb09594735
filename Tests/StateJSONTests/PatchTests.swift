import TestSupport
import Testing

@testable import StateJSON

@Suite("Patches")
struct PatchTests {
    func patch(_ old: String, _ new: String) -> JSONPatch {
        var patch = JSONPatch()
        patch.compare(Array(old.utf8), Array(new.utf8))
        return patch
    }

    @Test(
        "a text with more than 1,000 differences is replaced as a whole",
        arguments: ["array", "object"], [499, 500, 501, 1000, 1001, 3000])
    func many(kind: String, changed: Int) throws {
        func make(_ count: Int, _ new: Int) -> String {
            let isArray = kind == "array"
            let children = (0..<count).map { isArray ? "\($0 < new ? 1 : 0)" : "\"\($0 < new ? "x" : "")\($0)\":0" }
            return "\(isArray ? "[" : "{")\(children.joined(separator: ","))\(isArray ? "]" : "}")"
        }
        let (old, new) = (make(5000, 0), make(5000, changed))

        var patch = patch("{\"a\":\(old),\"b\":0}", "{\"a\":\(new),\"b\":1}")

        guard case .array(let operations) = try JSONValue(parsing: patch.text) else { return }
        // A member with another name is removed, and added.
        let differences = old.hasPrefix("[") ? changed : 2 * changed
        #expect(operations.count == (differences > 1000 ? 1 : differences) + 1)
        var value = try JSONValue(parsing: Array("{\"a\":\(old),\"b\":0}".utf8))
        try value.apply(patch: .array(operations))
        #expect(value[pointer: "/a"] == (try JSONValue(parsing: Array(new.utf8))))
        #expect(patch.changedPointers.last == "/b")
    }

    @Test("an object that an encoder has written with a key twice has the first value", arguments: [2, 12])
    func twice(count: Int) throws {
        let members = (0..<count).map { "\"k\($0 % (count / 2))\":\($0)" }.joined(separator: ",")
        let document = try JSONDocument(encoded: Array("{\(members)}".utf8))

        let value = JSONValue.value(of: document, at: document.root)

        #expect(value[pointer: "/k0"] == .integer(0))

        var removed = value
        let isRemoved = removed.apply("remove", at: ["k0"], nil)
        #expect(isRemoved)
        #expect(removed[pointer: "/k0"] == .integer(Int64(count / 2)))
    }

    @Test("members that are removed one by one from a large object leave the others in order", .timeLimit(.minutes(1)))
    func removals() {
        var object = JSONObject()
        for number in 0..<40_000 { object.append("k\(number)", .integer(Int64(number))) }

        for number in stride(from: 0, to: 40_000, by: 2) {
            object["k\(number)"] = nil
            #expect(!object.contains("k\(number)") && object["k\(number + 1)"] == .integer(Int64(number + 1)))
        }
        object["k4"] = 4
        for number in stride(from: 39_999, to: 20_000, by: -2) { object["k\(number)"] = nil }

        let left = Array(stride(from: 1, to: 20_000, by: 2)) + [4]
        #expect(object.members.map(\.key) == left.map { "k\($0)" })
        #expect(left.allSatisfy { object["k\($0)"] == .integer(Int64($0)) })
    }

    @Test("removals and additions in any order leave what they leave in a list", arguments: 1...12)
    func removals(seed: Int) {
        var generator = SplitMix(seed: UInt64(seed))
        var (object, list) = (JSONObject(), [(key: String, value: Int64)]())
        for number in 0..<600 {
            let key = "k\(Int.random(in: 0..<40, using: &generator))"
            if Bool.random(using: &generator) {
                object[key] = nil
                list.removeAll { $0.key == key }
            } else {
                object[key] = .integer(Int64(number))
                if let index = list.firstIndex(where: { $0.key == key }) {
                    list[index].value = Int64(number)
                } else {
                    list.append((key, Int64(number)))
                }
            }
            #expect(object.members.map(\.key) == list.map(\.key), "seed \(seed), \(number)")
            #expect(object.members.map(\.value) == list.map { JSONValue.integer($0.value) }, "seed \(seed), \(number)")
            #expect(list.allSatisfy { object[$0.key] == .integer($0.value) }, "seed \(seed), \(number)")
        }
    }

    @Test(
        "a patch says only what differs",
        arguments: [
            (#"{"a":1}"#, #"{"a":1}"#, "[]"),
            (#"{"a":1,"b":2}"#, #"{"a":1,"b":3}"#, #"[{"op":"replace","path":"/b","value":3}]"#),
            (
                #"{"a":1}"#, #"{"b":{"c":2}}"#,
                #"[{"op":"remove","path":"/a"},{"op":"add","path":"/b","value":{"c":2}}]"#
            ),
            (#"[1,2,3]"#, #"[1,3]"#, #"[{"op":"remove","path":"/1"}]"#),
            (#"[1,3]"#, #"[1,2,3]"#, #"[{"op":"add","path":"/1","value":2}]"#),
            (#"{"a~/\"":[{"x":1}]}"#, #"{"a~/\"":[{"x":2}]}"#, #"[{"op":"replace","path":"/a~0~1\"/0/x","value":2}]"#),
            (#"1"#, #"[]"#, #"[{"op":"replace","path":"","value":[]}]"#),
            (#"{"a":1,"b":2}"#, #"{"b":2,"a":1}"#, #"[{"op":"replace","path":"","value":{"b":2,"a":1}}]"#),
        ])
    func exact(old: String, new: String, expected: String) {
        #expect(text(patch(old, new).text) == expected)
    }

    @Test("a change that shifts elements changes the array, one that does not changes the element")
    func changedPointers() {
        var (shifts, stays) = (patch(#"{"a":[1,2,3]}"#, #"{"a":[1,3]}"#), patch(#"{"a":[1,2,3]}"#, #"{"a":[1,9,3]}"#))

        #expect(shifts.changedPointers == ["/a"])
        #expect(stays.changedPointers == ["/a/1"])
    }

    @Test("the pointers of a patch are its own, byte by byte, whatever the patch before has changed")
    func pointersOfLaterPatches() {
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        var patch = JSONPatch()
        func change(_ members: String...) -> [[UInt8]] {
            patch.begin()
            for member in members { patch.remove(member: member, 1) }
            return patch.changedPointers.map { Array($0.description.utf8) }
        }
        func bytes(_ pointers: String...) -> [[UInt8]] { pointers.map { Array($0.utf8) } }

        #expect(change("a", composed) == bytes("/a", "/" + composed))
        #expect(change("a", decomposed) == bytes("/a", "/" + decomposed))
        #expect(change("a") == bytes("/a"))
        #expect(change("a", "b", "c") == bytes("/a", "/b", "/c"))
        #expect(change("b") == bytes("/b"))
        #expect(change() == [])
        #expect(change("b", "a") == bytes("/b", "/a"))
    }

    @Test("a patch builder that is used again says what a new one says, also of keys with escapes")
    func usedAgain() throws {
        var generator = SplitMix(seed: 5)
        var again = JSONPatch()
        var value = Self.random(0, &generator)
        for _ in 0..<400 {
            // Half of the steps go back to values of the step before, so that pointers occur again.
            let next = Bool.random(using: &generator) ? Self.random(0, &generator) : Self.altered(value, &generator)
            let (old, new) = (try JSON.encode(value), try JSON.encode(next))
            var fresh = JSONPatch()
            again.begin()
            again.compare(old, new)
            fresh.compare(old, new)

            #expect(again.text == fresh.text)
            let pointers = again.changedPointers.map { Array($0.description.utf8) }
            #expect(pointers == fresh.changedPointers.map { Array($0.description.utf8) })
            guard case .array(let operations) = try JSONValue(parsing: again.text) else { return }
            for operation in operations {
                guard case .string(let path)? = operation[pointer: "/path"] else { continue }
                let pointer = try #require(JSONPointer(text: path))
                #expect(again.changedPointers.contains { pointer.tokens.starts(with: $0.tokens) }, "\(path)")
            }
            value = next
        }
    }

    /// The value with one of its members, or of theirs, replaced.
    private static func altered(_ value: JSONValue, _ generator: inout some RandomNumberGenerator) -> JSONValue {
        guard case .object(var object) = value, let key = object.members.randomElement(using: &generator)?.key,
            let member = object[key]
        else { return .integer(.random(in: 0...9, using: &generator)) }
        object[key] = altered(member, &generator)
        return .object(object)
    }

    static func random(_ depth: Int, _ generator: inout some RandomNumberGenerator) -> JSONValue {
        switch Int.random(in: 0..<(depth > 3 ? 4 : 6), using: &generator) {
        case 0: return .integer(.random(in: 0...3, using: &generator))
        case 1: return .string(["", "a", "\"", "\u{1}é", "\\"].randomElement(using: &generator) ?? "")
        case 2: return .bool(.random(using: &generator))
        case 3: return .null
        case 4: return .array((0..<Int.random(in: 0...5, using: &generator)).map { _ in random(depth + 1, &generator) })
        default:
            var object = JSONObject()
            for key in ["a", "b/", "~c", "\"d", "e\n", "f", "g", "h", "i", "j", "k"].shuffled(using: &generator)
                .prefix(.random(in: 0...11, using: &generator))
            {
                object[key] = random(depth + 1, &generator)
            }
            return .object(object)
        }
    }

    @Test("applying the patch between two values to the old gives the new", arguments: 0..<400)
    func model(seed: Int) throws {
        var generator = SplitMix(seed: UInt64(seed))
        let (old, new) = (Self.random(0, &generator), Self.random(0, &generator))

        var patch = JSONPatch()
        patch.compare(old.text, new.text)
        var result = old
        try result.apply(patch: JSONValue(parsing: patch.text))

        #expect(result == new, "seed \(seed)")
        #expect(patch.isEmpty == (old.text == new.text))
    }

    @Test("a document writes what its tree writes", arguments: 0..<100)
    func nodeText(seed: Int) throws {
        var generator = SplitMix(seed: UInt64(seed))
        let text = Self.random(0, &generator).text

        #expect(try JSONNode(JSONDocument(text)).text == text)
    }

    @Test("selecting in text finds what selecting in the tree finds", arguments: 0..<100)
    func select(seed: Int) {
        var generator = SplitMix(seed: UInt64(seed))
        let value = Self.random(0, &generator)
        for tokens in [["a"], ["b/", "0"], ["~c"], ["\"d", "e\n"], ["1"], ["f", "g"]] {
            let found = JSONText.select(tokens[...], in: value.text)
            #expect(found == value[pointer: JSONPointer(tokens)]?.text, "seed \(seed)")
        }
    }

    @Test("a patch that does not fit names the pointer")
    func misfit() throws {
        var value = try JSONValue(parsing: Array(#"{"a":[]}"#.utf8))
        let patch = try JSONValue(parsing: Array(#"[{"op":"replace","path":"/a/3","value":1}]"#.utf8))

        #expect(throws: PatchMismatch(detail: "cannot replace at /a/3: there is no such place")) {
            try value.apply(patch: patch)
        }
    }
}
