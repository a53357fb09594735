import TestSupport
import Testing

@testable import Showcase
@testable import StateStore

extension Canvas.Frame {
    static let unit = Canvas.Frame(x: 0, y: 0, width: 1, height: 1)
}

@Suite("Canvas")
struct CanvasTests {
    /// A store with so many objects on each block; object 11 is the second of block 1.
    func store(blocks: Int = 3, objectsEach: Int = 4) throws -> Store<Canvas.State> {
        let store = try Store(Canvas())
        for block in 0..<blocks {
            try store.dispatch(Canvas.AddBlock(id: block, frame: .unit))
            for object in 0..<objectsEach {
                try store.dispatch(Canvas.AddObject(id: block * 10 + object, block: block, frame: .unit))
            }
        }
        return store
    }

    @Test("moving one object touches that object and nothing else")
    func move() throws {
        let store = try store()
        let commits = Collection<Commit>()
        let token = store.subscribe(
            changesOf: { $0.select(\.objects) }, notify: { if let commit = $0.commit { commits.add(commit) } })

        try store.dispatch(Canvas.MoveObject(id: 11, x: 5, y: 0))
        try store.dispatch(Canvas.MoveObject(id: 11, x: 6, y: 7))

        let changedPointers = commits.values.map { $0.changedPointers.map { "\($0)" } }
        #expect(changedPointers == [["/objects/11/frame/x"], ["/objects/11/frame/x", "/objects/11/frame/y"]])
        #expect(store.state.objects[11]?.frame == .init(x: 6, y: 7, width: 1, height: 1))
        withExtendedLifetime(token) {}
    }

    @Test("a block takes its objects with it, and only those")
    func removeBlock() throws {
        let store = try store()

        try store.dispatch(Canvas.RemoveBlock(id: 1))

        #expect(store.state.blocks.ids == [0, 2])
        #expect(store.state.objects.ids == [0, 1, 2, 3, 20, 21, 22, 23])
        #expect(store.state.neighbours.count == 8)
        #expect(store.view("summary", as: Canvas.Summary.self) == .init(blocks: 2, objects: 8))
    }

    @Test("an update changes what it names: an empty label is none")
    func update() throws {
        let store = try store()

        try store.dispatch(Canvas.UpdateObject(id: 2, label: "a"))
        #expect(store.state.objects[2] == .init(frame: .unit, block: 0, label: "a"))
        try store.dispatch(Canvas.UpdateObject(id: 2, frame: .init(x: 1, y: 2, width: 3, height: 4), label: ""))

        #expect(store.state.objects[2] == .init(frame: .init(x: 1, y: 2, width: 3, height: 4), block: 0))
    }

    @Test("what is not there is unknown, what is there is a duplicate")
    func conflicts() throws {
        let store = try store()
        let expected: [(any Action, String)] = [
            (Canvas.AddBlock(id: 1, frame: .unit), "canvas.duplicate-block"),
            (Canvas.MoveBlock(id: 9, x: 0, y: 0), "canvas.unknown-block"),
            (Canvas.ResizeBlock(id: 9, width: 1, height: 1), "canvas.unknown-block"),
            (Canvas.RemoveBlock(id: 9), "canvas.unknown-block"),
            (Canvas.AddObject(id: 1, block: 1, frame: .unit), "canvas.duplicate-object"),
            (Canvas.AddObject(id: 99, block: 9, frame: .unit), "canvas.unknown-block"),
            (Canvas.UpdateObject(id: 99), "canvas.unknown-object"),
            (Canvas.MoveObject(id: 99, x: 0, y: 0), "canvas.unknown-object"),
            (Canvas.RemoveObject(id: 99), "canvas.unknown-object"),
        ]
        for (action, code) in expected {
            let rejection = try store.rejection(of: action)
            #expect(rejection?.code == code && rejection?.kind == .conflict)
        }
    }

    @Test("numbers have to be finite and sizes not negative", arguments: [Double.nan, .infinity, -.infinity, -1])
    func numbers(number: Double) throws {
        let store = try store()

        let sizes = try store.rejection(of: Canvas.ResizeBlock(id: 1, width: 1, height: number))
        let place = try store.rejection(of: Canvas.MoveObject(id: 1, x: number, y: 0))
        let frame = try store.rejection(
            of: Canvas.AddObject(id: 99, block: 1, frame: .init(x: 0, y: 0, width: number, height: 0)))

        #expect(sizes?.pointer == "/height" && sizes?.kind == .invalid)
        #expect(place?.pointer == (number == -1 ? nil : "/x"))
        #expect(frame?.pointer == "/frame/width")
    }

    @Test("after any actions each block's chain has its objects, newest first", arguments: 1...5)
    func chains(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        let store = try Store(Canvas())
        var expected: [Int: [Int]] = [:]
        for _ in 0..<400 {
            let id = Int.random(in: 0..<30, using: &generator)
            let block = Int.random(in: 0..<3, using: &generator)
            switch Int.random(in: 0..<10, using: &generator) {
            case 0: if try store.rejection(of: Canvas.AddBlock(id: block, frame: .unit)) == nil { expected[block] = [] }
            case 1 where id < 5:
                if try store.rejection(of: Canvas.RemoveBlock(id: block)) == nil { expected[block] = nil }
            case 2...6:
                if try store.rejection(of: Canvas.AddObject(id: id, block: block, frame: .unit)) == nil {
                    expected[block]?.insert(id, at: 0)
                }
            default:
                if try store.rejection(of: Canvas.RemoveObject(id: id)) == nil {
                    for block in expected.keys { expected[block]?.removeAll { $0 == id } }
                }
            }
        }

        let state = store.state
        for (block, objects) in expected {
            var found: [Int] = []
            var next = state.blocks[block]?.newest
            while let id = next, found.count <= 30 {
                found.append(id)
                next = state.neighbours[id]?.older
            }
            #expect(found == objects, "block \(block), seed \(seed)")
            #expect(objects.allSatisfy { state.objects[$0]?.block == block })
        }
        #expect(Set(state.blocks.ids) == Set(expected.keys))
        #expect(state.objects.count == expected.values.reduce(0) { $0 + $1.count })
        #expect(state.neighbours.count == state.objects.count)
    }
}
