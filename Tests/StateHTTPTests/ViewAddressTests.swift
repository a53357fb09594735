import Foundation
import HTTPMessages
import HTTPTypes
import Testing

@testable import StateHTTP
@testable import StateJSON
@testable import StateStore
@testable import TestSupport

@Suite("Views with parameters in an address")
struct ViewAddressTests {
    private struct Odd: Domain {
        struct State: StateType, Codable { var value = 0 }
        struct Set: Action { static let type = "set" }
        struct Wrong<Value: Codable & Sendable>: Codable, Sendable { var wait: Value? }
        struct Right<Value: Codable & Sendable>: Codable, Sendable { var await: Value? }
        let view: View<State>
        var reducer: some Reducer<State> {
            On(Set.self) { _, _ in }
            view
        }
    }

    private func selection(
        _ query: String, view: String = "tasks.titled", subject: String? = nil
    ) throws -> Result<Selection, Problem> {
        let contract = Contract(catalogue: try CompiledDomain(Demo()).catalogue)
        let request = Request(target: "/v1/views/\(view)?\(query)")
        let access = subject.map {
            Access(Grant(read: ["view:\(view)"]), subject: $0, in: contract.catalogue)
        }
        let latest = Cursor(Epoch("storekeeperdemoa") ?? .random(), 7)
        let plan = contract.plan(
            for: request,
            in: Circumstances(
                bounds: HistoryBounds(latest: latest, oldest: 0), name: RequestName(request.own, number: 1),
                authentication: .success(access ?? Access()))
        ).plan
        switch plan {
        case .read(let read): return .success(read.selection)
        case .respond(let response):
            let document = try JSONValue(parsing: response.body)
            var problem = Problem(
                HTTPResponse.Status(code: Int(response.status.code)), document["code"].string, document["detail"].string
            )
            problem.members = document["parameter"] == .null ? [] : [.string("parameter", document["parameter"].string)]
            return .failure(problem)
        default: throw Problem.ourFault
        }
    }

    @Test(
        "a text of the address becomes the type of the schema, in one spelling",
        arguments: [
            ("title=a", ["title": "a"]), ("first=2&title=a", ["title": "a", "first": 2]),
            ("title=a&first=2", ["title": "a", "first": 2]), ("title=7", ["title": "7"]),
            ("title=a&first=2.0", ["title": "a", "first": 2]), ("title=a&first=-3", ["title": "a", "first": -3]),
            ("title=true&done=true", ["title": "true", "done": true]), ("title=a&done", ["title": "a", "done": true]),
            ("title=a&done=false", ["title": "a", "done": false]), ("title=", ["title": ""]),
            ("title=a+b%26c", ["title": "a b&c"]), ("title=a&order=down", ["title": "a", "order": "down"]),
        ] as [(String, JSONValue)])
    func types(query: String, wanted: JSONValue) throws {
        #expect(
            try selection(query).get() == .view("tasks.titled", ViewArguments(parameters: wanted)), "\(query)")
    }

    @Test(
        "what does not fit is refused with its name and what was expected",
        arguments: [
            ("", "title", "a text"), ("done=true", "title", "a text"), ("title=a&first=x", "first", "a whole number"),
            ("title=a&first=", "first", "a whole number"), ("title=a&first=1.5", "first", "a whole number"),
            ("title=a&first=%201", "first", "a whole number"), ("title=a&first", "first", "a whole number"),
            ("title=a&first=99999999999999999999", "first", "a whole number"),
            ("title=a&done=yes", "done", "true or false"),
            ("title", "title", "a text"), ("title=a&order=left", "order", "\"up\", \"down\""),
        ])
    func misfits(query: String, name: String, expected: String) throws {
        guard case .failure(let problem) = try selection(query) else {
            Issue.record("\(query) is taken")
            return
        }

        #expect((problem.status.code, problem.code) == (400, "bad-parameter"))
        #expect(problem.members.map { String(decoding: $0.json, as: UTF8.self) } == ["\"\(name)\""])
        #expect(problem.detail.contains(name) && problem.detail.contains(expected), "\(problem.detail)")
    }

    @Test("a parameter twice, and one that the view does not have, are refused; those of the contract are taken")
    func others() throws {
        for (query, code) in [
            ("title=a&title=a", "bad-parameter"), ("title=a&titel=b", "unknown-parameter"),
            ("title=a&since=1", "unknown-parameter"),
        ] {
            guard case .failure(let problem) = try selection(query) else { Issue.record("\(query)"); continue }
            #expect(problem.code == code)
        }
        #expect(try selection("title=a&wait=1&pretty").get() == selection("title=a").get())
        #expect(throws: Never.self) { try selection("title=a&filter=@==1").get() }
    }

    @Test("only a view that takes the subject has it in its selection")
    func subject() throws {
        #expect(try selection("", view: "label", subject: "ann").get() == .view("label", ViewArguments(subject: "ann")))
        #expect(try selection("", view: "label").get() == .view("label"))
        #expect(
            try selection("title=a", subject: "ann").get()
                == .view("tasks.titled", ViewArguments(parameters: ["title": "a"])))
        #expect(try selection("", view: "tasks.open", subject: "ann").get() == .view("tasks.open"))
    }

    @Test("the reserved names hold every parameter of the contract, and the page lists them")
    func reserved() throws {
        #expect(ViewParameters.reservedNames.isSuperset(of: Contract.parametersOfState.map(\.text)))
        #expect(Contract.parametersOfState.isSuperset(of: Contract.parametersOfViews))

        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(
            contentsOf: root.appending(path: "Sources/StateServer/StateServer.docc/Reference/Contract/Views.md"),
            encoding: .utf8)
        let line = try #require(page.split(separator: "\n").first { $0.hasPrefix("`access_token`") })
        let listed = line.split(separator: "`").enumerated().filter { $0.offset.isMultiple(of: 2) }.map {
            String($0.element)
        }
        #expect(listed.filter { $0 != "_" } == ViewParameters.reservedNames.sorted())
    }

    @Test("a server does not start with parameters that no address can hold")
    func start() throws {
        func fault(_ view: View<Odd.State>) throws -> String? {
            Contract.fault(in: try CompiledDomain(Odd(view: view)).catalogue)
        }

        #expect(
            try fault(View("v", parameters: Odd.Wrong<Int>.self) { state, _ in state.value })?.contains("\"wait\"")
                == true)
        #expect(try fault(View("v", parameters: Odd.Right<Int>.self) { state, _ in state.value }) == nil)
        #expect(
            try fault(View("v", parameters: Odd.Right<[Int]>.self) { state, _ in state.value })?.contains("\"await\"")
                == true)
        #expect(try fault(View("v", parameters: [Int].self) { state, _ in state.value }) != nil)
    }
}

