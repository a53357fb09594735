import Testing

@testable import StateJSON
@testable import StateStore

/// The calls of a pass, by the selection.
extension SelectionIndex {
    fileprivate func watches(at selection: Selection) -> Set<Watch.ID> { self[selection].map(watches(at:)) ?? [] }

    fileprivate mutating func endEncoding(
        _ selection: Selection, _ encoded: Encoded?, at version: Version
    ) -> [Watch.ID] {
        self[selection].map { endEncoding($0, encoded, at: version) } ?? []
    }

    fileprivate mutating func endComparing(_ selection: Selection) {
        if let found = self[selection] { endComparing(found) }
    }
}

@Suite("Selection index")
struct SelectionIndexTests {
    private static let counter = Selection.pointer("/counter")
    private static let old = Encoded(Array("1".utf8))
    private static let new = Encoded(Array("2".utf8))

    @Test("the cached values of unwatched selections are bounded, and those of watched ones are kept")
    func bounded() {
        var index = SelectionIndex(viewReads: [:])
        index.insert(1, at: Self.counter)
        index.note(Self.old, for: Self.counter)

        for number in 0..<10_000 { index.note(Self.old, for: .pointer(JSONPointer(["idle", "\(number)"]))) }

        let kept = (0..<10_000).count { index.encoded(.pointer(JSONPointer(["idle", "\($0)"]))) != nil }
        #expect((1...4097).contains(kept))
        #expect(index.watches(at: Self.counter) == [1])
        #expect(index.encoded(Self.counter) != nil)
    }

    @Test("the value that was cached longest ago is dropped at the limit, and one that is watched stays")
    func oldest() {
        var index = SelectionIndex(viewReads: [:], idleCountMax: 2)
        func selection(_ number: Int) -> Selection { .pointer(JSONPointer(["\(number)"])) }
        index.note(Self.old, for: selection(0))
        index.insert(1, at: selection(0))
        for number in 1...4 { index.note(Self.old, for: selection(number)) }
        #expect((0...4).map { index[selection($0)] != nil } == [true, false, false, true, true])

        // A value that nothing watches any more is the newest one to drop.
        index.remove(1, at: selection(0))
        #expect((0...4).map { index[selection($0)] != nil } == [true, false, false, false, true])
        // One that is used again and again is not dropped for it.
        for _ in 1...5 {
            index.insert(1, at: selection(0))
            index.remove(1, at: selection(0))
        }
        #expect(index[selection(0)] != nil)
        for number in 5...6 { index.note(Self.old, for: selection(number)) }
        #expect((0...6).map { index[selection($0)] != nil } == [false, false, false, false, false, true, true])
    }

    @Test("large values of watched selections share one room, small ones stay, and so do the tags of all")
    func largeWatched() {
        var index = SelectionIndex(viewReads: [:], idleBytesMax: 250_000)
        let large = Encoded([UInt8](repeating: 49, count: 100_000))
        func selection(_ number: Int) -> Selection { .pointer(JSONPointer(["\(number)"])) }
        func encode(_ number: Int, _ value: Encoded, at version: Version) {
            index.invalidate(changing: [JSONPointer(["\(number)"])], at: version)
            _ = index.beginEncoding()
            _ = index.endEncoding(selection(number), value, at: version)
            index.endComparing(selection(number))
        }
        for number in 1...10 {
            index.insert(1, at: selection(number))
            encode(number, number % 2 == 0 ? Self.old : large, at: Version(number))
        }
        #expect((1...10).filter { index.encoded(selection($0)) != nil } == [2, 4, 6, 7, 8, 9, 10])
        #expect((1...10).allSatisfy { index.tag(selection($0)) == ($0 % 2 == 0 ? Self.old : large).tag })

        // One that changes often takes its own room only.
        for version in 11...100 { encode(9, large, at: Version(version)) }
        #expect(index.encoded(selection(7)) != nil)
        index.invalidate(changing: ["/7"], at: 101)
        #expect(index.tag(selection(7)) == nil)
    }

    @Test("a value that is larger than all may be stays until another one comes")
    func large() {
        var index = SelectionIndex(viewReads: [:], idleBytesMax: 0)
        index.note(Self.old, for: Self.counter)
        #expect(index.encoded(Self.counter) != nil)
        index.note(Self.old, for: .pointer("/other"))
        #expect(index.encoded(Self.counter) == nil)
        #expect(index.encoded(.pointer("/other")) != nil)
    }

    @Test("values that many selections had while they were watched do not pile up")
    func watchedOnce() {
        var index = SelectionIndex(viewReads: [:], idleCountMax: 10)
        for number in 1...1000 {
            let selection = Selection.pointer(JSONPointer(["\(number)"]))
            index.insert(1, at: selection)
            index.invalidate(changing: [JSONPointer(["\(number)"])], at: Version(number))
            _ = index.beginEncoding()
            _ = index.endEncoding(selection, Self.new, at: Version(number))
            index.endComparing(selection)
            index.remove(1, at: selection)
        }
        #expect((1...1000).count { index[.pointer(JSONPointer(["\($0)"]))] != nil } == 10)
    }
}
