import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Pointer sets")
struct PointerSetTests {
    @Test("random sets cover, overlap and find what a look at each pointer does", arguments: 0..<20)
    func model(seed: Int) {
        var generator = SplitMix(seed: UInt64(seed))
        func pointer(_ countMax: Int) -> JSONPointer {
            JSONPointer(
                (0..<Int.random(in: 0...countMax, using: &generator)).map { _ in
                    ["a", "b", "caf\u{E9}", "cafe\u{301}"].randomElement(using: &generator) ?? ""
                })
        }
        for _ in 0..<50 {
            let given = (0..<Int.random(in: 0...8, using: &generator)).map { _ in pointer(4) }
            let (set, path, changed) = (PointerSet(given), pointer(2), pointer(5))
            let outermost = given.filter { one in
                !given.contains { $0.tokens.count < one.tokens.count && $0.overlaps(one) }
            }
            let above = outermost.filter { $0.tokens.count <= changed.tokens.count && $0.overlaps(changed) }
            let around = outermost.filter { $0.overlaps(changed) }
            // A client that may not see the whole path sees changes of its parts of it only.
            let isWhole = outermost.contains { $0.tokens.count <= path.tokens.count && $0.overlaps(path) }
            let parts = isWhole ? [path] : outermost.filter { $0.overlaps(path) }

            #expect(set.covers(changed) == !above.isEmpty, "seed \(seed)")
            #expect(set.overlaps(changed) == !around.isEmpty, "seed \(seed)")
            #expect(Set(set.overlapping(changed)) == Set(around), "seed \(seed)")
            #expect(Set(set.pointers) == Set(outermost), "seed \(seed)")
            #expect(
                PointerFilter(path, in: set).overlaps(changed) == parts.contains { $0.overlaps(changed) },
                "seed \(seed)")
        }
    }

    @Test("filters are equal when they have the same path and the same parts, and all whole paths are whole")
    func equality() {
        let (one, same) = (PointerSet(["/a", "/b/c"]), PointerSet(["/a", "/a/d", "/b/c"]))

        #expect(one == same && one.hashValue == same.hashValue)
        #expect(PointerFilter("/b", in: one) == PointerFilter("/b", in: same))
        #expect(PointerFilter("/b", in: one) != PointerFilter("", in: one))
        #expect(PointerFilter("/b", in: one) != PointerFilter("/b", in: PointerSet(["/b/d"])))
        #expect(PointerFilter("/a/x", in: one) == PointerFilter("/a/x"))
        #expect(!PointerFilter.nothing.overlaps(.root))
    }
}
