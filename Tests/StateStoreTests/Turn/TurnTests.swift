import Testing

@testable import StateJSON
@testable import StateStore

@Suite("The turn")
struct TurnTests {
    @Test("each action is one version, and its commit has the patch")
    func versions() throws {
        let core = try Core.sample()

        let turn = core.run(Sample.Add(amount: 2), Sample.Put(id: 7, name: "a"), Sample.Add(amount: 0))

        #expect(turn.commits.map(\.version) == [1, 2, 3])
        #expect(turn.commits.map(\.isChange) == [true, true, false])
        #expect(text(turn.commits[0].patch) == #"[{"op":"replace","path":"/count/value","value":2}]"#)
        #expect(
            text(turn.commits[1].patch)
                == #"[{"op":"add","path":"/items/entities/7","value":{"name":"a","size":0}},{"op":"add","path":"/items/ids/0","value":7}]"#
        )
        #expect(text(turn.commits[1].action) == #"{"type":"items/put","payload":{"id":7,"name":"a"}}"#)
        #expect(turn.commits[2].id == "aaaaaaaaaaaaaaaa.3")
        #expect(
            try core.json()
                == #"{"count":{"value":2},"items":{"entities":{"7":{"name":"a","size":0}},"ids":[7],"marked":[]}}"#)
    }

    @Test("a batch is all or nothing, and one version")
    func batch() throws {
        let core = try Core.sample()

        let bad = core.run([.of(Sample.Add(amount: 5), Sample.Add(amount: -9), form: .batch)])
        let good = core.run([.of(Sample.Add(amount: 5), Sample.Put(id: 1, name: "x"), form: .batch)])

        guard case .rejected(_, index: 1) = bad.outcomes[0] else { Issue.record("\(bad.outcomes)"); return }
        #expect(bad.commits.isEmpty)
        #expect(good.commits.map(\.version) == [1])
        #expect(text(good.commits[0].action)?.hasPrefix(#"[{"type":"count/add""#) == true)
        #expect(try core.json("/count/value") == "5")
    }

    @Test("an action that several slices handle changes all of them in one commit")
    func shared() throws {
        let core = try Core.sample()

        let turn = core.run(Sample.Both(id: 3))

        #expect(turn.commits[0].changedPointers == ["/count/value", "/items/marked"])
    }

    @Test("a state that cannot be encoded as JSON is not committed")
    func unencodable() throws {
        let core = try Core.sample()

        let turn = core.run(Sample.Break(id: 1), Sample.Add(amount: 1))

        guard case .failed = turn.outcomes[0] else { Issue.record("\(turn.outcomes[0])"); return }
        #expect(try core.json("/items/entities") == "{}")
        #expect(core.version == 1)
    }

    @Test("the client's own bytes are recorded only where no middleware can have changed the action")
    func recordedBytes() throws {
        let sent = Array(#"{"type":"count/add","payload":{"amount":2},"meta":{"a":1}}"#.utf8)
        // Marked, to tell the client's bytes from the store's.
        let marked = sent + [UInt8(ascii: " ")]
        let item = Transaction.Item(Sample.Add(amount: 2), meta: Array(#"{"a":1}"#.utf8), sent: marked)
        let own = Middleware<Sample.State> { action, _, next throws(Rejection) in try next(action) }
        for (middleware, form, isVerbatim) in [
            ([.validation], .single, true), ([.validation, Middleware(.logging { _ in })], .single, true),
            ([], .single, true),
            ([.validation, own], .single, false), ([.validation], .batch, true),
        ] as [([Middleware<Sample.State>], Transaction.Form, Bool)] {
            let core = try Core.sample(middleware: middleware)
            let turn = core.run([Transaction([item], form: form)])
            let expected = isVerbatim ? marked : sent
            #expect(
                turn.commits[0].action
                    == (form == .batch ? [UInt8(ascii: "[")] + expected + [UInt8(ascii: "]")] : expected))
        }
    }
}
