import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Recovery")
struct RecoveryTests {
    @Test("applying all patches to the initial state makes the state", arguments: 0..<30)
    func replay(seed: Int) throws {
        var generator = SplitMix(seed: UInt64(seed))
        let core = try Core.sample()
        var value = try JSONValue(parsing: Array(core.json()!.utf8))
        for _ in 0..<80 {
            let id = Int.random(in: 0..<12, using: &generator)
            let action: any Action =
                [
                    Sample.Add(amount: id - 5), Sample.Put(id: id, name: "n\(id)"), Sample.Remove(id: id),
                    Sample.Move(id: id, position: id / 2), Sample.Both(id: id),
                ].randomElement(using: &generator)!
            for commit in core.run(action).commits { try value.apply(patch: JSONValue(parsing: commit.patch)) }
        }

        #expect(value == (try JSONValue(parsing: Array(core.json()!.utf8))), "seed \(seed)")
        let state = try core.domain.state(from: value.text)
        #expect(text(try core.domain.bytes(of: state)) == (try core.json()))
    }

    @Test("a member that the domain does not declare is refused with its pointer")
    func unknownMember() throws {
        let model = try CompiledDomain(Sample())

        #expect(throws: JSONFault.self) { try model.state(from: Array(#"{"films":{}}"#.utf8)) }
    }
}
