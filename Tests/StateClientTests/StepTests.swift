import Foundation
import StateJSON
import Testing

@testable import StateClient

/// What a client does next, without a server.
@Suite("Retries, routes and steps of the client")
struct StepTests {
    typealias Problem = StateClient.Problem

    @Test("a passing problem is asked again after what the server says and a growing time, up to the limit")
    func patience() {
        var patience = Patience(limit: .seconds(20))
        let busy = Problem(status: 503, code: "draining", detail: "", retryAfter: 3)
        let silent = Problem(status: 0, code: "no-answer", detail: "")

        #expect(patience.pause(after: busy, .zero, random: 0) == .seconds(3))
        #expect(patience.pause(after: silent, .seconds(3), random: 1) == .seconds(0.75))
        #expect(patience.pause(after: silent, .seconds(4), random: 1) == .seconds(1.125))
        for _ in 0..<80 { #expect(patience.pause(after: silent, .zero, random: 0) == .zero) }
        #expect(patience.pause(after: silent, .seconds(10), random: 1) == .seconds(10))
        #expect(patience.pause(after: silent, .seconds(10.5), random: 1) == nil)
    }

    @Test(
        "only some statuses are passing",
        arguments: [
            (0, true), (400, false), (401, false), (408, true), (409, false), (412, false), (422, false), (429, true),
            (500, false), (501, false), (502, true), (503, true), (504, true), (505, false), (200, false),
        ])
    func passing(status: Int, isPassing: Bool) {
        let problem = Problem(status: status, code: "", detail: "")
        var patience = Patience(limit: nil)

        #expect(problem.isPassing == isPassing)
        #expect((patience.pause(after: problem, .seconds(1_000_000), random: 0) != nil) == isPassing)
    }

    @Test(
        "a path leads to a route that a URL can hold, and what it cannot hold is looked for in the answer",
        arguments: [
            ("", "/state", "&path=", ""), ("/counter", "/state/counter", "&path=%2Fcounter", ""),
            ("/a b/~1/ü?", "/state/a%20b/~1/%C3%BC%3F", "&path=%2Fa%20b%2F~1%2F%C3%BC%3F", ""),
            ("/a/../b", "/state/a", "&path=%2Fa%2F..%2Fb", "/../b"), ("/", "/state", "&path=%2F", "/"),
            ("/a//b", "/state/a", "&path=%2Fa%2F%2Fb", "//b"), ("view:open tasks", "/views/open%20tasks", "", ""),
        ])
    func routes(path: String, target: String, filter: String, rest: String) throws {
        let route = try Route(path)

        #expect((route.target, route.filter, route.rest.description) == (target, filter, rest))
    }

    @Test("the parameters of a view or a query go behind the route, in one order, and the wait behind them")
    func parameters() throws {
        struct Open: Encodable { var owner: String; var done: Bool; var first: Int?; var share: Double? }
        let client = StateClient(try #require(URL(string: "http://localhost")))
        func targets<Value>(_ values: StateClient.Values<Value>) throws -> [String] {
            let route = try Route(values.path, values.parameters)
            return [route.target(waiting: false), route.target(waiting: true)]
        }

        let open = try client.view("open", Open(owner: "a&b", done: false, share: 1.5), as: [Int].self)
        #expect(
            try targets(open) == ["", "&wait=25"].map { "/views/open?done=false&owner=a%26b&share=1.5" + $0 })
        #expect(try targets(client.view("open", as: [Int].self)) == ["/views/open", "/views/open?wait=25"])
        let query = StateClient.Query(filter: "@.a == 1", sort: ["-/b", "/c"], limit: 5, fields: ["/d"], count: true)
        #expect(
            try targets(client.query("/rows", query, as: [String: Int].self))[0]
                == "/state/rows?filter=%40.a%20%3D%3D%201&sort=-%2Fb%2C%2Fc&limit=5&fields=%2Fd&count=true")
        #expect(throws: Problem.self) { try Route("/rows/../x", query.parameters) }
    }

    @Test(
        "a path without a slash, and a view that a URL folds, are refused",
        arguments: ["counter", "views:open", "a/b", "//~2", "view:.", "view:.."])
    func noPath(path: String) {
        #expect { try Route(path) } throws: { ($0 as? Problem)?.code == "bad-pointer" }
    }

