import Foundation
import Testing

/// The source tree on the disk.
enum Tree {
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// The files below a folder whose names end so, as paths from the root.
    static func files(below folder: String, suffix: String) -> [String] {
        let found = FileManager.default.enumerator(atPath: root.appending(path: folder).path)
        return (found?.compactMap { $0 as? String } ?? []).filter { $0.hasSuffix(suffix) }.sorted()
            .map { "\(folder)/\($0)" }
    }

    static func swiftFiles(below folder: String) -> [String] { files(below: folder, suffix: ".swift") }

    static func imports(of path: String) throws -> Set<String> {
        let lines = try text(path).split(separator: "\n")
        return Set(
            lines.compactMap { line in
                let words = line.split(separator: " ").filter { !$0.hasPrefix("@") }
                guard let position = words.firstIndex(of: "import"), position <= 1, words.count > position + 1 else {
                    return nil
                }
                // `import struct Module.Name` and `import Module` alike.
                return String(words[words.count - 1].prefix { $0 != "." })
            })
    }
}

@Suite("The import table")
struct ImportTests {
    static let own: Set<String> = [
        "CCrypto", "CCurl", "CDocuments", "CMicroHTTPD", "CModelEngine", "CPage", "CRE2", "CSignatures",
        "CSimdjson", "CXXHash", "CZlib", "CZstd",
        "Documents", "HTTPClient", "Models", "StateCluster", "StateJSON", "HTTPMessages",
        "Queries", "StateStore", "StateHTTP", "MicroHTTP", "StateJournal", "StateServer",
        "StateServerTesting",
        "Showcase", "StateClient", "Threads",
    ]

    /// The targets of this package that a target may import, and the other modules that it may not.
    static let table: [(target: String, may: Set<String>, mayNot: Set<String>)] = [
        ("StateJSON", ["CSimdjson", "CXXHash"], ["Foundation", "Dispatch", "Logging", "HTTPTypes"]),
        ("HTTPClient", ["CCurl"], ["Foundation", "Dispatch", "Logging", "HTTPTypes", "Glibc"]),
        ("HTTPMessages", ["CZlib", "CZstd"], ["Foundation", "Dispatch", "Logging", "Glibc"]),
        ("Threads", [], ["Foundation", "Dispatch", "Logging", "HTTPTypes"]),
        ("StateStore", ["StateJSON", "Threads"], ["Foundation", "Logging", "HTTPTypes", "Glibc", "GRDB"]),
        (
            "StateHTTP", ["CDocuments", "HTTPMessages", "Queries", "StateJSON", "StateStore"],
            ["Foundation", "Dispatch", "Logging", "Glibc", "GRDB"]
        ),
        ("MicroHTTP", ["CMicroHTTPD", "CXXHash", "HTTPMessages", "Threads"], ["Foundation", "Logging"]),
        // A program with the client links neither the server nor what the server links.
        (
            "StateClient", ["StateJSON", "StateStore"],
            ["Dispatch", "Glibc", "HTTPTypes", "Logging", "GRDB"]
        ),
        ("StateJournal", ["StateJSON", "StateStore"], ["HTTPTypes", "Logging"]),
        (
            "StateCluster", ["HTTPClient", "StateJSON", "StateJournal", "StateStore"],
            ["HTTPTypes", "Logging", "Glibc", "GRDB"]
        ),
        (
            "StateServer",
            [
                "CCrypto", "CPage", "CSignatures", "CXXHash", "HTTPClient", "HTTPMessages", "MicroHTTP", "StateCluster",
                "StateHTTP", "StateJSON", "StateJournal", "StateStore", "Threads",
            ],
            ["GRDB"]
        ),
        (
            "StateServerTesting", ["HTTPMessages", "StateJSON", "StateServer", "StateStore"], ["Dispatch", "Glibc"]
        ),
        ("Showcase", ["StateStore"], ["Foundation", "Dispatch", "Logging", "HTTPTypes", "Glibc"]),
        (
            "Queries", ["CRE2", "StateJSON", "StateStore"],
            ["Foundation", "Dispatch", "Logging", "HTTPTypes", "Glibc"]
        ),
        ("Documents", ["StateJSON", "StateStore"], ["Foundation", "Dispatch", "Logging", "HTTPTypes", "Glibc"]),
        (
            "Models", ["CModelEngine", "StateJSON", "StateStore"],
            ["Foundation", "Dispatch", "Logging", "HTTPTypes", "Glibc"]
        ),
        (
            "storekeeper",
            ["Documents", "HTTPClient", "Models", "Queries", "Showcase", "StateJSON", "StateServer", "StateStore"],
            ["GRDB", "HTTPTypes"]
        ),
    ]

