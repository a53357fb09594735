import StateJSON
import StateStore
import TestSupport
import Testing

@testable import Documents

@Suite("A document")
struct DocumentTests {
    @Test(
        "an action changes a place",
        arguments: [
            (#"{}"#, "set", #"{"path":"/a/b","value":1}"#, #"{"a":{"b":1}}"#),
            (#"{"a":[1,2]}"#, "set", #"{"path":"/a/1","value":3}"#, #"{"a":[1,3]}"#),
            (#"{"a":[1]}"#, "set", #"{"path":"/a/-","value":null}"#, #"{"a":[1,null]}"#),
            (#"{"a":1}"#, "set", #"{"path":"","value":[]}"#, #"[]"#),
            (
                #"{"a":{"b":1,"c":2}}"#, "merge", #"{"path":"/a","value":{"b":null,"d":{"e":null}}}"#,
                #"{"a":{"c":2,"d":{}}}"#
            ),
            (#"{"a":1}"#, "merge", #"{"value":{"b":2}}"#, #"{"a":1,"b":2}"#),
            (#"{"a":1}"#, "merge", #"{"path":"/a","value":{"b":2}}"#, #"{"a":{"b":2}}"#),
            (#"{"a":[1,3]}"#, "add", #"{"path":"/a/1","value":2}"#, #"{"a":[1,2,3]}"#),
            (#"{"a":[1,3]}"#, "remove", #"{"path":"/a/0"}"#, #"{"a":[3]}"#),
            (#"{}"#, "increment", #"{"path":"/hits/home"}"#, #"{"hits":{"home":1}}"#),
            (#"{"n":5}"#, "increment", #"{"path":"/n","by":-7}"#, #"{"n":-2}"#),
            (#"{"n":5}"#, "increment", #"{"path":"/n","by":0.5}"#, #"{"n":5.5}"#),
            (#"{"n":9007199254740993}"#, "increment", #"{"path":"/n","by":1.0}"#, #"{"n":9007199254740994}"#),
            (#"{"n":18446744073709551615}"#, "increment", #"{"path":"/n","by":-1}"#, #"{"n":18446744073709551614}"#),
            (#"{"n":18446744073709551615}"#, "increment", #"{"path":"/n","by":0}"#, #"{"n":18446744073709551615}"#),
            (#"{"n":9223372036854775807}"#, "increment", #"{"path":"/n"}"#, #"{"n":9223372036854775808}"#),
            (
                #"{"n":-9223372036854775808}"#, "increment", #"{"path":"/n","by":18446744073709551615}"#,
                #"{"n":9223372036854775807}"#
            ),
            (#"{"n":1.5}"#, "increment", #"{"path":"/n","by":0.5}"#, #"{"n":2.0}"#),
            (#"{"l":[]}"#, "set", #"{"path":"/l/-/x","value":1}"#, #"{"l":[{"x":1}]}"#),
            (
                #"{"a":{"x":1},"b":[]}"#, "patch",
                #"{"patch":[{"op":"test","path":"/a/x","value":1.0},{"op":"move","from":"/a/x","path":"/b/0"},{"op":"copy","from":"/b","path":"/c"},{"op":"replace","path":"/a","value":null},{"op":"add","path":"/d","value":null}]}"#,
                #"{"a":null,"b":[1],"c":[1],"d":null}"#
            ),
        ])
    func changes(document: String, action: String, payload: String, expected: String) throws {
        let store = try Self.store(document)

        #expect(throws: Never.self) { try store.dispatch(try Self.action(action, payload)) }

        #expect(store.state.value == (try Self.parse(expected)))
    }

    @Test(
        "what a place cannot take is rejected, and nothing changes",
        arguments: [
            ("set", #"{"path":"/a/x","value":1}"#, "document.no-place"),
            ("set", #"{"path":"/l/5","value":1}"#, "document.no-place"),
            ("set", #"{"path":"/l/x/y","value":1}"#, "document.no-place"),
            ("add", #"{"path":"/x/y","value":1}"#, "document.no-place"),
            ("remove", #"{"path":"/x"}"#, "document.no-place"),
            ("remove", #"{"path":""}"#, "document.no-place"),
            ("increment", #"{"path":"/l"}"#, "document.no-number"),
            ("increment", #"{"path":"/big"}"#, "document.no-number"),
            ("increment", #"{"path":"/low","by":-1.0}"#, "document.no-number"),
            ("increment", #"{"path":"/a","by":1e300}"#, "document.no-number"),
            ("increment", #"{"path":"/a","by":-9223372036854775809}"#, "invalid-action"),
            ("increment", #"{"path":"/a","by":1.00000000000000000001}"#, "invalid-action"),
            ("set", #"{"path":"/a/b/c","value":1}"#, "document.no-place"),
            ("increment", #"{"path":"/a","by":"1"}"#, "invalid-action"),
            ("set", #"{"path":"a","value":1}"#, "invalid-action"),
            (
                "patch", #"{"patch":[{"op":"remove","path":"/a"},{"op":"test","path":"/big","value":1}]}"#,
                "document.test-failed"
            ),
            ("patch", #"{"patch":[{"op":"move","from":"/l","path":"/l/0"}]}"#, "document.no-place"),
            ("patch", #"{"patch":[{"op":"add","path":"/z"}]}"#, "invalid-action"),
            ("patch", #"{"patch":[{"op":"copy","path":"/z"}]}"#, "invalid-action"),
        ])
    func refusals(action: String, payload: String, code: String) throws {
        let document = #"{"a":1,"l":[1,2],"big":18446744073709551615,"low":-9223372036854775808}"#
        let store = try Self.store(document)

        let error = #expect(throws: DispatchError.self) { try store.dispatch(try Self.action(action, payload)) }

        #expect(error?.code == code)
        #expect(store.state.value == (try Self.parse(document)))
    }

    @Test("a document grows no deeper than a server can read")
    func depth() throws {
        let store = try Self.store("{}")
        let path = String(repeating: "/a", count: 399)
        try store.dispatch(Document.Set(path: path, value: JSONTree([:])))

        let error = #expect(throws: DispatchError.self) {
            try store.dispatch(Document.Set(path: path + "/a", value: JSONTree([:])))
        }

        #expect(error?.code == "document.too-deep")
    }

    @Test("a path has at most 1,000 parts, and a sentence does not repeat a long one")
    func longPaths() throws {
        let store = try Self.store("{}")
        func rejection(at path: String) throws -> Rejection? {
            let error = #expect(throws: DispatchError.self) { try store.dispatch(Document.Remove(path: path)) }
            guard case .rejected(let rejection, _)? = error else { return nil }
            return rejection
        }

        let (many, long) = try (
            rejection(at: String(repeating: "/", count: 1001)), rejection(at: "/" + String(repeating: "x", count: 5000))
        )

        #expect(many?.code == "invalid-action" && many?.detail.contains("1000 parts") == true)
        #expect(long?.code == "document.no-place" && (long?.detail.utf8.count ?? .max) < 300)
    }

    @Test("copies of copies do not grow without end")
    func copies() throws {
        let store = try Self.store(#"{"a":{"text":"0123456789"}}"#)
        let patch: [JSONValue] = (0..<60).map { ["op": "copy", "from": "/a", "path": .string("/a/\($0)")] }

        let error = #expect(throws: DispatchError.self) {
            try store.dispatch(StandardAction(type: "document/patch", payload: ["patch": .array(patch)]))
        }

        #expect(error?.code == "document.too-large")
        #expect(store.state.value == ["a": ["text": "0123456789"]])
    }

    @Test("what a request costs is bounded, in one action and in an array, and the last one within the bound is taken")
    func work() throws {
        var members = JSONObject()
        for index in 0..<20_000 { members.append("k\(index)", 1) }
        let document: JSONValue = ["o": .object(members), "small": [:]]
        let store = try Store(Document(initial: document))
        func patch(_ operations: [JSONValue]) throws -> Document.Patch {
            try JSON.decode(from: (["patch": .array(operations)] as JSONValue).text)
        }
        func moves(_ count: Int, by way: String) -> [JSONValue] {
            (0..<count).map {
                let (from, path) = $0.isMultiple(of: 2) ? ("/o", way) : (way, "/o")
                return ["op": "move", "from": .string(from), "path": .string(path)]
            }
        }
        let bytesCount = try #require(store.state.tree(at: ["o"])).bytesCount
        let allowed = (4 << 20) / bytesCount / 2 * 2
        let test: JSONValue = ["op": "test", "path": "/o", "value": .object(members)]
        var many = JSONObject()
        for index in 0..<20_000 { many.append("k\(index)", nil) }
        let merge: Document.Merge = try JSON.decode(from: (["value": .object(many)] as JSONValue).text)

        let actions: [any Action] = [
            try patch(moves(allowed + 2, by: "/p")), try patch(moves(allowed + 2, by: "/small/p")),
            try patch(Array(repeating: test, count: (256 << 10) / bytesCount + 1)),
            try patch(Array(repeating: ["op": "add", "path": "/n", "value": 1], count: 5_001)),
            merge,
        ]
        let half: any Action = try patch(moves(allowed / 2 + 2, by: "/p"))
        for batch in actions.map({ [$0] }) + [[half, half]] {
            let error = #expect(throws: DispatchError.self) { _ = try store.dispatch(.batch(batch)) }
            #expect(error?.code == "document.too-large")
        }

        #expect(store.state.value == document)
        try store.dispatch(try patch(moves(allowed, by: "/p")))
        try store.dispatch(try patch(moves(allowed, by: "/small/p")))
        try store.dispatch(half)
        #expect(store.state.value == document)
    }

    @Test("a check sees the document behind each action")
    func check() throws {
        let store = try Store(
            Document(check: { text, _ in
                text.count > 20 ? JSONFault(.mismatch, at: JSONPointer(["a"]), "is too long") : nil
            }))
        try store.dispatch(Document.Set(path: "/a", value: JSONTree(1)))

        let error = #expect(throws: DispatchError.self) {
            try store.dispatch(Document.Set(path: "/a", value: JSONTree(.string(String(repeating: "x", count: 20)))))
        }

        #expect(error?.code == "document.misfit")
        #expect(store.state.value == ["a": 1])
    }

    @Test(
        "a misfit is named by the part of the payload that makes it",
        arguments: [
            ("set", #"{"path":"/a","value":1}"#, "/a", "/value"),
            ("set", #"{"path":"/a","value":{"b":[1]}}"#, "/a/b/0", "/value/b/0"),
            ("set", #"{"path":"/list/-","value":{"n":1}}"#, "/list/1/n", "/value/n"),
            ("set", #"{"path":"/a","value":1}"#, "/other", "/path"),
            ("set", #"{"path":"/a~1b","value":{"c":1}}"#, "/a~1b/c", "/value/c"),
            ("add", #"{"path":"","value":{"a":1}}"#, "/a", "/value/a"),
            ("merge", #"{"value":{"a":{"b":1}}}"#, "/a/b", "/value/a/b"),
            ("merge", #"{"path":"/n","value":{"b":1}}"#, "/n/c", "/value/c"),
            ("remove", #"{"path":"/list"}"#, "/list", "/path"),
            ("increment", #"{"path":"/n/x"}"#, "/n/x", "/path"),
            (
                "patch",
                #"{"patch":[{"op":"add","path":"/a","value":{"b":1}},{"op":"test","path":"/a/b","value":1}]}"#,
                "/a/b", "/patch/1/path"
            ),
            (
                "patch", #"{"patch":[{"op":"add","path":"/a","value":{"b":1}},{"op":"add","path":"/c","value":1}]}"#,
                "/a/b", "/patch/0/value/b"
            ),
            ("patch", #"{"patch":[{"op":"copy","from":"/n","path":"/m"}]}"#, "/m/q", "/patch/0/path"),
            ("patch", #"{"patch":[{"op":"add","path":"/a","value":1}]}"#, "/other", "/patch"),
        ])
    func misfit(name: String, payload: String, place: String, pointer: String) throws {
        let fault = JSONFault(.mismatch, at: try #require(JSONPointer(text: place)), "is too long")
        let store = try Store(
            Document(initial: try Self.parse(#"{"list":[1],"n":{}}"#), check: { _, _ in fault }))

        let error = #expect(throws: DispatchError.self) { try store.dispatch(try Self.action(name, payload)) }

        guard case .rejected(let rejection, _)? = error else { Issue.record("\(String(describing: error))"); return }
        #expect(rejection.code == "document.misfit")
        #expect(rejection.pointer == pointer)
        #expect(rejection.detail.contains("\(place): is too long"))
    }

    private static func store(_ document: String) throws -> Store<JSONTree> {
        try Store(Document(initial: try parse(document)))
    }

    private static func parse(_ text: String) throws -> JSONValue { try JSONValue(parsing: Array(text.utf8)) }

    private static func action(_ name: String, _ payload: String) throws -> StandardAction {
        guard case .object(let object) = try parse(payload) else { throw JSONFault(.mismatch, at: .root, "no object") }
        return StandardAction(
            type: "document/\(name)",
            payload: Dictionary(uniqueKeysWithValues: object.members.map { ($0.key, $0.value) }))
    }
}
