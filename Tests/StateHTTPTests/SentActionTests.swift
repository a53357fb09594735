import TestSupport
import Testing

@testable import HTTPMessages
@testable import StateHTTP
@testable import StateJSON
@testable import StateStore

/// A domain whose types take more than they encode.
private struct Sent: Domain {
    struct State: StateType, Codable { var sum = 0 }
    /// It takes 100 where more is sent.
    struct Take: Action {
        static let type = "take"
        var amount: Int
        var note: String?
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            amount = min(try container.decode(Int.self, forKey: .amount), 100)
            note = try container.decodeIfPresent(String.self, forKey: .note)
        }
    }
    struct Twice: Action { static let type = "twice" }
    struct Tidy: Action {
        static let type = "tidy"
        static let isInternal = true
        var amount: Int
    }

    var reducer: some Reducer<State> {
        On(Take.self) { state, action in state.sum += action.amount }
        On(Tidy.self) { state, action in state.sum -= action.amount }
        Command(Twice.self) { state, _ in Tidy(amount: -state.sum) }
    }
}

@Suite("Actions as clients send them")
struct SentActionTests {
    /// The record of the commit that a body makes.
    private func record(_ body: String) throws -> String {
        let domain = try CompiledDomain(Sent())
        let contract = Contract(catalogue: domain.catalogue)
        let options = DispatchOptions(store: VisibleStore(scope: contract.catalogue.whole, access: Access()))
        let request = try contract.dispatch(Request(target: "/", body: Array(body.utf8)), options)
        guard case .one(let transaction) = request.content else { return "no transaction" }
        let core = Core(
            domain: domain, epoch: .random(), middleware: [.validation], limits: StoreLimits(),
            state: .of(Sent.State()),
            version: 0, keys: [])
        let turn = core.turn(
            [PendingTransaction(transaction) { _ in }], at: Timestamp(milliseconds: 5),
            monotonic: { Instant(nanoseconds: 0) })
        return turn.commits.first.map { String(decoding: $0.action, as: UTF8.self) } ?? "no commit"
    }