    /// Further modules that a single file may import, with the reason.
    static let exceptions: [String: Set<String>] = [
        // Thread-specific data: neither Dispatch nor Synchronization offers it.
        "Sources/StateStore/Turn/ReductionMark.swift": ["Glibc"]
    ]

    @Test("a target imports only the modules that the table allows", arguments: table.map(\.target))
    func holds(target: String) throws {
        let row = try #require(Self.table.first { $0.target == target })
        let files = Tree.swiftFiles(below: "Sources/\(target)")
        #expect(!files.isEmpty)

        for file in files {
            let imports = try Tree.imports(of: file)
            #expect(imports.intersection(Self.own).isSubset(of: row.may), "\(file)")
            #expect(imports.isDisjoint(with: row.mayNot.subtracting(Self.exceptions[file] ?? [])), "\(file)")
        }
    }

    @Test("every target is in the table")
    func complete() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Tree.root.appending(path: "Sources").path)

        #expect(
            Set(folders).subtracting([
                "CCrypto", "CCurl", "CDocuments", "CZlib", "CZstd", "CJemalloc", "CMicroHTTPD", "CModelEngine", "CPage",
                "CRE2", "CSignatures", "CSimdjson", "CXXHash",
            ]) == Set(Self.table.map(\.target)))
    }
}

@Suite("The source tree")
struct TreeTests {
    @Test("every unchecked statement says what guards the value")
    func unchecked() throws {
        for file in Tree.swiftFiles(below: "Sources") {
            let lines = try Tree.text(file).split(separator: "\n", omittingEmptySubsequences: false)
            for (index, line) in lines.enumerated()
            where !line.contains("//") && (line.contains("@unchecked Sendable") || line.contains("nonisolated(unsafe)"))
            {
                let above = lines[max(0, index - 4)..<index].joined(separator: "\n")
                #expect(above.contains("unchecked") || above.contains("unsafe"), "\(file):\(index + 1)")
            }
        }
    }

    @Test("what the compiler does not check becomes no more")
    func excused() throws {
        let lines = try Tree.swiftFiles(below: "Sources").flatMap { try Tree.text($0).split(separator: "\n") }
            .filter { !$0.contains("//") }

        #expect(lines.count { $0.contains(": @unchecked Sendable") } <= 5)
    }

