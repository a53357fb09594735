import MicroHTTP
import StateJSON
import Testing

@testable import StateServer
@testable import StateStore

@Suite("The states of past versions")
struct PastStatesTests {
    private final class Past: AnySnapshot {
        let cursor: Cursor

        init(_ version: Version) { cursor = Cursor(Stage.epoch, version) }

        func selected(_ selection: Selection, countMax: Int) throws -> SelectedValue { .nothing }
    }

    private func text(_ count: Int) -> [UInt8] { [UInt8](repeating: 0x20, count: count) }

    @Test("the last state is there as it was made, as long as there is room for it")
    func last() {
        let memory = MemoryBudget(bytesMax: 8000)
        let states = PastStates(memory)
        states.keep(Past(3), as: text(10))
        states.keep(Past(7), as: text(20))

        #expect(states.last(at: 7)?.cursor.version == 7 && states.last(at: 3) == nil)
        #expect(states.newest(from: 1, to: 9)?.text == text(20))
        #expect(memory.reserve(7970))
        states.keep(Past(8), as: text(100))
        #expect(states.last(at: 8) == nil && states.newest(from: 1, to: 9) == nil)
    }

    @Test("the newest state of a range is found, and one before it is not")
    func newest() {
        let states = PastStates(MemoryBudget(bytesMax: 8000))
        for version: Version in [3, 7, 9] { states.keep(Past(version), as: text(10)) }

        #expect(states.newest(from: 1, to: 8)?.version == 7)
        #expect(states.newest(from: 7, to: 7)?.version == 7)
        #expect(states.newest(from: 4, to: 6) == nil)
    }

    @Test("the state that was used longest ago is dropped where there is no room")
    func room() {
        let memory = MemoryBudget(bytesMax: 8000)
        let states = PastStates(memory)
        for version: Version in [1, 2] { states.keep(Past(version), as: text(400)) }
        _ = states.newest(from: 1, to: 1)

        states.keep(Past(3), as: text(400))

        #expect(states.newest(from: 1, to: 1) != nil && states.newest(from: 2, to: 2) == nil)
        #expect(memory.bytes == 800)

        states.keep(Past(4), as: text(600))
        #expect(states.newest(from: 4, to: 4) == nil, "one state has half of the room at most")
    }

    @Test("what clients send comes before kept states")
    func pressure() {
        let memory = MemoryBudget(bytesMax: 8000)
        let states = PastStates(memory)
        states.keep(Past(1), as: text(400))
        #expect(memory.reserve(7500))

        states.keep(Past(2), as: text(400))

        #expect(memory.bytes == 7900 && states.newest(from: 1, to: 9)?.version == 2)
        memory.release(7500)
        #expect(memory.reserve(7600) && !memory.reserve(1))
        states.keep(Past(3), as: text(450))
        #expect(states.newest(from: 1, to: 9) == nil && memory.bytes == 7600)
    }
}
