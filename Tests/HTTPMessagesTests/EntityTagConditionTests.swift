import HTTPMessages
import Testing

@Suite("Entity tag conditions")
struct EntityTagConditionTests {
    @Test(
        "a list of quoted tags is read in order",
        arguments: [
            (#""a""#, ["a"]),
            (#""a","b""#, ["a", "b"]),
            (#"  "a" ,  W/"b"  "#, ["a", "W/b"]),
            (#"W/"a""#, ["W/a"]),
            (#""""#, [""]),
            (#""a,b", "c""#, ["a,b", "c"]),
            ("\t\"a\"\t,\t\"b\"", ["a", "b"]),
            (#""a", , "b","#, ["a", "b"]),
            (#", "a""#, ["a"]),
            (#""*""#, ["*"]),
        ])
    func tags(value: String, expected: [String]) throws {
        let condition = try #require(EntityTagCondition(value))

        guard case .tags(let tags) = condition else { Issue.record("\(condition)"); return }
        #expect(tags.map { ($0.isWeak ? "W/" : "") + $0.opaque } == expected)
    }

    @Test("a star is any current representation", arguments: ["*", " * ", "\t*"])
    func star(value: String) {
        #expect(EntityTagCondition(value) == .any)
    }

    @Test(
        "a value that is neither a star nor a list of quoted tags is refused",
        arguments: [
            "", " ", ",", "a", #""a"#, #"a""#, #""a" "b""#, #""a";"b""#, #"w/"a""#, #"W/a"#, #"W/ "a""#, #"*, "a""#,
            #""a", *"#,
        ]
    )
    func refused(value: String) {
        #expect(EntityTagCondition(value) == nil)
    }
}
