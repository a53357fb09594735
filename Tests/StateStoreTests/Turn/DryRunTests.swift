import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Dry runs beside the turns", .timeLimit(.minutes(5)))
struct DryRunTests {
    let memory = ReductionMarkTests.Memory()

    private func store(
        _ middleware: [Middleware<Sample.State>] = [], mark: ReductionMark? = nil,
        limits: StoreLimits = StoreLimits()
    ) throws -> Store<Sample.State> {
        UntypedStore(
            domain: try CompiledDomain(Sample()), middleware: middleware.map(\.step), limits: limits,
            now: { Timestamp(milliseconds: 0) },
            mark: mark
        ).typed(Sample.State.self)
    }

    private func add(_ amount: Int, key: (String, String)? = nil) -> Transaction {
        Transaction.of(Sample.Add(amount: amount), purpose: .dryRun, key: key?.0, body: key?.1 ?? "")
    }

    private func text(_ outcome: Outcome) -> String {
        switch outcome {
        case .wouldCommit(let isChange, let patch): "\(isChange) \(String(decoding: patch ?? [], as: UTF8.self))"
        case .rejected(let rejection, _): rejection.code
        case .keyReused(let key): "reused \(key)"
        default: "\(outcome)"
        }
    }

    @Test("each dry run applies to the published state, commits nothing, and dispatches nothing")
    func independent() throws {
        let dispatching = Middleware<Sample.State> { action, context, next throws(Rejection) in
            try next(action)
            context.dispatch(Sample.Add(amount: 100))
        }
        let store = try store()
        _ = store.submitNow(.of(Sample.Add(amount: 1)))
        store.middleware = [dispatching]

        let outcomes = [add(1), add(2), add(-9)].map { store.untyped.dryRun($0) }

        #expect(
            outcomes.map(text) == [
                #"true [{"op":"replace","path":"/count/value","value":2}]"#,
                #"true [{"op":"replace","path":"/count/value","value":3}]"#, "negative",
            ])
        store.drain()
        #expect(store.version == 1)
    }

    @Test("a dry run of a commit that is longer than the journal takes is refused as the commit is")
    func tooLong() throws {
        var limits = StoreLimits()
        limits.commitBytesMax = 20
        let store = try store(limits: limits)

        #expect(store.submitNow(.of(Sample.Add(amount: 1))).rejection?.code == "commit-too-large")
        #expect(text(store.untyped.dryRun(add(1))) == "commit-too-large")
    }

    @Test("a dry run does not wait for a turn that is being computed")
    func beside() throws {
        let (began, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let blocking = Middleware<Sample.State> { action, context, next throws(Rejection) in
            if !context.isDryRun {
                began.signal()
                goOn.wait()
            }
            try next(action)
        }
        let store = try store([blocking])
        store.submit(PendingTransaction(.of(Sample.Add(amount: 5))) { _ in })
        began.wait()

        let outcome = store.untyped.dryRun(add(1))

        goOn.signal()
        store.drain()
        #expect(text(outcome) == #"true [{"op":"replace","path":"/count/value","value":1}]"#)
        #expect(store.version == 1)
    }

    @Test("a dry run with a key is refused to a client whose share of the keys is used up")
    func shares() throws {
        let store = try store(limits: StoreLimits(mailboxMax: 100, idempotencyKeysMax: 2))
        let real = Transaction.of(Sample.Add(amount: 1), key: "k", body: "body")
        store.submit(PendingTransaction(real, client: "one") { _ in })
        store.drain()

        let refused = store.untyped.dryRun(add(1, key: ("other", "body")), of: "one")
        let allowed = store.untyped.dryRun(add(1, key: ("other", "body")), of: "two")

        guard case .full(.idempotencyKeysOfClient) = refused else { Issue.record("\(refused)"); return }
        #expect(text(allowed) == #"true [{"op":"replace","path":"/count/value","value":2}]"#)
    }

    @Test("the page names a dry run and the action of a turn beside it, and a dry run that is set aside is refused")
    func marked() throws {
        // unchecked: one test uses it, on this thread.
        nonisolated(unsafe) let page = memory.page
        let seen = Collection<String>()
        let looking = Middleware<Sample.State> { action, _, next throws(Rejection) in
            for slot in 0...1 { seen.add("\(slot) \(page.interrupted(in: slot)?.name ?? "-")") }
            try next(action)
        }
        let mark = ReductionMark(page, owner: memory)
        let store = try store([looking], mark: mark)
        let real = Transaction([.init(Sample.Add(amount: 1), id: "real")])
        let first = Transaction([.init(Sample.Add(amount: 1), id: "first")], purpose: .dryRun)
        let bad = Transaction([.init(Sample.Add(amount: 1), id: "bad")], purpose: .dryRun)
        mark.watch([try #require(TransactionIdentity(bad)): .init(name: "q1")])

        let refused = store.untyped.dryRun(bad)
        _ = store.untyped.dryRun(first)
        _ = store.submitNow(real)

        #expect(text(refused) == "action-quarantined")
        #expect(seen.values == ["0 first", "1 -", "0 real", "1 -"])
    }
}
