import Foundation
import Testing

/// Compares the page `Invariants` with the sources and the tests.
@Suite("The page of what always holds")
struct InvariantsTests {
    private struct Named: Hashable {
        let name: String
        let file: String
    }

    private struct Row {
        let holds: String
        let holders: [Named]
        let shown: String
        let tests: [Named]
    }

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// The rows of the tables, without their heads.
    private static func rows() throws -> [Row] {
        let page = try text("Sources/StateServer/StateServer.docc/Inside/Invariants.md")
        let cells = page.split(separator: "\n").filter { $0.hasPrefix("| ") }.map { line in
            line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        return try cells.filter { $0 != ["what holds", "held by", "shown by"] && $0 != ["---", "---", "---"] }.map {
            try #require($0.count == 3, "\($0)")
            return Row(holds: $0[0], holders: names(in: $0[1]), shown: $0[2], tests: names(in: $0[2]))
        }
    }

    /// The names in a cell, each with the file that is named behind it; without one, the file is empty.
    private static func names(in cell: String) -> [Named] {
        var (found, waiting): ([Named], [String]) = ([], [])
        for span in cell.matches(of: /`([^`]+)`|"([^"]+)"/) {
            let name = String(span.1 ?? span.2 ?? "")
            if name.hasSuffix(".swift") || name.hasSuffix(".py") {
                found += waiting.map { Named(name: $0, file: name) }
                waiting = []
            } else {
                waiting.append(name)
            }
        }
        return found + waiting.map { Named(name: $0, file: "") }
    }

    /// Whether a source declares a type, a function, or a member of a type.
    private static func declares(_ name: String, in source: String) throws -> Bool {
        try name.split(separator: ".").allSatisfy { part in
            let kinds = part.first?.isUppercase ?? false ? "class|struct|enum|protocol|extension" : "func|var"
            return source.contains(try Regex(#"\b(?:\#(kinds)) \#(part)\b"#))
        }
    }

    @Test("every function and every type that it names stands in the file that it names")
    func holders() throws {
        let rows = try Self.rows()

        #expect(rows.count >= 25)
        for row in rows { #expect(!row.holders.isEmpty, "nothing holds: \(row.holds)") }
        for holder in Set(rows.flatMap(\.holders)) {
            let source = try Self.text("Sources/\(holder.file)")
            #expect(try Self.declares(holder.name, in: source), "\(holder.file) has no \(holder.name)")
        }
    }

    @Test("every test that it names stands in the file that it names, and a row without one says so")
    func tests() throws {
        let rows = try Self.rows()

        for row in rows where row.tests.isEmpty { #expect(row.shown == "no test", "\(row.holds)") }
        for test in Set(rows.flatMap(\.tests)) {
            let source = try Self.text("Tests/\(test.file)")
            let beginning = test.file.hasSuffix(".py") ? "def \(test.name)(" : "\"\(test.name)\""
            #expect(source.contains(beginning), "\(test.file) has no test \(test.name)")
        }
    }
}
