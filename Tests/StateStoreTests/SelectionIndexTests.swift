import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Selection index")
struct SelectionIndexTests {
    private static let counter = Selection.pointer("/counter")
    private static let old = Encoded(Array("1".utf8))
    private static let new = Encoded(Array("2".utf8))

    private func index(viewReads: [String: [JSONPointer]] = [:]) -> SelectionIndex { .init(viewReads: viewReads) }

    @Test(
        "a change finds the selections that overlap it", arguments: ["", "/counter", "/counter/value"] as [JSONPointer])
    func touched(pointer: JSONPointer) {
        var index = index()
        index.park(1, at: Self.counter, until: .otherThan(.any))
        index.park(2, at: .pointer("/tasks"), until: .otherThan(.any))

        let found = index.selections(touchedBy: [pointer])

        #expect(found.contains(Self.counter))
        #expect(found.contains(.pointer("/tasks")) == pointer.tokens.isEmpty)
    }

    @Test("a view is found by what it reads, and one that says nothing by everything")
    func views() {
        var index = index(viewReads: ["open": ["/tasks/entities", "/tasks/ids"]])
        index.park(1, at: .view("open"), until: .otherThan(.any))
        index.park(2, at: .view("all"), until: .otherThan(.any))

        #expect(index.selections(touchedBy: ["/tasks/ids/0"]) == [.view("open"), .view("all")])
        #expect(index.selections(touchedBy: ["/counter"]) == [.view("all")])
    }

    @Test("only those whose content it is not any more are taken out")
    func settle() {
        var index = index()
        index.park(1, at: Self.counter, until: .otherThan(.tags([Self.old.tag])))
        index.park(2, at: Self.counter, until: .otherThan(.tags([Self.old.tag, Self.new.tag])))
        index.park(3, at: Self.counter, until: .otherThan(.any))

        let woken = index.settle(Self.counter, Self.new)

        #expect(woken == [1])
        #expect(index.isAwaited(Self.counter))
        #expect(index.encoded(Self.counter)?.tag == Self.new.tag)
    }

    @Test("what is gone takes everybody out and leaves nothing behind")
    func vanished() {
        var index = index()
        index.park(1, at: Self.counter, until: .otherThan(.tags([Self.old.tag])))
        index.park(2, at: Self.counter, until: .otherThan(.any))

        let woken = index.settle(Self.counter, nil)

        #expect(Set(woken) == [1, 2])
        #expect(index.selections(touchedBy: [.root]).isEmpty)
    }

    @Test("a value that nobody waits for is kept until it may have changed")
    func idle() {
        var index = index()
        index.note(Self.old, for: Self.counter)

        #expect(index.encoded(Self.counter)?.tag == Self.old.tag)
        index.forget(Self.counter)
        #expect(index.encoded(Self.counter) == nil)
        #expect(index.selections(touchedBy: [.root]).isEmpty)
    }

    @Test("the values that nobody waits for are bounded in number, those waited for are kept")
    func bounded() {
        var index = index()
        index.park(1, at: Self.counter, until: .otherThan(.any))
        index.note(Self.old, for: Self.counter)

        for number in 0..<10_000 { index.note(Self.old, for: .pointer(JSONPointer(["idle", "\(number)"]))) }

        #expect(index.selections(touchedBy: [.root]).count <= 4098)
        #expect(index.isAwaited(Self.counter))
    }

    @Test("the last waiter to leave takes its selection along")
    func leave() {
        var index = index()
        index.park(1, at: Self.counter, until: .otherThan(.any))
        index.park(2, at: Self.counter, until: .otherThan(.any))

        index.remove(1, at: Self.counter)
        #expect(index.isAwaited(Self.counter))
        index.remove(2, at: Self.counter)

        #expect(index.selections(touchedBy: [.root]).isEmpty)
    }

    @Test("two spellings of one accented key are two selections")
    func spelling() {
        var index = index()
        index.note(Self.old, for: .pointer(JSONPointer(["\u{E9}"])))

        #expect(index.encoded(.pointer(JSONPointer(["e\u{301}"]))) == nil)
    }
}
