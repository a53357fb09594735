import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Entities by the bytes of a path")
struct EntityPathTests {
    struct Item: Codable, Equatable { var name: String }

    /// An ID that two tokens name.
    struct Folded: EntityID {
        let text: String
        var token: String { text }
        init?(token: String) { text = token.lowercased() }
    }

    struct Inner: Sendable {
        var numbers = EntityTable<Int, Item>()
        var texts = EntityTable<String, Item>()
    }
    struct Root: Sendable {
        var inner = Inner()
        var folded = EntityTable<Folded, Item>()
        var slashed = EntityTable<Int, Item>()
        var unnamed = EntityTable<Int, Item>()
        var value = 7
    }

    let node = ObjectNode<Root>(members: [
        LayoutField(
            "in", \.inner,
            ObjectNode<Inner>(members: [
                LayoutField("numbers", \.numbers, EntitiesNode()), LayoutField("texts", \.texts, EntitiesNode()),
            ])),
        LayoutField("inn", \.folded, EntitiesNode()),
        LayoutField("in/texts", \.slashed, EntitiesNode()),
        LayoutField("value", \.value, ValueNode()),
        LayoutField("", \.unnamed, EntitiesNode()),
    ])
    let ids = [
        "0", "7", "00", "07", "-7", "-0", "+7", "", " 7", "7 ", "7a", "999999999999999999", "1000000000000000000",
        "9223372036854775807", "9223372036854775808", "-9223372036854775808", "a", "A", "name", "in", "texts",
    ]

    func root() -> Root {
        var root = Root()
        for id in ids {
            if let number = Int(token: id) {
                root.inner.numbers[number] = Item(name: "number \(number)")
                root.slashed[number] = Item(name: "slashed \(number)")
                root.unnamed[number] = Item(name: "unnamed \(number)")
            }
            root.inner.texts[id] = Item(name: "text \(id)")
            if let folded = Folded(token: id) { root.folded[folded] = Item(name: "folded \(id)") }
        }
        return root
    }

    func entity(_ root: Root, _ path: String) throws -> [UInt8]? {
        var path = path
        return try path.withUTF8 { try node.entity(root, at: $0) }
    }

    @Test("a path finds what its pointer selects, or nothing, for every path of up to four tokens")
    func agreement() throws {
        let root = root()
        let tokens = ids + ["inn", "numbers", "value", "other"]
        var found = 0
        func check(_ path: [String]) throws {
            if let bytes = try entity(root, path.joined(separator: "/")) {
                #expect(try node.select(root, path[...]) == bytes, "\(path)")
                found += 1
            }
            guard path.count < 4 else { return }
            // All tokens behind the names of members, and few behind others, of which there are many.
            let isLong = path.count > 1 && !["numbers", "texts"].contains(path[1])
            for token in isLong ? ["7", "", "name"] : tokens { try check(path + [token]) }
        }
        for token in tokens { try check([token]) }
        #expect(found > 2 * ids.count)
    }

    @Test("the path of each entity finds it")
    func completeness() throws {
        let root = root()
        for id in ids where !id.isEmpty {
            #expect(text(try entity(root, "in/texts/\(id)")) == #"{"name":"text \#(id)"}"#)
            #expect(try entity(root, "inn/\(id)") != nil)
        }
        for id in ["0", "7", "999999999999999999"] {
            #expect(text(try entity(root, "in/numbers/\(id)")) == #"{"name":"number \#(id)"}"#)
        }
    }

    @Test("a name that has a slash is found by no path, and an empty name by its own")
    func names() throws {
        let root = root()
        #expect(text(try entity(root, "in/texts/7")) == #"{"name":"text 7"}"#)
        #expect(text(try entity(root, "/7")) == #"{"name":"unnamed 7"}"#)
        #expect(try entity(root, "in/numbers/7/name") == nil)
        #expect(try entity(root, "in") == nil)
        #expect(try entity(root, "") == nil)
        #expect(try entity(root, "value/7") == nil)
    }
}
