import HTTPMessages
import StateJSON
import Testing

@testable import StateHTTP
@testable import StateStore
@testable import TestSupport

@Suite("The view of a hook")
struct HookViewTests {
    private let contract: Contract
    private let epoch = Epoch("storekeeperdemoa") ?? .random()

    init() throws { contract = Contract(catalogue: try CompiledDomain(Demo()).catalogue) }

    private func view(
        _ read: [String], dispatch: [String] = [], path: String? = nil, types: [String] = []
    ) -> HookView {
        contract.hookView(
            Grant(read: read, dispatch: dispatch, others: true), subject: "hook:h1",
            path: path.flatMap { JSONPointer(text: $0) }, types: types)
    }

    private func commit(_ type: String = "counter/add", path: String = "/counter/value", root: String? = nil) -> Commit
    {
        Commit(
            version: 7, time: Timestamp(milliseconds: 0), id: "a7", root: root, by: "kim", types: [type],
            action: Array(#"{"id":"a7","type":"\#(type)"}"#.utf8),
            patch: Array(#"[{"op":"replace","path":"\#(path)","value":1}]"#.utf8),
            changedPointers: [JSONPointer(text: path) ?? .root])
    }

    private func body(_ view: HookView, _ commit: Commit) throws -> JSONValue? {
        try contract.delivery(of: commit, to: view, epoch: epoch).map { try JSONValue(parsing: $0) }
    }

    @Test("what the grant does not allow is not in a delivery, and a commit of which nothing is seen is none")
    func grants() throws {
        let state = try #require(try body(view(["/counter"]), commit()))
        #expect(state["action"] == .null)
        #expect(state["by"] == .null)
        #expect(state["patch"].text == Array(#"[{"op":"replace","path":"/counter/value","value":1}]"#.utf8))
        let action = try #require(try body(view(["actions:counter/*"]), commit()))
        #expect(action["patch"].text == Array("[]".utf8))
        #expect(action["by"] == .string("kim"))
        #expect(try body(view(["/tasks"]), commit()) == nil)
        #expect(try body(view(["/tasks", "actions:tasks/*"]), commit()) == nil)
    }

    @Test("types and a path limit a hook, and never show it more than its grant")
    func filters() {
        #expect(view(["*"], types: ["counter/*"]).filter.passes(commit()))
        #expect(!view(["*"], types: ["tasks/*"]).filter.passes(commit()))
        #expect(!view(["*"], types: ["unknown/*"]).filter.passes(commit()))
        #expect(!view(["/counter"], types: ["counter/add"]).filter.passes(commit()))
        #expect(view(["*"], path: "/counter").filter.passes(commit()))
        #expect(!view(["*"], path: "/tasks").filter.passes(commit()))
        #expect(!view(["/tasks"], path: "/counter").filter.passes(commit()))
    }

    private func transaction(_ answer: String, _ view: HookView? = nil) throws -> Transaction? {
        try contract.transaction(
            inAnswer: Array(answer.utf8), of: view ?? self.view(["*"], dispatch: ["counter/*"]),
            to: commit(root: "r0"), delivery: "h1_e_7")
    }

    @Test("actions in an answer are one transaction of the hook, caused by the commit, under the key of the delivery")
    func actions() throws {
        let one = #"{"type":"counter/add","payload":{"amount":2}}"#

        let single = try #require(try transaction(#" {"actions": [ \#(one) ]} "#))
        let several = try #require(try transaction(#"{"actions":[\#(one),{"id":"mine","type":"counter/reset"}]}"#))

        #expect(single.form == .single && several.form == .batch)
        #expect(single.clientIDs == ["h1_e_7"] && several.clientIDs == ["h1_e_7/1", "mine"])
        for transaction in [single, several] {
            #expect(transaction.idempotency?.key == IdempotencyKey("h1_e_7", of: "hook:h1"))
            #expect(transaction.subject == "hook:h1")
            #expect(transaction.causation?.cause == "a7" && transaction.causation?.root == "r0")
        }
        // Another answer to the repeated delivery is the same one to the store.
        #expect(single.idempotency?.fingerprint == several.idempotency?.fingerprint)
    }

    @Test(
        "actions that the grant does not allow, or that are none, are refused",
        arguments: [
            #"{"actions":[{"type":"tasks/remove","payload":{"id":1}}]}"#, #"{"actions":[{"type":"counter/add"}]}"#,
            #"{"actions":[7]}"#, #"{"actions":7}"#, #"{"actions":{}}"#,
            #"{"actions":[{"type":"storekeeper/restore","payload":{"version":1}}]}"#,
        ])
    func refused(answer: String) {
        #expect(throws: Problem.self) { try transaction(answer) }
    }
}