    @Test(
        "an action is recorded as it was sent, without white space, whatever the spelling of the body",
        arguments: [
            (#"{"type":"take","payload":{"amount":1000}}"#, nil),
            (
                #" {"type" : "take",\#t"payload":{ "amount":1000 }}\#r\#n"#,
                #"{"type":"take","payload":{"amount":1000}}"#
            ),
            (
                #"{"payload":{"note":null,"amount":1.0e3},"type":"take"}"#,
                #"{"type":"take","payload":{"note":null,"amount":1.0e3}}"#
            ), (#"{"type":"tw\u0069ce","payload":{ }}"#, #"{"type":"tidy","payload":{"amount":0}}"#),
            (
                #"{"type":"take","payload":{"amount":1, "note":" \u00e9\" , "}}"#,
                #"{"type":"take","payload":{"amount":1,"note":" \u00e9\" , "}}"#
            ),
            (
                #"{"meta":{"n": 12345678901234567890.10},"type":"take","payload":{"amount":2},"id":"a"}"#,
                #"{"id":"a","type":"take","payload":{"amount":2},"meta":{"n":12345678901234567890.10}}"#
            ),
            (
                #"{"type":"take","expect":[{"path":"/sum","value":0}],"payload":{"amount":2}}"#,
                #"{"type":"take","payload":{"amount":2}}"#
            ),
            (
                #"[{"type":"take","payload":{"amount":1000}},{"type":"take", "payload":{"amount":3},"expect":[{"path":"","value":{"sum":0}}]}]"#,
                #"[{"type":"take","payload":{"amount":1000}},{"type":"take","payload":{"amount":3}}]"#
            ),
            (
                #"[{"type":"take","payload":{"amount":1000}},{"type":"twice","meta":{"b":1 }}]"#,
                #"[{"type":"take","payload":{"amount":1000}},{"type":"tidy","payload":{"amount":-100},"meta":{"b":1}}]"#
            ),
            (#"{"type":"take","payload":{"amount":1000},"expect":[]}"#, #"{"type":"take","payload":{"amount":1000}}"#),
        ] as [(String, String?)])
    func recorded(body: String, expected: String?) throws {
        #expect(try record(body) == expected ?? body)
    }

    @Test("an internal action is unknown to clients, listed nowhere, and may be made by the domain")
    func internalActions() throws {
        let contract = Contract(catalogue: try CompiledDomain(Sent()).catalogue)
        let catalogue = contract.catalogue
        let store = VisibleStore(scope: catalogue.whole, access: Access())
        let unknown = #expect(throws: Problem.self) { try record(#"{"type":"tidy","payload":{"amount":1}}"#) }
        let other = #expect(throws: Problem.self) { try record(#"{"type":"tidz","payload":{"amount":1}}"#) }

        #expect(unknown?.code == "unknown-action")
        #expect(unknown?.detail == other?.detail)
        #expect(store.types == ["take", "twice"])
        #expect(!store.dispatches("tidy"))
        #expect(catalogue.types == ["take", "tidy", "twice"])
        #expect(store.sees(type: "tidy"))
        let documents = contract.makeDocuments(of: store)
        #expect(!String(decoding: documents.catalogue.json, as: UTF8.self).contains("tidy"))
        #expect(try record(#"{"type":"twice"}"#) == #"{"type":"tidy","payload":{"amount":0}}"#)
    }

    @Test(
        "an internal action is for hooks whose grant names its whole type, and for no client",
        arguments: [
            ("hook:h1", ["tidy"], true), ("hook:h1", ["*"], false), ("hook:h1", ["tid*"], false),
            ("hook:h1", ["take"], false), ("ann", ["tidy"], false), ("ann", ["*"], false), ("hook", ["tidy"], false),
        ])
    func internalActions(subject: String, dispatch: [String], isTheirs: Bool) throws {
        let contract = Contract(catalogue: try CompiledDomain(Sent()).catalogue)
        let grant = Grant(read: ["*"], dispatch: dispatch, others: true, operate: true, fork: true)
        let hook = contract.hookView(grant, subject: subject, path: nil, types: [])

        #expect(hook.store.dispatches("tidy") == isTheirs)
        #expect(hook.mayDispatch("tidy") == isTheirs)
        #expect(!hook.store.types.contains("tidy"))
        #expect(!VisibleStore(scope: contract.catalogue.whole, access: Access()).dispatches("tidy"))
    }

    @Test("a grant of an internal action warns, but not of a hook")
    func warnings() throws {
        let catalogue = try CompiledDomain(Sent()).catalogue
        let grant = Grant(read: ["*"], dispatch: ["tidy"])

        #expect(grant.warnings(in: catalogue).count == 1)
        #expect(grant.warnings(in: catalogue, dispatching: catalogue.types) == [])
    }

    @Test(
        "a test of the state is one of a value, of any value, or of none",
        arguments: [
            (#"{"path":"/sum","present":true}"#, true), (#"{"path":"/sum","value":0}"#, true),
            (#"{"path":"/none","absent":true}"#, true), (#"{"path":"/sum","absent":true}"#, false),
            (#"{"path":"/none","present":true}"#, false), (#"{"path":"/sum","present":false}"#, nil),
            (#"{"path":"/sum","present":1}"#, nil), (#"{"path":"/sum","present":true,"absent":true}"#, nil),
            (#"{"path":"/sum","present":true,"value":0}"#, nil), (#"{"present":true}"#, nil),
        ] as [(String, Bool?)])
    func expectations(test: String, holds: Bool?) throws {
        let body = #"{"type":"take","payload":{"amount":1},"expect":[\#(test)]}"#

        switch holds {
        case true?: #expect(try record(body) != "no commit")
        case false?: #expect(try record(body) == "no commit")
        case nil: #expect(throws: Problem.self) { try record(body) }
        }
    }
}
