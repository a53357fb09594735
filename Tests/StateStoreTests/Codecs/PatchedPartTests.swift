import StateJSON
import TestSupport
import Testing

@testable import StateStore

@Suite("A recorded patch on a typed state")
struct PatchedPartTests {
    struct Root: Sendable {
        var table = EntityTable<Int, Item>()
        var list: [Int] = []
    }
    struct Item: Codable, Sendable { var name: String; var tags: [String]? }

    let codec = SliceCodec<Root>(members: [
        SliceMember("entities", \.table, EntitiesCodec()), SliceMember("ids", \.table, OrderCodec()),
        SliceMember("list", \.list, ValueCodec()),
    ])

    private static func change(_ root: inout Root, _ generator: inout SplitMix) {
        let id = Int.random(in: 0..<40, using: &generator)
        let position = Int.random(in: 0...40, using: &generator)
        switch Int.random(in: 0..<8, using: &generator) {
        case 0: root.table[id] = Item(name: "n\(position)")
        case 1: root.table[id] = nil
        case 2, 3: root.table.insert(Item(name: "i", tags: []), id: id, at: position)
        case 4: root.table.move(id, to: position)
        case 5: root.table.update(id) { $0.name += "~/\"é" }
        case 6: root.table.update(id) { $0.tags = ($0.tags ?? []) + ["t\(position)"] }
        default: root.list.append(position)
        }
    }

    @Test("it makes the state that it was recorded for, commit after commit", arguments: 1...20)
    func follows(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        var (leader, follower) = (Root(), Root())
        var trees = (try codec.tree(of: leader), try codec.tree(of: follower))
        for _ in 0..<200 {
            var next = leader
            for _ in 0..<Int.random(in: 0...(seed.isMultiple(of: 5) ? 60 : 5), using: &generator) {
                Self.change(&next, &generator)
            }
            var patch = JSONPatch()
            let tree = try codec.tree(of: next, after: trees.0, JSONEncodingSession())
            try JSONTree.compare(trees.0, tree, into: &patch)
            trees.0 = tree
            let patched = try trees.1.applying(patch: try JSONValue(parsing: patch.text))
            trees.1 = try codec.read(patched, after: trees.1, into: &follower)
            leader = next
            let expected = try codec.tree(of: leader).encoded()
            try #require(trees.0.encoded() == expected, "\(String(decoding: patch.text, as: UTF8.self))")
            try #require(trees.1.encoded() == expected, "\(String(decoding: patch.text, as: UTF8.self))")
            try #require(codec.tree(of: follower).encoded() == expected)
            // What the follower makes of it later is the same, too.
            for id in leader.table.ids { #expect(leader.table.position(of: id) == follower.table.position(of: id)) }
        }
    }

    @Test(
        "a patch that does not fit is refused",
        arguments: [
            #"[{"op":"replace","path":"/other","value":1}]"#, #"[{"op":"add","path":"/ids/0","value":9}]"#,
            #"[{"op":"remove","path":"/ids/3"}]"#, #"[{"op":"remove","path":"/ids/0"}]"#,
            #"[{"op":"remove","path":"/entities/7"}]"#, #"[{"op":"replace","path":"/entities/7/name","value":"x"}]"#,
            #"[{"op":"replace","path":"/entities/1/name","value":1}]"#,
            #"[{"op":"move","path":"/list","from":"/ids"}]"#,
            #"[{"op":"add","path":"/list/5","value":1}]"#, #"{}"#, #"["#,
        ])
    func refuses(patch: String) throws {
        var root = Root()
        root.table[1] = Item(name: "one")
        root.list = [1]

        #expect(throws: (any Error).self) {
            let tree = try codec.tree(of: root)
            let patched = try tree.applying(patch: try JSONValue(parsing: Array(patch.utf8)))
            _ = try codec.read(patched, after: tree, into: &root)
        }
    }

