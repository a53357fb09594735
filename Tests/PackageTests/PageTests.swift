import Foundation
import Testing

/// A page of markdown: where its links lead, and by which anchors others link to its headings.
private struct Page {
    let path: String
    /// The lines outside of blocks of code.
    let prose: [Substring]

    init(_ path: String) throws {
        self.path = path
        var isCode = false
        prose = try Tree.text(path).split(separator: "\n", omittingEmptySubsequences: false).filter { line in
            if line.drop(while: { $0 == " " }).hasPrefix("```") {
                isCode.toggle()
                return false
            }
            return !isCode
        }
    }

    /// The paths from the root, and the anchors, of all links that stay in the repository.
    var links: [(path: String, anchor: Substring?)] {
        prose.flatMap { $0.matches(of: /\]\(([^)\s]+)\)/).map(\.1) }.filter { !$0.contains("://") }.map { link in
            let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
            guard !parts[0].isEmpty else { return (path, parts.last) }
            let folder = URL(fileURLWithPath: "/" + path).deletingLastPathComponent()
            let target = folder.appending(path: String(parts[0])).standardizedFileURL.path.dropFirst()
            return (String(target), parts.count == 2 ? parts[1] : nil)
        }
    }

    /// The anchors that a forge gives to the headings: small letters, hyphens for spaces, a number for a repetition.
    var anchors: Set<String> {
        var found: Set<String> = []
        for heading in prose where heading.hasPrefix("#") {
            let title = heading.drop { $0 == "#" }.drop { $0 == " " }.lowercased()
            let anchor = title.filter { $0.isLetter || $0.isNumber || "-_ ".contains($0) }.replacing(" ", with: "-")
            let repetition = (1...).first { !found.contains("\(anchor)-\($0)") } ?? 1
            found.insert(found.contains(anchor) ? "\(anchor)-\(repetition)" : anchor)
        }
        return found
    }

    var headings: [String] { prose.filter { $0.hasPrefix("## ") }.map { String($0.dropFirst(3)) } }
}

@Suite("The pages")
struct PageTests {
    /// README and every page, as paths from the root.
    static let pages = ["README.md"] + Tree.files(below: "Sources", suffix: ".md")
    static let decisions = pages.filter { $0.contains("/Decisions/") }

    @Test("every link of a page leads to a file and a heading, where people read the pages", arguments: pages)
    func links(path: String) throws {
        #expect(try !Tree.text(path).contains("<doc:"), "DocC alone follows these links")

        for link in try Page(path).links {
            let target = Tree.root.appending(path: link.path).path
            #expect(FileManager.default.fileExists(atPath: target), "\(link.path)")
            guard let anchor = link.anchor, link.path.hasSuffix(".md") else { continue }
            #expect(try Page(link.path).anchors.contains(String(anchor)), "\(link.path) has no heading \(anchor)")
        }
    }

    @Test("a line of prose has at most 200 columns; a row of a table may have more", arguments: pages)
    func widths(path: String) throws {
        #expect(try Page(path).prose.filter { $0.count > 200 && !$0.hasPrefix("|") } == [])
    }

    @Test("the README starts the program that CI builds, by the command of CI")
    func start() throws {
        let build = "swift build -c release --static-swift-stdlib --product storekeeper"
        #expect(try Tree.text(".ci/package").contains(build))
        #expect(try Tree.text("README.md").contains("\(build) && .build/release/storekeeper\n"))
    }

    @Test("links lead from the README to every page")
    func reachable() throws {
        var reached: Set = ["README.md"]
        var next = ["README.md"]
        while let path = next.popLast() {
            let new = try Page(path).links.map(\.path).filter { Self.pages.contains($0) && !reached.contains($0) }
            reached.formUnion(new)
            next += new
        }

        #expect(Set(Self.pages).subtracting(reached).sorted() == [])
    }

    @Test("a decision has a question, a choice, its price and a sign of being wrong, on a page", arguments: decisions)
    func decision(path: String) throws {
        let page = try Page(path)
        let parts = ["The choice", "What we gave up", "How we would know it was wrong"]

        #expect(page.prose.dropFirst(2).prefix { !$0.isEmpty }.contains { $0.contains("?") }, "it begins with none")
        #expect(page.headings == parts || page.headings == ["The question"] + parts)
        #expect(try Tree.text(path).split(whereSeparator: \.isWhitespace).count <= 750)
    }

    @Test("a page that a comment names is there")
    func named() throws {
        let names = Set(Self.pages.map { $0.split(separator: "/").last ?? "" })
        for file in Tree.swiftFiles(below: "Sources") {
            for name in try Tree.text(file).matches(of: /`(?:[A-Z]\w+\/)*([A-Z][a-z]\w*\.md)`/).map(\.1) {
                #expect(names.contains(name), "\(file) names \(name)")
            }
        }
    }
}
