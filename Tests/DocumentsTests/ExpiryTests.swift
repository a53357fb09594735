import StateJSON
import StateStore
import Testing

@testable import Documents

@Suite("Places of a document that expire")
struct ExpiryTests {
    private static let lock: JSONPointer = "/locks/a"

    /// A document with a lock that expires, and an array of objects the second of which has a member that does.
    private func store() throws -> Store<JSONTree> {
        let store = try Store(
            Document(initial: ["locks": ["b": 1], "list": [[:], [:], [:]], "plain": 1]),
            now: { Timestamp(milliseconds: 1000) })
        try dispatch("set", #"{"path":"/locks/a","value":{"by":"x"},"ttl":30}"#, to: store)
        try dispatch("set", #"{"path":"/list/1/m","value":1,"ttl":60}"#, to: store)
        return store
    }

    private func dispatch(_ type: String, _ payload: String, to store: Store<JSONTree>) throws {
        let bytes = Array(payload.utf8)
        let action: any Action =
            switch type {
            case "set": try JSON.decode(Document.Set.self, from: bytes)
            case "add": try JSON.decode(Document.Add.self, from: bytes)
            case "remove": try JSON.decode(Document.Remove.self, from: bytes)
            case "merge": try JSON.decode(Document.Merge.self, from: bytes)
            case "increment": try JSON.decode(Document.Increment.self, from: bytes)
            default: try JSON.decode(Document.Patch.self, from: bytes)
            }
        try store.dispatch(action)
    }

    private func places(_ store: Store<JSONTree>) -> [String] {
        var places: [String] = []
        store.untyped.hub.latest.schedule.visit { places.append("\($0.name.text) \($0.due.milliseconds)") }
        return places
    }

    @Test("a place with a time to live is removed by an action at that time")
    func set() throws {
        let store = try store()
        var actions: [String] = []
        store.untyped.hub.latest.schedule.visit { actions.append(String(decoding: $0.action, as: UTF8.self)) }

        #expect(places(store) == ["/locks/a 31000", "/list/1/m 61000"])
        #expect(actions[0] == #"{"type":"document/remove","payload":{"path":"/locks/a"}}"#)
    }

    @Test(
        "what changes a place ends its expiry, or begins it anew, or leaves it",
        arguments: [
            // Anew, and removed.
            ("set", #"{"path":"/locks/a","value":1,"ttl":5}"#, ["/locks/a 6000", "/list/1/m 61000"]),
            ("add", #"{"path":"/locks/a","value":1,"ttl":5}"#, ["/locks/a 6000", "/list/1/m 61000"]),
            ("set", #"{"path":"/locks/a","value":{"by":"x"}}"#, ["/list/1/m 61000"]),
            ("remove", #"{"path":"/locks/a"}"#, ["/list/1/m 61000"]),
            ("merge", #"{"value":{"locks":{"a":null}}}"#, ["/list/1/m 61000"]),
            ("merge", #"{"value":{"locks":{"a":7}}}"#, ["/list/1/m 61000"]),
            ("merge", #"{"value":{"list":[{},{"m":1},{},{}]}}"#, ["/locks/a 31000"]),
            ("merge", #"{"path":"/list/1/m","value":1.5}"#, ["/locks/a 31000"]),
            // With the same value, a merge changes nothing.
            ("merge", #"{"path":"/list/1/m","value":1}"#, ["/locks/a 31000", "/list/1/m 61000"]),
            ("merge", #"{"value":{"locks":{"a":{"by":"x"}}}}"#, ["/locks/a 31000", "/list/1/m 61000"]),
            ("merge", #"{"value":{"list":[{},{"m":1},{}]}}"#, ["/locks/a 31000", "/list/1/m 61000"]),
            // A number.
            ("increment", #"{"path":"/list/1/m","by":2}"#, ["/locks/a 31000", "/list/1/m 61000"]),
            ("increment", #"{"path":"/list/1/m","ttl":5}"#, ["/list/1/m 6000", "/locks/a 31000"]),
            ("increment", #"{"path":"/plain","ttl":90}"#, ["/locks/a 31000", "/list/1/m 61000", "/plain 91000"]),
            ("increment", #"{"path":"/new/er","ttl":90}"#, ["/locks/a 31000", "/list/1/m 61000", "/new/er 91000"]),
            // Below the place, and beside it.
            ("set", #"{"path":"/locks/a/by","value":"y"}"#, ["/locks/a 31000", "/list/1/m 61000"]),
            ("merge", #"{"value":{"locks":{"a":{"by":"y"}}}}"#, ["/locks/a 31000", "/list/1/m 61000"]),
            ("set", #"{"path":"/locks/ab","value":1}"#, ["/locks/a 31000", "/list/1/m 61000"]),
            ("increment", #"{"path":"/plain"}"#, ["/locks/a 31000", "/list/1/m 61000"]),
            // A parent.
            ("set", #"{"path":"/locks","value":{"a":{"by":"x"}}}"#, ["/list/1/m 61000"]),
            ("remove", #"{"path":"/locks"}"#, ["/list/1/m 61000"]),
            ("merge", #"{"value":{"locks":1}}"#, ["/list/1/m 61000"]),
            ("set", #"{"path":"","value":{}}"#, []),
            // Moved, and copied.
            ("patch", #"{"patch":[{"op":"move","from":"/locks/a","path":"/locks/c"}]}"#, ["/list/1/m 61000"]),
            ("patch", #"{"patch":[{"op":"move","from":"/plain","path":"/locks/a"}]}"#, ["/list/1/m 61000"]),
            (
                "patch", #"{"patch":[{"op":"copy","from":"/locks/a","path":"/locks/c"}]}"#,
                ["/locks/a 31000", "/list/1/m 61000"]
            ),
            (
                "patch", #"{"patch":[{"op":"replace","path":"/locks/a/by","value":2}]}"#,
                ["/locks/a 31000", "/list/1/m 61000"]
            ),
            ("patch", #"{"patch":[{"op":"replace","path":"/locks/a","value":2}]}"#, ["/list/1/m 61000"]),
            // In an array, what is behind an element moves with it.
            ("add", #"{"path":"/list/0","value":1}"#, ["/locks/a 31000"]),
            ("remove", #"{"path":"/list/0"}"#, ["/locks/a 31000"]),
            ("remove", #"{"path":"/list/1"}"#, ["/locks/a 31000"]),
            ("remove", #"{"path":"/list/2"}"#, ["/locks/a 31000", "/list/1/m 61000"]),
            ("add", #"{"path":"/list/-","value":1}"#, ["/locks/a 31000", "/list/1/m 61000"]),
            ("set", #"{"path":"/list/2","value":1}"#, ["/locks/a 31000", "/list/1/m 61000"]),
            ("set", #"{"path":"/list/1","value":1}"#, ["/locks/a 31000"]),
        ])
    func changes(type: String, payload: String, expected: [String]) throws {
        let store = try store()

        try dispatch(type, payload, to: store)

        #expect(places(store) == expected)
    }

    @Test(
        "a time to live that is none, or of a place that cannot expire, is refused",
        arguments: [
            ("set", #"{"path":"/a","value":1,"ttl":0}"#), ("set", #"{"path":"/a","value":1,"ttl":-1}"#),
            ("add", #"{"path":"/a","value":1,"ttl":1e300}"#), ("set", #"{"path":"","value":{},"ttl":1}"#),
            ("set", #"{"path":"/list/0","value":{},"ttl":1}"#), ("add", #"{"path":"/list/-","value":{},"ttl":1}"#),
            ("increment", #"{"path":"/plain","ttl":0}"#), ("increment", #"{"path":"/plain","ttl":1e12}"#),
            ("increment", #"{"path":"/list/3","ttl":1}"#), ("increment", #"{"path":"/list/-","ttl":1}"#),
        ])
    func refused(type: String, payload: String) throws {
        let store = try store()

        #expect(throws: DispatchError.self) { try dispatch(type, payload, to: store) }

        #expect(places(store).count == 2)
    }

    @Test("an equal value that is null, and is removed by a merge, expires no more")
    func null() throws {
        let store = try store()
        try dispatch("set", #"{"path":"/gone","value":null,"ttl":9}"#, to: store)
        #expect(places(store).count == 3)

        try dispatch("merge", #"{"value":{"gone":null}}"#, to: store)

        #expect(places(store).count == 2)
    }

    @Test(
        "what the check of the document requires cannot expire, and what it only describes can",
        arguments: [
            ("set", "/cfg/mode", false), ("add", "/cfg/mode", false), ("increment", "/cfg/mode", false),
            ("set", "/cfg", false), ("set", "/cfg/other", true), ("set", "/else", true),
        ])
    func required(type: String, path: String, isTaken: Bool) throws {
        let check: Document.Check = { json, _ in
            let value = try? JSONValue(parsing: json, depthMax: 100)
            let hasMode = value?[pointer: JSONPointer(["cfg", "mode"])] != nil
            return hasMode ? nil : JSONFault(.schema, at: JSONPointer(["cfg"]), "mode is required")
        }
        let store = try Store(
            Document(initial: ["cfg": ["mode": 1]], check: check), now: { Timestamp(milliseconds: 1000) })
        let value = type == "increment" ? "" : #","value":\#(path == "/cfg" ? #"{"mode":2}"# : "2")"#
        let payload = #"{"path":"\#(path)"\#(value),"ttl":5}"#

        if isTaken {
            try dispatch(type, payload, to: store)
        } else {
            #expect {
                try dispatch(type, payload, to: store)
            } throws: {
                guard case .rejected(let rejection, _)? = $0 as? DispatchError else { return false }
                return rejection.code == "document.no-ttl" && rejection.pointer == "/path"
            }
        }

        #expect(places(store).count == (isTaken ? 1 : 0))
    }
}