    @Test("an entity that goes and comes again has its place, and an order with one twice is refused")
    func places() throws {
        var root = Root()
        root.table[1] = Item(name: "one")
        root.table[2] = Item(name: "two")
        let tree = try codec.tree(of: root)
        let again = try tree.applying(
            patch: JSONValue(
                parsing: Array(
                    #"""
                    [{"op":"remove","path":"/entities/2"},{"op":"add","path":"/entities/2","value":{"name":"new"}},
                    {"op":"remove","path":"/ids/1"},{"op":"add","path":"/ids/-","value":2}]
                    """#.utf8)))
        let read = try codec.read(again, after: tree, into: &root)
        #expect(root.table.position(of: 2) == 1)
        #expect(try read.encoded() == codec.tree(of: root).encoded())
        for patch in [
            #"[{"op":"replace","path":"/ids/0","value":2}]"#, #"[{"op":"replace","path":"/ids/1","value":1}]"#,
        ] {
            let twice = try read.applying(patch: JSONValue(parsing: Array(patch.utf8)))
            #expect(throws: PatchMismatch.self) { try codec.read(twice, after: read, into: &root) }
        }
    }

    struct Deep: Sendable { var table = EntityTable<Int, JSONValue>() }

    @Test("an entity may be as deep as a recorded state")
    func depth() throws {
        let codec = SliceCodec<Deep>(members: [
            SliceMember("entities", \.table, EntitiesCodec()), SliceMember("ids", \.table, OrderCodec()),
        ])
        var root = Deep()
        let tree = try codec.tree(of: root)
        let value = String(repeating: "[", count: 500) + String(repeating: "]", count: 500)
        let patch =
            #"[{"op":"add","path":"/entities/1","value":\#(value)},{"op":"add","path":"/ids/0","value":1}]"#
        let patched = try tree.applying(patch: JSONValue(parsing: Array(patch.utf8), depthMax: 1000))
        _ = try codec.read(patched, after: tree, into: &root)
        #expect(root.table.count == 1)
    }

    struct Ordered: Sendable { var value = JSONValue.null; var list: [Int] = [] }

    @Test("a part that is replaced as a whole keeps the order of its members")
    func order() throws {
        let codec = SliceCodec<Ordered>(members: [
            SliceMember("value", \.value, ValueCodec()), SliceMember("list", \.list, ValueCodec()),
        ])
        var (leader, follower) = (Ordered(), Ordered())
        var trees = (try codec.tree(of: leader), try codec.tree(of: follower))
        for text in [#"{"z":1,"a":2}"#, #"{"a":2,"z":1}"#, #"{"a":2,"z":1,"10":3,"9":{"y":1,"b":2}}"#, "[1]"] {
            leader.value = try JSONValue(parsing: Array(text.utf8))
            leader.list.append(1)
            var patch = JSONPatch()
            let tree = try codec.tree(of: leader, after: trees.0, JSONEncodingSession())
            try JSONTree.compare(trees.0, tree, into: &patch)
            let patched = try trees.1.applying(patch: try JSONValue(parsing: patch.text))
            trees = (tree, try codec.read(patched, after: trees.1, into: &follower))
            #expect(try trees.1.encoded() == trees.0.encoded(), "\(String(decoding: patch.text, as: UTF8.self))")
        }
    }

    @Test("operations behind a replacement of the whole change what it has put there")
    func whole() throws {
        var root = Root()
        let tree = try codec.tree(of: root)
        let patch = #"""
            [{"op":"replace","path":"","value":{"entities":{"1":{"name":"one"}},"ids":[1],"list":[]}},
            {"op":"add","path":"/list/-","value":7},{"op":"replace","path":"/entities/1/name","value":"two"}]
            """#
        let read = try codec.read(
            try tree.applying(patch: JSONValue(parsing: Array(patch.utf8))), after: tree, into: &root)
        #expect(root.list == [7] && root.table[1]?.name == "two")
        #expect(try read.encoded() == codec.tree(of: root).encoded())
    }
}
