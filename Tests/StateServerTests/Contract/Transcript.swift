import Foundation
import HTTPMessages
import HTTPTypes
import StateHTTP
import Testing

@testable import StateServer
@testable import StateStore

/// A sequence of requests and answers as text.
///
/// A line of `=` divides exchanges, and a line of `-` divides the request of an exchange from its answer. Before a request
/// there can be prose (`#`) and directions (`@`):
///
/// - `@ from 10.0.0.2`: the address of the client.
/// - `@ 25 seconds pass`: in place of a request; requests whose time is up are answered.
/// - `@ the store drains`.
/// - `@ history of 3 commits`, `@ version 41`, `@ waiters 2, per client 1`, `@ depth 5`, `@ keys: at most 1`, `@ keys for 60 seconds`:
///   before the first request.
///
/// In a request, `$etag` and `$cursor` are replaced by the values of these fields in the answer before.
///
/// An answer is shown without its usual fields: `X-Content-Type-Options: nosniff` and
/// `Cross-Origin-Resource-Policy: same-origin` where it has a type other than `text/plain` and says how it is cached; and for
/// a problem also `Content-Type: application/problem+json` and `Cache-Control: no-store`. Where one of them is not there, all
/// that are there are shown, and a line that says so.
struct Transcript {
    struct Exchange {
        var request: String
        var answer: String
    }

    var exchanges: [Exchange]

    private static let heavy = "\n" + String(repeating: "=", count: 80) + "\n"
    private static let light = "\n" + String(repeating: "-", count: 80) + "\n"

    init(_ text: String) {
        exchanges = text.components(separatedBy: Self.heavy).map { part in
            let sides = part.components(separatedBy: Self.light)
            return Exchange(
                request: sides[0].trimmingCharacters(in: .newlines),
                answer: sides.dropFirst().joined(separator: Self.light).trimmingCharacters(in: .newlines))
        }
    }

    var text: String {
        exchanges.map { $0.request + Self.light + $0.answer }.joined(separator: "\n" + Self.heavy) + "\n"
    }

    /// The same requests with their present answers.
    func played() throws -> Transcript {
        var transcript = self
        var setting = Stage.Setting()
        for line in lines(of: exchanges[0].request) where line.hasPrefix("@ ") { try setting.set(line) }
        let stage = try Stage(setting)
        var fields = HTTPFields()
        for index in exchanges.indices {
            transcript.exchanges[index].answer = try Self.play(exchanges[index].request, on: stage, &fields)
        }
        return transcript
    }

    private func lines(of text: String) -> [String] { text.components(separatedBy: "\n") }

    private static func play(_ text: String, on stage: Stage, _ last: inout HTTPFields) throws -> String {
        var lines = text.components(separatedBy: "\n")[...]
        var client = "10.0.0.1"
        var answers: [String] = []
        while let line = lines.first, line.isEmpty || line.hasPrefix("#") || line.hasPrefix("@") {
            lines.removeFirst()
            if line.hasPrefix("@ from ") { client = String(line.dropFirst(7)) }
            if line == "@ the store drains" { stage.drain() }
            if line.hasSuffix(" seconds pass"),
                let seconds = line.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
            {
                stage.pass(.seconds(seconds))
                answers += stage.takeAnswers().map { "answer to \($0.number):\n" + Self.text($0.1, to: .get) }
            }
        }
        guard let first = lines.popFirst() else { return answers.joined(separator: "\n\n") }
        let parts = first.split(separator: " ", maxSplits: 1).map(String.init)
        let method = try #require(HTTPRequest.Method(parts[0]))
        var fields = HTTPFields()
        while let line = lines.popFirst(), !line.isEmpty {
            let sides = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            let name = try #require(HTTPField.Name(sides[0]))
            fields.append(HTTPField(name: name, value: Self.filled(sides[1], last)))
        }
        let request = Request(
            method: method, target: Self.filled(parts[1], last), fields: fields,
            body: Array(Self.filled(lines.joined(separator: "\n"), last).utf8), client: client)
        switch stage.receive(request) {
        case (_, let response?):
            last = response.fields
            answers.append(Self.text(response, to: method))
        case (let number, nil): answers.append("(request \(number) waits)")
        }
        for (number, response) in stage.takeAnswers() {
            answers.append("answer to \(number):\n" + Self.text(response, to: .get))
        }
        return answers.joined(separator: "\n\n")
    }

    private static func filled(_ text: String, _ fields: HTTPFields) -> String {
        text.replacingOccurrences(of: "$etag", with: fields[.eTag] ?? "$etag")
            .replacingOccurrences(of: "$cursor", with: fields[.stateCursor] ?? "$cursor")
    }

