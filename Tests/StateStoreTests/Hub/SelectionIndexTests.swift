import Testing

@testable import StateJSON
@testable import StateStore

/// The calls of a pass, by the selection.
extension SelectionIndex {
    fileprivate var dirtySelections: Set<Selection> { Set(dirty.map(\.selection)) }

    fileprivate func watches(at selection: Selection) -> Set<Watch.ID> { self[selection].map(watches(at:)) ?? [] }

    fileprivate mutating func encodingSelections() -> Set<Selection> { Set(beginEncoding().map(\.selection)) }

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

    private func index(viewReads: [String: [JSONPointer]] = [:]) -> SelectionIndex { .init(viewReads: viewReads) }

    @Test(
        "a changed pointer finds the watched selections that overlap it",
        arguments: ["", "/counter", "/counter/value"] as [JSONPointer])
    func changedPointers(pointer: JSONPointer) {
        var index = index()
        index.insert(1, at: Self.counter)
        index.insert(2, at: .pointer("/tasks"))

        index.invalidate(changing: [pointer], at: 1)

        #expect(index.dirtySelections.contains(Self.counter))
        #expect(index.dirtySelections.contains(.pointer("/tasks")) == pointer.tokens.isEmpty)
    }

    @Test("a view is found by the pointers that it reads, and a view without them by every pointer")
    func views() {
        var index = index(viewReads: ["open": ["/tasks/entities", "/tasks/ids"]])
        index.insert(1, at: .view("open"))
        index.insert(2, at: .view("all"))

        index.invalidate(changing: ["/tasks/ids/0"], at: 1)
        #expect(index.encodingSelections() == [.view("open"), .view("all")])
        index.invalidate(changing: ["/counter"], at: 1)
        #expect(index.encodingSelections() == [.view("all")])
    }

    @Test("a value is compared once, and an older value than the last is not compared")
    func order() {
        var index = index()
        index.insert(1, at: Self.counter)
        index.invalidate(changing: ["/counter"], at: 1)
        _ = index.beginEncoding()

        #expect(index.endEncoding(Self.counter, Self.new, at: 7) == [1])
        #expect(index.endEncoding(Self.counter, Self.old, at: 6) == [])
        #expect(index.encoded(Self.counter)?.tag == Self.new.tag)
    }

    @Test("a value that has changed while it was encoded is not current")
    func changedMeanwhile() {
        var index = index()
        index.insert(1, at: Self.counter)
        index.invalidate(changing: ["/counter"], at: 1)
        _ = index.beginEncoding()
        index.invalidate(changing: ["/counter"], at: 2)
        // A pass takes the second change before the first encoding has ended.
        _ = index.beginEncoding()

        let compared = index.endEncoding(Self.counter, Self.old, at: 1)
        index.endComparing(Self.counter)

        #expect(compared == [1])
        #expect(index.encoded(Self.counter) == nil)
        #expect(index.isPending(Self.counter))
    }

    @Test("the cached value of an unwatched selection is kept until it may have changed")
    func idle() {
        var index = index()
        index.note(Self.old, for: Self.counter)

        #expect(index.encoded(Self.counter)?.tag == Self.old.tag)
        index.invalidate(changing: ["/counter/value"], at: 1)
        #expect(index.encoded(Self.counter) == nil)
        #expect(index.dirty.isEmpty)
    }

    @Test("the cached values of unwatched selections are bounded, and those of watched ones are kept")
    func bounded() {
        var index = index()
        index.insert(1, at: Self.counter)
        index.note(Self.old, for: Self.counter)

        for number in 0..<10_000 { index.note(Self.old, for: .pointer(JSONPointer(["idle", "\(number)"]))) }

        let kept = (0..<10_000).count { index.encoded(.pointer(JSONPointer(["idle", "\($0)"]))) != nil }
        #expect((1...4097).contains(kept))
        #expect(index.watches(at: Self.counter) == [1])
        #expect(index.encoded(Self.counter) != nil)
    }

    @Test("removing the last watch of a selection removes the selection")
    func leave() {
        var index = index()
        index.insert(1, at: Self.counter)
        index.insert(2, at: Self.counter)

        index.remove(1, at: Self.counter)
        index.invalidate(changing: ["/counter"], at: 1)
        #expect(index.dirtySelections == [Self.counter])
        index.remove(2, at: Self.counter)

        #expect(index.dirty.isEmpty)
        index.invalidate(changing: [.root], at: 1)
        #expect(index.dirty.isEmpty)
    }

    @Test("two spellings of one accented key are two selections")
    func spelling() {
        var index = index()
        index.note(Self.old, for: .pointer(JSONPointer(["\u{E9}"])))

        #expect(index.encoded(.pointer(JSONPointer(["e\u{301}"]))) == nil)
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

@Suite("Version index")
struct VersionIndexTests {
    @Test("the watches of a version and of older ones are reached together, in the order of their IDs")
    func reached() {
        var index = VersionIndex()
        index.insert(3, at: 5)
        index.insert(1, at: 7)
        index.insert(2, at: 5)
        index.insert(4, at: 8)
        index.remove(3, at: 5)

        #expect(!index.isReached(4))
        #expect(index.isReached(5))
        #expect(index.takeReached(7) == [1, 2])
        #expect(!index.isReached(7))
        #expect(index.takeReached(8) == [4])
    }
}
