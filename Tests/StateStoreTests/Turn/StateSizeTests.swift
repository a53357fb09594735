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
        var core = try Core<Sample.State>.sample(limits: limits)
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
        var core = Core(
            domain: try CompiledDomain(Sample()), epoch: Core<Sample.State>.epoch, middleware: [.validation],
            limits: limits, state: state, version: 7, keys: [])

        #expect(core.rejection(of: Sample.Both(id: 1))?.code == "state-too-large")
        #expect(core.rejection(of: Sample.Remove(id: 3)) == nil)
        #expect(core.rejection(of: Sample.Add(amount: 1)) == nil, "the size stays")
    }

    @Test("the counted size is that of the JSON, but for commas", arguments: 1...8)
    func count(seed: Int) throws {
        var generator = SplitMix(seed: UInt64(seed))
        var limits = StoreLimits()
        limits.stateBytesMax = 1 << 20
        var core = try Core<Sample.State>.sample(limits: limits)
        for _ in 0..<200 { _ = core.rejection(of: Sample.anything(using: &generator)) }

        let counted = try #require(core.latest.bytesCount)
        #expect(abs(try core.measured() - counted) <= 4, "seed \(seed)")
    }
}

extension Core where State == Sample.State {
    fileprivate mutating func rejection(of action: any Action) -> Rejection? {
        guard case .rejected(let rejection, _)? = turn([.of(action)], at: Timestamp(milliseconds: 0)).outcomes.first
        else { return nil }
        return rejection
    }

    fileprivate func measured() throws -> Int { try domain.bytes(of: state).count }
}
