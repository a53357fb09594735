import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Differences by ID")
struct KeyedDifferenceTests {
    private static let place = "/items"

    /// The keyed difference of some patches, as the whole store writes it.
    private func text(of patches: [String], seen: [JSONPointer]? = nil) throws -> String {
        let collection = StateStore.Collection(entities: JSONPointer(stringLiteral: Self.place), ids: "/ids") {
            Array($0.utf8)
        }
        var difference = KeyedDifference([collection], seen: seen.map { PointerSet($0) })
        for patch in patches { try difference.add(patch: Array(patch.utf8)) }
        var writer = JSONWriter()
        difference.write(
            at: .root, of: Scope(name: "", pointer: .root, entries: [], views: [:]), to: &writer)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private static let add = #"[{"op":"add","path":"/items/1","value":{}}]"#
    private static let change = #"[{"op":"replace","path":"/items/1/x","value":2}]"#
    private static let remove = #"[{"op":"remove","path":"/items/1"}]"#
    private static let renew = #"[{"op":"replace","path":"/items","value":{"1":{},"2":{}}}]"#

    @Test(
        "several changes of one entity are listed as their sum",
        arguments: [
            ([add], #"{"/items":{"added":[1]}}"#),
            ([change], #"{"/items":{"changed":[1]}}"#),
            ([remove], #"{"/items":{"removed":[1]}}"#),
            ([add, change], #"{"/items":{"added":[1]}}"#),
            ([add, remove], "{}"),
            ([change, remove], #"{"/items":{"removed":[1]}}"#),
            ([remove, add], #"{"/items":{"changed":[1]}}"#),
            ([renew], #"{"/items":{"initial":[1,2]}}"#),
            ([renew, change], #"{"/items":{"initial":[1,2]}}"#),
            ([renew, remove], #"{"/items":{"initial":[2]}}"#),
            ([renew, remove, add], #"{"/items":{"initial":[2],"added":[1]}}"#),
        ])
    func sums(patches: [String], expected: String) throws {
        #expect(try text(of: patches) == expected)
    }

    private static let renewAround = #"[{"op":"replace","path":"","value":{"items":{"1":{"x":1},"2":{}},"other":0}}]"#

    @Test(
        "an entity of which the client sees nothing is in no list, and neither is a table",
        arguments: [
            (["/other"], [add, change, remove, renew, renewAround], "{}"),
            (["/items/2"], [add, change, remove], "{}"),
            (["/items/1"], [add], #"{"/items":{"added":[1]}}"#),
            (["/items/1"], [remove], #"{"/items":{"removed":[1]}}"#),
            (["/items/2"], [renew], #"{"/items":{"initial":[2]}}"#),
            (["/items/3", "/other"], [renewAround], #"{"/items":{"initial":[]}}"#),
            (["/items"], [renewAround], #"{"/items":{"initial":[1,2]}}"#),
            (["/items/1/x"], [add], #"{"/items":{"changed":[1]}}"#),
            (["/items/1/x"], [change], #"{"/items":{"changed":[1]}}"#),
            (["/items/1/x", "/items/2/x"], [renewAround], #"{"/items":{"initial":[1]}}"#),
            (["/items/1/y"], [change], "{}"),
        ] as [([JSONPointer], [String], String)])
    func grants(seen: [JSONPointer], patches: [String], expected: String) throws {
        #expect(try text(of: patches, seen: seen) == expected)
    }

    @Test("a new table without entities is listed as initial")
    func empty() throws {
        let emptied = #"[{"op":"replace","path":"/items","value":{}}]"#
        let (first, second) = (#"[{"op":"replace","path":"/items","value":{"1":{}}}]"#, Self.remove)

        #expect(try text(of: [emptied]) == #"{"/items":{"initial":[]}}"#)
        #expect(try text(of: [first, second]) == #"{"/items":{"initial":[]}}"#)
    }

    @Test("IDs that are equal as Swift strings are two entities where their bytes differ")
    func canonicallyEquivalent() throws {
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        let (first, second) = (
            #"[{"op":"add","path":"/items/\#(composed)","value":{}}]"#,
            #"[{"op":"remove","path":"/items/\#(decomposed)"}]"#
        )
        #expect(composed == decomposed)

        let text = try text(of: [first, second])

        #expect(text.utf8.elementsEqual(#"{"/items":{"added":[\#(composed)],"removed":[\#(decomposed)]}}"#.utf8))
    }
}
