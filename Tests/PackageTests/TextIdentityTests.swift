import Foundation
import Testing

/// Texts from outside are keys and identities by their bytes: `ExactText` says so, and a `String` does not.
@Suite("Texts as keys")
struct TextIdentityTests {
    /// The files of the server that keep something by a `String`, with the reason why none of these texts is an identity from
    /// outside.
    static let keyed: [(file: String, because: String)] = [
        ("HTTPMessages/Response.swift", "codes of the server's problems"),
        ("MicroHTTP/Exchange.swift", "addresses of objects"),
        ("MicroHTTP/HTTPServer.swift", "paths of small letters, which equal no other text"),
        ("MicroHTTP/Loop/LoopContext.swift", "addresses, and shares, which are ASCII"),
        ("MicroHTTP/Loop/MemoryBudget.swift", "addresses, and shares, which are ASCII"),
        ("MicroHTTP/Requests/PostponedRequests.swift", "addresses, and shares, which are ASCII"),
        ("StateHTTP/Access/VisibleStore.swift", "declared names, found by value(named:)"),
        ("StateHTTP/Answers/DispatchAnswers.swift", "codes of the server's problems"),
        ("StateHTTP/Contract.swift", "declared names, found by value(named:)"),
        ("StateHTTP/Descriptions/OpenAPIDocument.swift", "names of the domain"),
        ("StateHTTP/Descriptions/StoreDocuments.swift", "declared names"),
        ("StateHTTP/DurableStreams/DurableRead.swift", "tags, which say only what the client has"),
        ("StateHTTP/DurableStreams/StateMessages.swift", "names of parts, which are small letters"),
        ("StateHTTP/Requests/ReadRequests.swift", "tags, which say only what the client has"),
        ("StateJSON/Coding/JSONDecoding.swift", "the type of a probe"),
        ("StateJSON/Coding/JSONEncoding.swift", "the type of a probe"),
        ("StateJournal/Operating/JournalFacts.swift", "names of files"),
        ("StateServer/Access/Authenticator.swift", "addresses"),
        ("StateServer/Cluster/Cluster.swift", "names of header fields"),
        ("StateServer/Commands/ServerCommand.swift", "names of options"),
        ("StateServer/Commands/SettingsOptions.swift", "names of settings"),
        ("StateServer/Hooks/Hooks.swift", "names that the server has made"),
        ("StateServer/Metrics/ExportedMetrics.swift", "names of metrics"),
        ("StateServer/Metrics/ServerMetrics.swift", "names of metrics and codes of problems"),
        ("StateServer/RequestHandler/RequestHandler.swift", "allowed origins, found by value(named:)"),
        ("StateServer/RequestHandler/SlowReads.swift", "addresses, and shares, which are ASCII"),
        ("StateServer/RequestHandler/WatchedRequests.swift", "requests and clients, whose texts are ASCII or exact"),
        ("StateServer/Settings/Setting.swift", "names of settings"),
        ("StateServer/Settings/Settings+Reading.swift", "names of settings"),
        ("StateStore/Domain/ActionEntry.swift", "declared names, found by value(named:)"),
        ("StateStore/Domain/CompiledDomain.swift", "declared names, of actions and views that the contract has found"),
        ("StateStore/Domain/Declaration.swift", "names of parts, which are small letters"),
        ("StateStore/Domain/Effect.swift", "names that a domain gives to its effects"),
        ("StateStore/Domain/Lifecycle.swift", "the store's own types"),
        ("StateStore/Domain/StandardAction.swift", "members of a payload, which are the domain's"),
        ("StateStore/Hub/Entities/EntityChanges.swift", "names of parts, which are small letters"),
        ("StateStore/Hub/History/Changes.swift", "declared types"),
        ("StateStore/Hub/HubStorage.swift", "addresses, and shares, which are ASCII"),
        ("StateStore/Hub/SelectionIndex.swift", "declared names"),
        ("StateStore/Hub/Snapshot.swift", "names of content codings"),
        ("StateStore/Hub/WatchHub+FanOut.swift", "addresses, and shares, which are ASCII"),
        ("StateStore/Hub/WatchHub.swift", "addresses, and shares, which are ASCII"),
        ("StateStore/SlowWork.swift", "addresses, and shares, which are ASCII"),
        ("StateStore/Turn/Mailbox.swift", "types of the domain, and clients"),
        ("Threads/ClientTurns.swift", "addresses, and shares, which are ASCII"),
    ]

