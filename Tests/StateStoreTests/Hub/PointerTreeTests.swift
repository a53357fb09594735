import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Pointer trees")
struct PointerTreeTests {
    private static let places: [JSONPointer] = ["", "/a", "/a/b", "/a/b/c", "/a/c", "/b", "/ab", "/a~1b", "/"]

    @Test("removing an element that was not inserted changes nothing")
    func removalOfNothing() {
        var tree = PointerTree<Int>()
        tree.insert(1, at: "/a/b")

        tree.remove(2, at: "/a/b")
        tree.remove(1, at: "/a")
        tree.remove(1, at: "/x/y")
        var found: Set<Int> = []
        tree.collect(overlapping: "/a/b/c", into: &found)

        #expect(found == [1])
    }

    @Test("tokens that are equal as Swift strings are two tokens where their bytes differ")
    func canonicallyEquivalent() {
        var tree = PointerTree<Int>()
        tree.insert(1, at: "/caf\u{E9}")
        tree.insert(2, at: "/cafe\u{301}")

        var found: Set<Int> = []
        tree.collect(overlapping: "/cafe\u{301}", into: &found)

        #expect(found == [2])
    }

    @Test("random insertions are found as a linear search finds them", arguments: 0..<20)
    func model(seed: Int) {
        var generator = SplitMix(seed: UInt64(seed))
        func place() -> JSONPointer {
            JSONPointer(
                (0..<Int.random(in: 0...(seed.isMultiple(of: 2) ? 3 : 6), using: &generator)).map { _ in
                    ["a", "b", "0"].prefix(1 + seed % 3).randomElement(using: &generator) ?? ""
                })
        }
        var tree = PointerTree<Int>()
        var filed: [Int: JSONPointer] = [:]
        for step in 0..<300 {
            if Bool.random(using: &generator), let (element, pointer) = filed.randomElement(using: &generator) {
                tree.remove(element, at: pointer)
                filed[element] = nil
            } else {
                filed[step] = place()
                tree.insert(step, at: filed[step] ?? .root)
            }
            let changed = place()
            var found: Set<Int> = []
            tree.collect(overlapping: changed, into: &found)
            #expect(found == Set(filed.filter { $0.value.overlaps(changed) }.keys), "seed \(seed)")
            #expect(tree.nodesCount <= 2 * Set(filed.values).count + 1, "seed \(seed)")
        }
    }

    @Test("the tree has at most two nodes for each element, however long the pointers are", arguments: [true, false])
    func nodes(sharesBeginning: Bool) {
        var tree = PointerTree<Int>()
        func pointer(_ number: Int) -> JSONPointer {
            let long = Array(repeating: "a", count: 900)
            return JSONPointer(["value"] + (sharesBeginning ? long + ["\(number)"] : ["\(number)"] + long))
        }

        for number in 0..<100 { tree.insert(number, at: pointer(number)) }
        #expect(tree.nodesCount <= 201)
        for number in 1..<100 { tree.remove(number, at: pointer(number)) }
        #expect(tree.nodesCount == 2)
        tree.remove(0, at: pointer(0))
        #expect(tree.nodesCount == 1)
    }
}
