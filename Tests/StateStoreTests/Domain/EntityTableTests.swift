import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Entity tables")
struct EntityTableTests {
    typealias Table = EntityTable<Int, Sample.Item>

    @Test("a table behaves as an array of pairs, and the patch between two tables is exact", arguments: 0..<150)
    func model(seed: Int) throws {
        var generator = SplitMix(seed: UInt64(seed))
        var table = Table()
        var reference: [(Int, String)] = []
        let codecs: (EntitiesCodec<Int, Sample.Item>, OrderCodec<Int, Sample.Item>) = (.init(), .init())
        var trees = (try codecs.0.tree(of: table), try codecs.1.tree(of: table))
        for step in 0..<60 {
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let id = Int.random(in: 0..<30, using: &generator)
                let known = reference.firstIndex { $0.0 == id }
                switch Int.random(in: 0..<5, using: &generator) {
                case 0, 1:
                    table[id] = .init(name: "n\(step)")
                    if let known { reference[known].1 = "n\(step)" } else { reference.append((id, "n\(step)")) }
                case 2:
                    table[id] = nil
                    if let known { reference.remove(at: known) }
                case 3:
                    let position = Int.random(in: 0...max(0, reference.count - 1), using: &generator)
                    #expect(table.move(id, to: position) == (known != nil))
                    if let known { reference.insert(reference.remove(at: known), at: position) }
                default:
                    let position = Int.random(in: 0...reference.count, using: &generator)
                    guard known == nil else { continue }
                    table.insert(.init(name: "i\(step)"), id: id, at: position)
                    reference.insert((id, "i\(step)"), at: position)
                }
            }
            #expect(table.ids == reference.map(\.0), "seed \(seed)")
            #expect(table.map(\.entity.name) == reference.map(\.1), "seed \(seed)")

            var (entities, order) = (JSONPatch(), JSONPatch())
            var (oldEntities, oldOrder) = (trees.0.value, trees.1.value)
            let new = (try codecs.0.tree(of: table), try codecs.1.tree(of: table))
            try JSONTree.compare(trees.0, new.0, into: &entities)
            try JSONTree.compare(trees.1, new.1, into: &order)
            trees = new
            try oldEntities.apply(patch: JSONValue(parsing: entities.text))
            try oldOrder.apply(patch: JSONValue(parsing: order.text))
            #expect(oldEntities == trees.0.value, "seed \(seed)")
            #expect(oldOrder == trees.1.value, "seed \(seed)")
            #expect(trees.1.text == (try JSON.encode(table.ids)), "seed \(seed)")
        }
    }

    @Test("a hundred insertions at one position keep their order")
    func room() {
        var table = Table()
        table[1] = .init(name: "first")
        table[2] = .init(name: "last")
        for id in 3..<300 { table.insert(.init(name: ""), id: id, at: 1) }

        #expect(table.ids == [1] + (3..<300).reversed() + [2])
    }

    @Test(
        "insertions and moves to one position change a few ranks only, and their patches are exact",
        arguments: [1, 500, 998])
    func fewRanks(position: Int) throws {
        let codec = OrderCodec<Int, Sample.Item>()
        var table = Table()
        for id in 0..<1000 { table[id] = .init(name: "") }
        var ids = Array(0..<1000)
        var most = 0
        for step in 0..<300 {
            let before = table
            if step.isMultiple(of: 2) {
                table.insert(.init(name: ""), id: 1000 + step, at: position)
                ids.insert(1000 + step, at: position)
            } else {
                let id = ids.remove(at: (step * 37) % ids.count)
                ids.insert(id, at: position)
                table.move(id, to: position)
            }
            var changed = 0
            PersistentMap.visitDifferences(before.order, table.order) { _, _, _ in changed += 1 }
            most = max(most, changed)
            var patch = JSONPatch()
            let (old, new) = (try codec.tree(of: before), try codec.tree(of: table))
            try JSONTree.compare(old, new, into: &patch)
            var order = old.value
            try order.apply(patch: JSONValue(parsing: patch.text))
            #expect(order == new.value, "step \(step)")
        }

        #expect(table.ids == ids)
        #expect(most > 2)
        #expect(most < 260)
    }

    @Test("moves alone to one position keep the order of the others", arguments: [1, 50, 98, 99])
    func moves(position: Int) {
        var table = Table()
        for id in 0..<100 { table[id] = .init(name: "") }
        var ids = Array(0..<100)
        for step in 0..<500 {
            let id = ids.remove(at: (step * 37) % 100)
            ids.insert(id, at: position)
            table.move(id, to: position)
        }

        #expect(table.ids == ids)
    }

    @Test("a table encodes and decodes with its order")
    func codable() throws {
        var table = Table()
        for id in [5, 3, 9] { table[id] = .init(name: "\(id)") }
        table.move(9, to: 0)

        let decoded = try JSON.decode(Table.self, from: JSON.encode(table))

        #expect(decoded == table)
        #expect(decoded.ids == [9, 5, 3])
    }

    @Test("two spellings of one letter are two entities, and patches between them are exact")
    func spellings() throws {
        let (composed, decomposed) = ("\u{e9}", "e\u{301}")
        var table = EntityTable<String, Sample.Item>()
        table[composed] = .init(name: "one")
        let before = table
        table[decomposed] = .init(name: "two")
        table.move(decomposed, to: 0)
        table[composed] = .init(name: "changed")
        let (entities, order) = (EntitiesCodec<String, Sample.Item>(), OrderCodec<String, Sample.Item>())

        var (patch, orderPatch) = (JSONPatch(), JSONPatch())
        let (old, new) = (try entities.tree(of: before), try entities.tree(of: table))
        let (oldOrder, newOrder) = (try order.tree(of: before), try order.tree(of: table))
        try JSONTree.compare(old, new, into: &patch)
        try JSONTree.compare(oldOrder, newOrder, into: &orderPatch)
        var (value, ids) = (old.value, oldOrder.value)
        try value.apply(patch: JSONValue(parsing: patch.text))
        try ids.apply(patch: JSONValue(parsing: orderPatch.text))

        #expect(table.count == 2)
        #expect(value == new.value)
        #expect(ids == newOrder.value)
        #expect(text(try new.selected([decomposed, "name"]).bytes) == "\"two\"")
    }

    @Test("a balanced map stays balanced", arguments: [0, 1, 2])
    func balance(pattern: Int) {
        var map = PersistentMap<Int, Int>()
        for key in 0..<5000 { map.set(pattern == 0 ? key : pattern == 1 ? -key : key * 7919 % 5003, key) }
        for key in 0..<2500 { map.remove(pattern == 1 ? -key : key) }
        func depth(_ node: PersistentMap<Int, Int>.Node?) -> Int {
            node.map { max(depth($0.left), depth($0.right)) + 1 } ?? 0
        }

        #expect(depth(map.root) < 30)
    }
}