    /// The lines that compare a subject, an ID or another name, with the reason why that compares bytes, or no text from
    /// outside.
    static let compared: [(file: String, line: String, because: String)] = [
        (
            "MicroHTTP/Loop/ListeningSocket.swift",
            "guard host == \"::\", code != EADDRINUSE, code != EACCES else {", "a setting"
        ),
        (
            "StateHTTP/Access/AllowedNames.swift",
            "private static func isWildcard(_ host: String) -> Bool { host == \"0.0.0.0\" || host == \"::\" }",
            "a setting"
        ),
        (
            "StateHTTP/Access/AllowedNames.swift",
            "host.hasPrefix(\"127.\") || host == \"::1\" || host.lowercased() == \"localhost\"", "a setting"
        ),
        (
            "StateHTTP/Access/VisibleStore.swift", "if let subject, subject != own { filter.paths = .nothing }",
            "both are exact texts"
        ),
    ]

    /// The sources of the server itself: a client trusts what it says.
    private static let files = Tree.swiftFiles(below: "Sources").filter { file in
        !file.hasPrefix("Sources/StateServerTesting/")
    }

    /// The lines of a file that are no comments, without the spaces around them.
    private static func lines(of file: String) throws -> [String] {
        try Tree.text(file).components(separatedBy: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.hasPrefix("//") }
    }

    static func isKeyed(_ line: String) -> Bool {
        line.contains("[String: ") || line.contains("Set<String>")
            || line.contains("Dictionary(grouping:") && !line.contains("JSONKey(")
    }

    static func isComparison(_ line: String) -> Bool {
        let name = "(subject|by|iss|issuer|aud|audience|kid|keyID|host|clientID|firstID|ownID)"
        let behind = "(?<![A-Za-z])\(name)\\)? (==|!=) (?!nil)"
        let before = "(==|!=) ([A-Za-z]+[?]?[.])*\(name)(?![A-Za-z(])"
        return !line.contains("ExactText")
            && [behind, before].contains { line.range(of: $0, options: .regularExpression) != nil }
    }

    @Test("nothing from outside is kept by a String")
    func keys() throws {
        let found = try Self.files.filter { try Self.lines(of: $0).contains(where: Self.isKeyed) }

        #expect(found == Self.keyed.map { "Sources/\($0.file)" })
    }

    @Test("no subject, ID, host or claim is compared as a String")
    func comparisons() throws {
        let found = try Self.files.flatMap { file in
            try Self.lines(of: file).filter(Self.isComparison).map { "\(file): \($0)" }
        }

        #expect(found == Self.compared.map { "Sources/\($0.file): \($0.line)" })
    }

    @Test(
        "the searches find what they look for",
        arguments: [
            ("private var records: [String: KeyRecord] = [:]", true), ("var views: Set<String>?", true),
            ("Dictionary(grouping: parts) { $0.tokens[depth] }", true),
            ("Dictionary(grouping: parts) { JSONKey($0.tokens[depth]) }", false),
            ("if subject == self.subject {", true), ("guard id == keyID else", true),
            ("if let by, by != commit.by { return false }", true), ("claims.iss == issuer", true),
            ("issuer == nil", false), ("ExactText(optional: by) == ExactText(optional: subject)", false),
            ("let byClient: [ExactText: Int]", false),
        ])
    func searches(line: String, isFound: Bool) {
        #expect((Self.isKeyed(line) || Self.isComparison(line)) == isFound)
    }
}