    @Test("a variable whose accesses nobody checks is one that each request asks for, and its file says who owns it")
    func exclusivity() throws {
        // A check takes as long as ten accesses, and a POST passed 60. Elsewhere a build finds accesses that overlap.
        let files = try Tree.swiftFiles(below: "Sources").filter {
            try Tree.text($0).contains("@exclusivity(unchecked)")
        }

        #expect(files.count <= 17)
        for file in files { #expect(try Tree.text(file).contains("// exclusivity unchecked: "), "\(file)") }
    }

    /// The files that look at the identity of an object or the address of bytes, with what keeps it from being another's.
    static let identities: [(file: String, because: String)] = [
        ("MicroHTTP/Exchange.swift", "a set holds its exchanges, and a grouping lasts for one call with them"),
        ("MicroHTTP/Loop/MemoryBudget.swift", "the count holds the bytes"),
        ("StateHTTP/Access/Access.swift", "a key holds the access"),
        ("StateHTTP/Descriptions/SchemaProbe.swift", "types, which do not end"),
        ("StateJSON/Coding/JSONEncoding.swift", "types, which do not end"),
        ("StateServer/Forks/Forks.swift", "a place leaves the list before it ends"),
        ("StateStore/Domain/Action.swift", "types do not end, and an entry holds its declaration"),
        ("StateStore/Domain/CompiledDomain.swift", "an entry holds its type"),
        ("StateStore/Hub/SelectionIndex.swift", "a key holds the selection"),
        ("StateStore/Subscriptions/Store+Subscribe.swift", "the caller holds the subscriber"),
        ("StateStore/Subscriptions/Subscribers.swift", "only the subscription of a released object ends by another's"),
    ]

    @Test("whatever is known by its address is held as long as it is known")
    func identities() throws {
        let spellings = ["ObjectIdentifier", "UInt(bitPattern:"]
        let found = try Tree.swiftFiles(below: "Sources").filter { file in
            let text = try Tree.text(file)
            return spellings.contains { text.contains($0) }
        }

        #expect(found == Self.identities.map { "Sources/\($0.file)" })
    }

    @Test("nothing but the agreed names is visible at the top")
    func top() throws {
        let visible = try FileManager.default.contentsOfDirectory(atPath: Tree.root.path).filter {
            // Building and serving leave these behind; they are not in the repository.
            !$0.hasPrefix(".") && !["Package.resolved", "data"].contains($0)
        }

        #expect(Set(visible) == ["Package.swift", "Sources", "Tests", "config", "Dockerfile", "README.md"])
    }

    @Test("no test is disabled")
    func disabled() throws {
        for file in Tree.swiftFiles(below: "Tests") where !file.hasSuffix("PackageTests.swift") {
            #expect(try !Tree.text(file).contains(".disabled("), "\(file)")
        }
    }
}

@Suite("Comments")
struct CommentTests {
    /// The sources but for a target that is being rewritten.
    private static let files = Tree.swiftFiles(below: "Sources").filter { !$0.hasPrefix("Sources/MicroHTTP/") }

    @Test("a documentation comment begins with a noun or a verb")
    func beginnings() throws {
        for file in Self.files {
            var isInside = false
            for line in try Tree.text(file).split(separator: "\n").map({ $0.drop { $0 == " " } }) {
                let isDocumentation = line.hasPrefix("///")
                if isDocumentation, !isInside {
                    #expect(line.prefixMatch(of: #/\/\/\/ (What|Those|Whatever|The one)\b/#) == nil, "\(file): \(line)")
                }
                isInside = isDocumentation
            }
        }
    }

    @Test("few comments tell what is not there")
    func riddles() throws {
        var found: [String] = []
        for file in Self.files {
            for line in try Tree.text(file).split(separator: "\n")
            where line.contains("//") && line.contains(#/nil where|is none|those that/#) {
                found.append("\(file): \(line)")
            }
        }

        #expect(found.count <= 40, "\(found.joined(separator: "\n"))")
    }
}

@Suite("The container")
struct ContainerTests {
    /// Debian's package for each shared library that the binary may need beyond the C library.
    static let packages = [
        "libcrypto.so.3": "libssl3", "libjemalloc.so.2": "libjemalloc2", "libmicrohttpd.so.12": "libmicrohttpd12",
        "libre2.so.9": "libre2-9", "libsimdjson.so.14": "libsimdjson14",
        "libsqlite3.so.0": "libsqlite3-0",
        "libstdc++.so.6": "libstdc++6", "libz.so.1": "zlib1g", "libzstd.so.1": "libzstd1",
    ]
    static let ofTheSystem: Set<String> = ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"]