    /// The fields that an answer of its kind always has.
    private static func usualFields(of response: Response) -> [String] {
        let forBrowsers = ["X-Content-Type-Options: nosniff", "Cross-Origin-Resource-Policy: same-origin"]
        if response.status.code >= 400 {
            return ["Content-Type: application/problem+json", "Cache-Control: no-store"] + forBrowsers
        }
        let type = response.fields[.contentType] ?? "text/plain"
        return response.fields[.cacheControl] == nil || type.hasPrefix("text/plain") ? [] : forBrowsers
    }

    /// The answer as `curl -i` shows it, without its usual fields and those that the transport adds.
    private static func text(_ response: Response, to method: HTTPRequest.Method) -> String {
        var text = "\(response.status.code) \(response.status.reasonPhrase)\n"
        let lines = response.fields.map { "\($0.name.rawName): \($0.value)" }
        let usual = usualFields(of: response)
        let others = lines.filter { !usual.contains($0) }
        if others.count + usual.count == lines.count {
            for line in others { text += line + "\n" }
        } else {
            for line in lines + ["(without a usual field)"] { text += line + "\n" }
        }
        let isBodiless = method == .head || [204, 304].contains(response.status.code)
        if !isBodiless, !response.body.isEmpty { text += "\n" + String(decoding: response.body, as: UTF8.self) }
        return text.trimmingCharacters(in: .newlines)
    }
}

extension Stage.Setting {
    fileprivate mutating func set(_ line: String) throws {
        let words = line.dropFirst(2).split(whereSeparator: { $0 == " " || $0 == "," }).map(String.init)
        let numbers = words.compactMap { Int($0) }
        switch words.prefix(2).joined(separator: " ") {
        case "history of": limits.historyCommitsMax = try #require(numbers.first)
        case "keys for":
            limits.idempotencyLifetime = .seconds(try #require(numbers.first))
            contract.idempotencyLifetime = limits.idempotencyLifetime
        case let start where start.hasPrefix("keys"): limits.idempotencyKeysMax = try #require(numbers.first)
        case let start where start.hasPrefix("version"): version = Version(try #require(numbers.first))
        case let start where start.hasPrefix("depth"): contract.depthMax = try #require(numbers.first)
        case let start where start.hasPrefix("batches"): contract.batchActionsMax = try #require(numbers.last)
        case let start where start.hasPrefix("waiters"):
            watches = WatchLimits(
                watchesMax: try #require(numbers.first), watchesPerClientMax: try #require(numbers.last))
        case let start where start.hasPrefix("from"): break
        case let start where start.hasPrefix("origin"): origins.append(words[1])
        case let start where start.hasPrefix("token"):
            // The token of a subject is `token-of-` and its name.
            let grant = try JSONDecoder().decode(Grant.self, from: Data(line.drop { $0 != "{" }.utf8))
            let digest = Token.digest("token-of-\(words[1])").map(Token.hexadecimal).joined()
            let entry = TokenEntry(
                id: words[1], subject: words[1], hash: "sha256:\(digest)", created: "", grant: grant)
            tokens = (tokens ?? []) + [entry]
        default: throw Problem(.badRequest, "stage-direction", "\(line) is not understood")
        }
    }
}

extension Transcript {
    static let names = [
        "at-least", "backups", "batches", "browsers", "bulk-loads", "changes", "conditional-reads", "conditions",
        "descriptions",
        "dispatch",
        "derived-stores", "dry-runs", "durable-streams", "following", "forks", "grants", "idempotency",
        "idempotency-limit",
        "keyed", "newest-first",
        "lost-cursors",
        "methods", "past-versions",
        "preferences", "queries", "readiness", "reading",
        "refused-bodies", "restoring", "schedule", "schedule-tokens", "stopping", "streams", "traces", "view-arguments",
        "views", "waiter-caps",
        "waiting",
    ]
}

@Suite("Transcripts")
struct TranscriptTests {
    /// With `REWRITE_TRANSCRIPTS=1` in the environment the test writes the files anew, and a person reviews the difference.
    private static let isRewriting = ProcessInfo.processInfo.environment["REWRITE_TRANSCRIPTS"] == "1"

    @Test("the interface answers as its transcripts say", arguments: Transcript.names)
    func play(name: String) throws {
        let source = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Transcripts/\(name).txt")
        let file = Self.isRewriting ? source : try Self.folder().appending(path: "\(name).txt")
        let written = Transcript(try String(contentsOf: file, encoding: .utf8))

        let played = try written.played()

        guard !Self.isRewriting else { return try played.text.write(to: source, atomically: true, encoding: .utf8) }
        for (number, (expected, actual)) in zip(written.exchanges, played.exchanges).enumerated() {
            #expect(actual.answer == expected.answer, "exchange \(number + 1) of \(name).txt: \(expected.request)")
        }
    }

    @Test("every transcript is played")
    func listed() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder().path)

        #expect(Set(files) == Set(Transcript.names.map { "\($0).txt" }))
    }

    private static func folder() throws -> URL {
        try #require(Bundle.module.url(forResource: "Transcripts", withExtension: nil))
    }
}
