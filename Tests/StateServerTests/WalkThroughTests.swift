import Foundation
import Testing

/// Compares the page `WalkThrough` with the sources.
@Suite("The walk through three requests")
struct WalkThroughTests {
    private struct Step: Hashable {
        let file: String
        let function: String
    }

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// The text below each heading of the third level, by its heading.
    private static func sections() throws -> [String: String] {
        let page = try text("Sources/StateServer/StateServer.docc/Inside/WalkThrough.md")
        let parts = page.components(separatedBy: "\n### ")
        return Dictionary(
            uniqueKeysWithValues: parts.dropFirst().map { part in
                let lines = part.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
                return (String(lines[0]), String(lines[1]))
            })
    }

    /// The functions in a text, each with the file that is named before it.
    private static func steps(in text: String) -> [Step] {
        var file = ""
        var steps: [Step] = []
        for span in text.components(separatedBy: "`").enumerated().filter({ !$0.offset.isMultiple(of: 2) }) {
            if span.element.hasSuffix(".swift") { file = span.element }
            if span.element.hasSuffix("()") {
                steps.append(Step(file: file, function: String(span.element.dropLast(2))))
            }
        }
        return steps
    }

    @Test("every function that it names is in the file that it names")
    func functions() throws {
        let steps = try Self.sections().values.flatMap(Self.steps)

        #expect(steps.count > 80)
        for step in Set(steps) {
            let source = try Self.text("Sources/\(step.file)")
            #expect(
                source.contains("func \(step.function)(") || source.contains("func \(step.function)<"),
                "\(step.file) has no function \(step.function)")
        }
    }

    @Test("each walk fits on a page of forty lines")
    func lengths() throws {
        for (heading, section) in try Self.sections() {
            let lines = section.trimmingCharacters(in: .newlines).split(separator: "\n")
            #expect(lines.count <= 40, "\(heading): \(lines.count)")
        }
    }
}
