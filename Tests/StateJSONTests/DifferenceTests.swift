import Testing

@testable import StateJSON

@Suite("Differences")
struct DifferenceTests {
    func value(_ text: String) throws -> JSONValue { try JSONValue(parsing: Array(text.utf8)) }

    @Test(
        "the first place that differs is named",
        arguments: [
            (#"{"a":1,"b":2}"#, #"{"b":2.0,"a":1}"#, nil), (#"{"a":{"b":[1,2]}}"#, #"{"a":{"b":[1,3]}}"#, "/a/b/1"),
            (#"[1,2]"#, #"[1]"#, "/1"), (#"[1]"#, #"[1,2]"#, "/1"), (#"{"a":1}"#, #"{"a":1,"b":2}"#, "/b"),
            (#"{"a":1,"b":2}"#, #"{"a":1}"#, "/b"), ("1", "2", ""), ("{}", "[]", ""),
        ])
    func first(left: String, right: String, pointer: String?) throws {
        #expect(try value(left).firstDifference(from: value(right))?.description == pointer)
    }

    @Test(
        "a patch touches what it names, and the array whose elements it shifts",
        arguments: [
            (#"[{"op":"replace","path":"/list/0","value":1}]"#, ["/list/0"]),
            (#"[{"op":"add","path":"/list/0","value":1},{"op":"remove","path":"/list/1"}]"#, ["/list"]),
            (#"[{"op":"add","path":"/map/0","value":1},{"op":"remove","path":"/map/1"}]"#, ["/map/0", "/map/1"]),
            (#"[{"op":"replace","path":"","value":1}]"#, [""]), ("[]", []),
        ])
    func changedPointers(patch: String, places: [String]) throws {
        let before = try value(#"{"list":[5,6],"map":{"1":1}}"#)

        #expect(try before.places(changing: value(patch)).map(\.description) == places)
    }

    @Test(
        "the patch between two lists has one operation for each element that differs, in the middle", arguments: 0..<400
    )
    func lists(seed: Int) throws {
        var generator = SystemRandomNumberGenerator()
        let words = seed.isMultiple(of: 2) ? ["1", "11", "-1", "111", "null"] : ["1", "\"a,1\"", "[1,1]", "11", "[]"]
        func list() -> [String] {
            (0..<Int.random(in: 0..<12, using: &generator)).map { _ in words[Int.random(in: 0..<5, using: &generator)] }
        }
        let old = list()
        var new = old
        // Half of the lists differ in one place only.
        if Bool.random(using: &generator) { new = list() }
        if !new.isEmpty { new.remove(at: Int.random(in: 0..<new.count, using: &generator)) }
        new.insert(words[0], at: Int.random(in: 0...new.count, using: &generator))

        var patch = JSONPatch()
        patch.compare(Array("[\(old.joined(separator: ","))]".utf8), Array("[\(new.joined(separator: ","))]".utf8))

        let patched = try value("[\(old.joined(separator: ","))]").applying(patch: patch)
        #expect(try patched == value("[\(new.joined(separator: ","))]"), "\(old) \(new)")
        guard seed.isMultiple(of: 2) else { return }
        let start = zip(old, new).prefix { $0 == $1 }.count
        let tail = zip(old.dropFirst(start).reversed(), new.dropFirst(start).reversed()).prefix { $0 == $1 }.count
        let middle = (old.count - start - tail, new.count - start - tail)
        let replaced = zip(old.dropFirst(start).dropLast(tail), new.dropFirst(start).dropLast(tail)).filter { $0 != $1 }
        let operations = try JSONValue(parsing: patch.text)
        guard case .array(let all) = operations else { Issue.record("\(operations)"); return }
        #expect(all.count == replaced.count + abs(middle.0 - middle.1), "\(old) \(new) \(patch.text)")
    }

    @Test("a list of whole numbers encodes like any other list", arguments: [0, 1, 63, 64, 65, 129, 1000])
    func integers(count: Int) throws {
        let values = (0..<count).map { [Int.min, .max, 0, -1, 9, 10, 12_345, -100][$0 % 8] }

        let text = String(decoding: try JSON.encode(values), as: UTF8.self)

        #expect(text == "[\(values.map(String.init).joined(separator: ","))]")
        #expect(String(decoding: try JSON.encode(["a": values]), as: UTF8.self) == "{\"a\":\(text)}")
    }
}

extension JSONValue {
    fileprivate func applying(patch: JSONPatch) throws -> JSONValue {
        var value = self
        try value.apply(patch: JSONValue(parsing: patch.text))
        return value
    }
}