    @Test("every path that the Dockerfile copies is there")
    func copied() throws {
        let copies = try Tree.text("Dockerfile").split(separator: "\n").filter {
            $0.hasPrefix("COPY ") && !$0.contains("--from")
        }
        #expect(copies.count >= 3)
        for copy in copies {
            for path in copy.split(separator: " ").dropFirst().dropLast() {
                #expect(FileManager.default.fileExists(atPath: Tree.root.appending(path: String(path)).path), "\(path)")
            }
        }
    }

    @Test("the image builds with the packages that a developer installs")
    func buildPackages() throws {
        let dockerfile = try Tree.text("Dockerfile")
        let line = try #require(Tree.text(".ci/install").split(separator: "\n").first { $0.hasPrefix("packages=") })
        for package in line.dropFirst("packages=\"".count).dropLast().split(separator: " ") {
            #expect(dockerfile.contains(package), "\(package)")
        }
    }

    @Test("the image runs with the libraries that the binary needs")
    func libraries() throws {
        let runtime = try #require(Tree.text("Dockerfile").components(separatedBy: "FROM debian").last)
        let binary = try #require(Self.binary)
        let needed = try Self.neededLibraries(of: binary)
        #expect(needed.contains("libmicrohttpd.so.12"))
        // Opened by what sends requests (hooks, a journal in etcd, films), and not needed without.
        #expect(runtime.contains("libcurl4") && !needed.contains("libcurl.so.4"))
        // The image's binary has the Swift libraries inside.
        for library in needed where !Self.ofTheSystem.contains(library) && !Self.isSwift(library) {
            let package = try #require(Self.packages[library], "no package is known for \(library)")
            #expect(runtime.contains(package), "\(library)")
        }
    }

    private static func isSwift(_ library: String) -> Bool {
        ["libswift", "libFoundation", "lib_Foundation", "libdispatch", "libBlocksRuntime"].contains(
            where: library.hasPrefix)
    }

    /// The executable that was built beside these tests.
    private static var binary: URL? {
        Bundle.allBundles.map { $0.bundleURL.deletingLastPathComponent().appending(path: "storekeeper") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
            ?? [CommandLine.arguments[0]].map {
                URL(fileURLWithPath: $0).deletingLastPathComponent().appending(path: "storekeeper")
            }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// The libraries that an ELF file names itself.
    private static func neededLibraries(of binary: URL) throws -> [String] {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/readelf")
        process.arguments = ["-d", binary.path]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return output.split(separator: "\n").filter { $0.contains("(NEEDED)") }.compactMap { line in
            line.split(separator: "[").last.map { String($0.prefix { $0 != "]" }) }
        }
    }
}

@Suite("The page")
struct PageFileTests {
    @Test("every file of the page is in the program, under its name")
    func files() throws {
        let source = try Tree.text("Sources/CPage/page.c")
        let names = try FileManager.default.contentsOfDirectory(
            atPath: Tree.root.appending(path: "Sources/CPage/files").path)

        for name in names {
            let array = name.replacing(#/[^a-z0-9]/#, with: "_")
            #expect(source.contains("static const char \(array)[] = {\n#embed \"files/\(name)\"\n};\n"), "\(name)")
            #expect(source.contains("FILE_OF(\"\(name)\", \(array)),"), "\(name)")
        }
        #expect(source.components(separatedBy: "#embed").count - 1 == names.count + 1)
    }

    @Test("every page of the documentation is in the program, under its path")
    func documents() throws {
        let source = try Tree.text("Sources/CPage/documents.c")
        let folder = "Sources/StateServer/StateServer.docc/"
        let pages = Tree.files(below: "Sources", suffix: ".md").filter { $0.hasPrefix(folder) }

        for name in pages.map({ $0.dropFirst(folder.count) }) {
            let entry = "    PAGE(\"\(name)\")\n#embed \"../StateServer/StateServer.docc/\(name)\"\n    END\n"
            #expect(source.contains(entry), "\(name)")
        }
        #expect(source.components(separatedBy: "#embed").count - 1 == pages.count + 1)
    }
}