    @Test("an answer with a problem document has its code, and another one that of its status")
    func problems() throws {
        let document = #"{"code":"a.b","detail":"no","errors":[{"pointer":"/x","detail":"y"}],"cursor":"c"}"#
        let known = Problem(Answer(status: 409, retryAfter: 2, body: Array(document.utf8)))
        let page = Problem(Answer(status: 502, body: Array("<html>".utf8)))

        #expect((known?.status, known?.code, known?.detail, known?.retryAfter) == (409, "a.b", "no", 2))
        #expect(known?.errors == [.init(pointer: "/x", detail: "y")])
        #expect(known?.document[pointer: "/cursor"] == "c")
        #expect((page?.status, page?.code, page?.document) == (502, "status-502", .null))
        for status in [200, 204, 304] { #expect(Problem(Answer(status: status, body: [])) == nil) }
    }

    @Test(
        "only what has the members of a receipt is one",
        arguments: [
            ("", false), ("null", false), (#"{"ok":true}"#, false), (#"{"changed":true}"#, false), ("[]", false),
            (#"{"committed":true,"changed":false}"#, false), (#"{"cursor":"a.1","changed":true}"#, false),
            (#"{"committed":false,"changed":false}"#, true),
            (#"{"cursor":"a.1","version":1,"id":"x","changed":true}"#, true),
        ])
    func receipts(text: String, isReceipt: Bool) {
        let answer = Answer(status: text.isEmpty ? 204 : 200, body: bytes(text))

        #expect(((try? StateClient.Receipt(answer)) != nil) == isReceipt)
        if !isReceipt { #expect(throws: Problem.self) { try StateClient.Receipt(answer) } }
    }

    @Test("a loop over values reads, waits with the tag, and gives a value when it is another one")
    func values() {
        var watch = ValueWatch()
        #expect(watch.next == .read(unless: nil))

        #expect(watch.take(.json("1", 1, "a")) == .some(bytes("1")))
        #expect(watch.next == .read(unless: "a"))
        #expect(watch.take(Reading(cursor: instant(3), tag: "a", isUnchanged: true)) == nil)
        #expect(watch.take(.json("1", 4, "b")) == nil)
        #expect(watch.next == .read(unless: "b"))
        #expect(watch.take(.json("2", 5, "c")) == .some(bytes("2")))
    }

    @Test("where nothing is there, a loop says so once and waits for a commit")
    func absent() {
        var watch = ValueWatch()

        #expect(watch.take(Reading(cursor: instant(1))) == .some(nil))
        #expect(watch.next == .awaitCommit(since: instant(1)))
        watch.hasWaited()
        #expect(watch.next == .read(unless: nil))
        #expect(watch.take(Reading(cursor: instant(2))) == nil)
        #expect(watch.next == .awaitCommit(since: instant(2)))
        #expect(watch.take(.json("1", 3, "a")) == .some(bytes("1")))
        #expect(watch.take(Reading(cursor: instant(4))) == .some(nil))
    }

    @Test("a server behind another one is asked again, and another history begins anew")
    func behind() {
        var watch = ValueWatch()
        _ = watch.take(.json("2", 7, "b"))

        #expect(watch.take(.json("1", 6, "a")) == nil)
        #expect(watch.next == .pause)
        watch.hasWaited()
        #expect(watch.next == .read(unless: "b"))
        #expect(watch.take(.json("0", 0, "c", epoch: "b")) == .some(bytes("0")))
    }

    @Test(
        "the base of the targets is the contract's, or that of a store below it",
        arguments: [
            ("http://a:8080", "http://a:8080/v1"), ("https://a/?x=1#y", "https://a/v1"),
            ("http://a/v1/", "http://a/v1"), ("http://a/v1/stores/tasks", "http://a/v1/stores/tasks"),
        ])
    func bases(url: String, base: String) throws {
        #expect(Transport.base(of: try #require(.init(string: url))) == base)
    }
}

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
private func instant(_ version: Int, epoch: Character = "a") -> String {
    String(repeating: epoch, count: 16) + ".\(version)"
}

extension Reading {
    fileprivate static func json(_ text: String, _ version: Int, _ tag: String, epoch: Character = "a") -> Reading {
        Reading(json: bytes(text), cursor: instant(version, epoch: epoch), tag: tag)
    }
}