@Suite("Grants of subjects")
struct SubjectGrantTests {
    private func access(_ read: String..., subject: String) throws -> Access {
        Access(Grant(read: read, others: true), subject: subject, in: try CompiledDomain(Demo()).catalogue)
    }

    @Test("{subject} in a pointer is the subject as one token, whatever characters it has")
    func pointers() throws {
        for subject in ["ann", "a/b", "a~1b", "~0", "{subject}", "..", "ren\u{E9}", "*"] {
            let access = try access("/labels/{subject}", subject: subject)
            #expect(access.sees(JSONPointer(["labels", subject])))
            #expect(access.sees(JSONPointer(["labels", subject, "below"])))
            for other in ["", "labels", "ben", "a", "b", "a~b", "rene\u{301}"] {
                #expect(!access.sees(JSONPointer(["labels", other])))
            }
            #expect(!access.sees(JSONPointer(["labels"])))
        }
        let access = try access("/labels/of-{subject}-and-{subject}", subject: "a/b")
        #expect(access.sees(JSONPointer(["labels", "of-a/b-and-a/b"])))
    }

    @Test("what two subjects see by {subject} has two names, and two descriptions")
    func caches() throws {
        let (ann, ben) = (
            try access("/labels/{subject}", subject: "ann"), try access("/labels/{subject}", subject: "ben")
        )
        #expect(ann.visibility != ben.visibility)
        #expect(try access("/labels/x", subject: "ann").visibility == access("/labels/x", subject: "ben").visibility)

        let contract = Contract(catalogue: try CompiledDomain(Demo()).catalogue)
        func types(_ access: Access) throws -> String {
            let request = Request(target: "/v1/client.d.ts")
            let latest = Cursor(Epoch("storekeeperdemoa") ?? .random(), 7)
            let plan = contract.plan(
                for: request,
                in: Circumstances(
                    bounds: HistoryBounds(latest: latest, oldest: 0), name: RequestName(request.own, number: 1),
                    authentication: .success(access))
            ).plan
            switch plan {
            case .respond(let response): return String(decoding: response.body, as: UTF8.self)
            case .document(let request): return String(decoding: contract.response(to: request).body, as: UTF8.self)
            default: throw Problem.ourFault
            }
        }
        #expect(try types(ann).contains("ann"))
        #expect(try !types(ben).contains("ann"), "a description that was made for ann is kept for ben")
    }
}
