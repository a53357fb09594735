import StateJSON
import TestSupport
import Testing

@testable import StateStore

@Suite("The size of the state")
struct StateSizeTests {
    @Test("a state over its limit takes what makes it smaller, and nothing that makes it larger")
    func limit() throws {
        var limits = StoreLimits()
        limits.stateBytesMax = 300
        let core = try Core.sample(limits: limits)
        var refused: Rejection?
        for id in 0..<20 where refused == nil {
            refused = core.rejection(of: Sample.Put(id: id, name: String(repeating: "n", count: 20)))
        }
        let size = try core.measured()

        #expect(refused?.code == "state-too-large" && refused?.kind == .tooLarge)
        #expect(size <= 300 && size > 200)
        #expect(core.rejection(of: Sample.Put(id: 1, name: "short")) == nil)
        #expect(core.rejection(of: Sample.Remove(id: 0)) == nil)
        #expect(core.rejection(of: Sample.Put(id: 0, name: "n")) == nil)
    }

    @Test("a store begins with a state over its limit")
    func beginning() throws {
        var state = Sample.State()
        for id in 0..<20 { state.items.table[id] = Sample.Item(name: "n") }
        var limits = StoreLimits()
        limits.stateBytesMax = 100
        let core = Core(
            domain: try CompiledDomain(Sample()), epoch: Core.sampleEpoch, middleware: [.validation],
            limits: limits, state: .of(state), version: 7, keys: [])

        #expect(core.rejection(of: Sample.Both(id: 1))?.code == "state-too-large")
        #expect(core.rejection(of: Sample.Remove(id: 3)) == nil)
        #expect(core.rejection(of: Sample.Add(amount: 1)) == nil, "the size stays")
    }

    @Test("the counted size is that of the JSON, but for commas", arguments: 1...8)
    func count(seed: Int) throws {
        var generator = SplitMix(seed: UInt64(seed))
        var limits = StoreLimits()
        limits.stateBytesMax = 1 << 20
        let core = try Core.sample(limits: limits)
        for _ in 0..<200 { _ = core.rejection(of: Sample.anything(using: &generator)) }

        let counted = try #require(core.latest.bytesCount)
        #expect(abs(try core.measured() - counted) <= 4, "seed \(seed)")
    }
}

@Suite("The memory of a state that is one tree")
struct StateMemoryTests {
    private struct Put: Action {
        static let type = "put"
        var value: JSONTree
    }

    private struct Tree: Domain {
        let initial: JSONTree
        var reducer: some Reducer<JSONTree> {
            JSONLayout(initial: initial, parts: nil)
            On(Put.self) { state, action in state = action.value }
        }
    }

    private static func numbers(_ count: Int) -> JSONTree { JSONTree(.array(Array(repeating: 0, count: count))) }

    private static func core(beginning count: Int, most: Int) throws -> Core {
        var limits = StoreLimits()
        limits.stateMemoryBytesMax = numbers(most).memoryBytes
        let domain = try CompiledDomain(Tree(initial: numbers(count)))
        return Core(
            domain: domain, epoch: .random(), middleware: [], limits: limits, state: domain.initial, version: 0,
            keys: [])
    }

    @Test("it has a bound, above which only what makes it smaller is committed")
    func limit() throws {
        let core = try Self.core(beginning: 500, most: 1000)
        let rejections = [1000, 1001, 900, 1002].map { count in
            core.turn([.of(Put(value: Self.numbers(count)))], at: Timestamp(milliseconds: 0)).outcomes[0].rejection
        }

        #expect(rejections.map { $0?.code } == [nil, "state-too-large", nil, "state-too-large"])
        #expect(rejections[1]?.kind == .tooLarge)
        #expect(rejections[1]?.detail.contains("state_memory_bytes_max") == true)
    }

    @Test("a state above it begins, and gets smaller step by step")
    func beginning() throws {
        let core = try Self.core(beginning: 3000, most: 1000)
        let codes = [3001, 3000, 2000, 2500, 400, 1000].map { count in
            core.turn([.of(Put(value: Self.numbers(count)))], at: Timestamp(milliseconds: 0)).outcomes[0].rejection?
                .code
        }

        #expect(codes == ["state-too-large", nil, nil, "state-too-large", nil, nil])
    }
}

extension Core {
    fileprivate func rejection(of action: any Action) -> Rejection? {
        guard case .rejected(let rejection, _)? = turn([.of(action)], at: Timestamp(milliseconds: 0)).outcomes.first
        else { return nil }
        return rejection
    }

    fileprivate func measured() throws -> Int { try domain.bytes(of: state).count }
}
