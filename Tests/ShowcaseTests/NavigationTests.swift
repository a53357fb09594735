import Testing

@testable import Showcase
@testable import StateStore

@Suite("Navigation")
struct NavigationTests {
    @Test("going to another route says what is kept, left and entered")
    func transition() throws {
        let store = try Store(Navigation())
        try store.dispatch(Navigation.Set(route: ["home", "films", "4"]))

        try store.dispatch(Navigation.Set(route: ["home", "tasks", "4"]))

        #expect(store.state.route == ["home", "tasks", "4"])
        #expect(store.state.transition == .init(kept: 1, popped: ["films", "4"], pushed: ["tasks", "4"]))
    }

    @Test("a push and a pop are transitions of one segment")
    func steps() throws {
        let store = try Store(Navigation())

        try store.dispatch(Navigation.Push(segment: "home"))
        #expect(store.state.transition == .init(kept: 0, popped: [], pushed: ["home"]))
        try store.dispatch(Navigation.Pop())

        #expect(store.state.route.isEmpty)
        #expect(store.state.transition == .init(kept: 0, popped: ["home"], pushed: []))
    }

    @Test("two spellings of one letter are different segments, as they are in JSON")
    func spellings() throws {
        let store = try Store(Navigation())
        try store.dispatch(Navigation.Set(route: ["\u{E9}"]))

        try store.dispatch(Navigation.Set(route: ["e\u{301}"]))

        #expect(store.state.transition.kept == 0)
    }

    @Test("there is nothing before the first segment and nothing below the deepest")
    func ends() throws {
        let store = try Store(Navigation())
        #expect(try store.rejection(of: Navigation.Pop())?.code == "navigation.empty")

        let deepest = Array(repeating: "a", count: 100)
        #expect(try store.rejection(of: Navigation.Set(route: deepest)) == nil)
        #expect(try store.rejection(of: Navigation.Push(segment: "a"))?.code == "navigation.depth")
        let tooDeep = try store.rejection(of: Navigation.Set(route: deepest + ["a"]))

        #expect(tooDeep?.kind == .invalid)
        #expect(store.state.route == deepest)
    }

    @Test("a segment has 1 to 200 bytes", arguments: [(0, false), (1, true), (200, true), (201, false)])
    func segments(count: Int, isTaken: Bool) throws {
        let store = try Store(Navigation())
        let segment = String(repeating: "a", count: count)

        let pushed = try store.rejection(of: Navigation.Push(segment: segment))
        let set = try store.rejection(of: Navigation.Set(route: ["a", segment]))

        #expect(pushed?.pointer == (isTaken ? nil : "/segment"))
        #expect(set?.pointer == (isTaken ? nil : "/route/1"))
    }
}
