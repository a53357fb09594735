import TestSupport
import Testing

@testable import Showcase
@testable import StateStore

@Suite("Showcase")
struct ShowcaseTests {
    @Test("a facet of the whole state is a view")
    func facet() throws {
        let store = try Store(Showcase())

        try store.dispatch(Counter.Add(amount: 7))

        #expect(store.view("count", as: [String: Int].self) == ["count": 7])
    }

    @Test("the views of slices have the slice's name before their own")
    func views() throws {
        let store = try Store(Showcase())
        try store.dispatch(Canvas.AddBlock(id: 1, frame: .unit))

        #expect(store.view("canvas.summary", as: Canvas.Summary.self) == .init(blocks: 1, objects: 0))
    }

    @Test("a sum that 64 bits do not hold is rejected")
    func overflow() throws {
        let store = try Store(Counter())
        try store.dispatch(Counter.Add(amount: .max))

        #expect(try store.rejection(of: Counter.Add(amount: 1))?.code == "counter.overflow")
        #expect(store.state.value == .max)
    }

    @Test("no action traps, and what is rejected changes nothing", arguments: 1...5)
    func anything(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        let store = try Store(Showcase())
        for _ in 0..<600 {
            let before = try store.json()

            let rejection = try store.rejection(of: Self.anything(using: &generator))

            if rejection != nil { #expect(try store.json() == before, "seed \(seed)") }
        }
    }

    private static func anything(using generator: inout SplitMix) -> any Action {
        let integers = [0, 1, 2, 3, -1, Int.max, Int.min]
        let texts = ["", " ", "a", "e\u{301}", String(repeating: "x", count: 201), String(repeating: "y", count: 1001)]
        let numbers = [0, 1, -1, 0.5, .nan, .infinity, Double.greatestFiniteMagnitude]
        func integer() -> Int { integers.randomElement(using: &generator) ?? 0 }
        func text() -> String { texts.randomElement(using: &generator) ?? "" }
        func number() -> Double { numbers.randomElement(using: &generator) ?? 0 }
        func frame() -> Canvas.Frame { .init(x: number(), y: number(), width: number(), height: number()) }
        let actions: [any Action] = [
            Counter.Add(amount: integer()), Counter.Reset(),
            Navigation.Set(route: (0..<max(0, min(integer(), 120))).map { _ in "a" }),
            Navigation.Push(segment: text()), Navigation.Pop(),
            Session.Login(user: text()), Session.Succeed(tokenID: text()), Session.Fail(reason: text()),
            Session.Logout(),
            Tasks.Add(id: integer(), title: text()), Tasks.Move(id: integer(), position: integer()),
            Tasks.Remove(id: integer()), Tasks.Complete(id: integer()), Tasks.Favourite(id: integer()),
            Canvas.AddBlock(id: integer(), frame: Bool.random(using: &generator) ? .unit : frame()),
            Canvas.MoveBlock(id: integer(), x: number(), y: number()),
            Canvas.ResizeBlock(id: integer(), width: number(), height: number()),
            Canvas.RemoveBlock(id: integer()),
            Canvas.AddObject(id: integer(), block: integer(), frame: .unit, label: text()),
            Canvas.UpdateObject(id: integer(), frame: frame(), label: text()),
            Canvas.MoveObject(id: integer(), x: number(), y: number()), Canvas.RemoveObject(id: integer()),
            Films.Set(films: [Film(title: text(), director: text(), episode: integer())]),
            Films.Fail(reason: text()), Films.Cancel(),
        ]
        return actions.randomElement(using: &generator) ?? Counter.Reset()
    }
}
