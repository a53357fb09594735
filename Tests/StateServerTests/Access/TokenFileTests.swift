import Foundation
import HTTPMessages
import HTTPTypes
import Logging
import StateHTTP
import Synchronization
import Testing

@testable import StateServer
@testable import StateStore
@testable import TestSupport

/// A directory of a test, which goes with it.
private final class Place {
    let url = FileManager.default.temporaryDirectory.appending(path: "tokens-\(UUID().uuidString)")
    var path: String { url.appending(path: "tokens.json").path }
    var file: TokenFile { TokenFile(path: path) }

    init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(at: url) }

    var mode: Int? { (try? FileManager.default.attributesOfItem(atPath: path))?[.posixPermissions] as? Int }

    func link(to destination: String) throws {
        try? FileManager.default.removeItem(atPath: path)
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: destination)
    }
}

private func entry(_ subject: String, _ grant: Grant = .everything) -> (token: String, entry: TokenEntry) {
    let token = Token()
    return (token.text, TokenEntry(token, subject: subject, grant))
}

@Suite("The token file", .timeLimit(.minutes(5)))
struct TokenFileTests {
    @Test("changes at the same time all count")
    func concurrent() throws {
        let place = try Place()
        let file = place.file
        let faults = Mutex(0)

        DispatchQueue.concurrentPerform(iterations: 48) { number in
            do throws(SettingsFault) {
                try file.change { $0 = ($0 ?? []) + [entry("s\(number)").entry] }
            } catch { faults.withLock { $0 += 1 } }
        }
        let made = try #require(try file.read())
        DispatchQueue.concurrentPerform(iterations: 48) { number in
            do throws(SettingsFault) {
                try file.change { $0?.removeAll { $0.id == made[number].id && number < 24 } }
            } catch { faults.withLock { $0 += 1 } }
        }

        #expect(faults.withLock { $0 } == 0)
        #expect(Set(made.map(\.subject)).count == 48)
        #expect(try file.read() == Array(made[24...]))
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.url.path) == ["tokens.json"])
    }

    @Test("a new file is for its owner alone, and a change keeps the mode, and a link")
    func mode() throws {
        let place = try Place()
        try place.file.change { $0 = [entry("a").entry] }
        #expect(place.mode == 0o600)

        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: place.path)
        try place.file.change { $0 = [] }
        #expect(place.mode == 0o640)

        let behind = place.url.appending(path: "behind.json").path
        try FileManager.default.moveItem(atPath: place.path, toPath: behind)
        try place.link(to: "behind.json")
        try place.file.change { $0 = [entry("b").entry] }
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: place.path) == "behind.json")
        #expect(try TokenFile(path: behind).read()?.map(\.subject) == ["b"])
    }

    @Test("only a file that is not there is none; any other failure is a fault with its reason")
    func missing() throws {
        let place = try Place()
        #expect(try place.file.read() == nil)
        #expect(try KeyFile(path: place.path).read() == nil)

        try Data("{}".utf8).write(to: URL(filePath: place.path))
        for path in [place.path + "/below.json", place.url.path] {
            #expect(throws: SettingsFault.self) { try TokenFile(path: path).read() }
            #expect(throws: SettingsFault.self) { try KeyFile(path: path).read() }
        }
        try place.link(to: place.path)
        do {
            _ = try place.file.read()
            Issue.record("a link to itself was read")
        } catch {
            #expect(error.description.contains("the token file \(place.path) cannot be read: Too many levels"))
        }
    }

    @Test("a start finds the first token that a command has made since")
    func first() throws {
        let place = try Place()
        try place.file.change { $0 = [entry("a").entry] }

        try place.file.change { if $0 == nil { $0 = [entry("admin").entry] } }

        #expect(try place.file.read()?.map(\.subject) == ["a"])
    }
}

@Suite("The end of a token of the file")
struct TokenEndTests {
    @Test(
        "an end is a time to come, or a number with a unit",
        arguments: [
            ("2030-01-31T12:00:00Z", 1_896_091_200_000), ("2030-01-31T12:00:00+01:00", 1_896_087_600_000),
            ("1s", 1_000_001_000), ("45m", 1_002_700_000), ("12h", 1_043_200_000), ("90d", 8_776_000_000),
            ("99999d", 8_640_913_600_000),
        ] as [(String, Int64)])
    func ends(text: String, milliseconds: Int64) throws {
        let now = Timestamp(milliseconds: 1_000_000_000)

        #expect(try TokenCreate.end(text, after: now) == Timestamp(milliseconds: milliseconds))
    }

    @Test(
        "any other text is refused",
        arguments: [
            "", "d", "0d", "-1d", "1.5h", "5", "5w", "1 d", "2999999d", "99999999999999999999d", "1970-01-01T00:00:00Z",
            "2030-01-31T12:00:00", "2030-01-31", "tomorrow", "٣d",
        ])
    func refused(text: String) {
        #expect(throws: SettingsFault.self) { try TokenCreate.end(text, after: Timestamp(milliseconds: 1_000_000_000)) }
    }

    @Test("an entry keeps its end, one of an older program has none, and one that cannot be read is a fault")
    func entries() throws {
        let file = try Place().file
        let old = entry("a").entry
        let brief = TokenEntry(Token(), subject: "b", .everything, expires: "2030-01-31T12:00:00.000Z")
        try file.change { $0 = [old, brief] }
        #expect(try file.read()?.map(\.end) == [nil, Timestamp(milliseconds: 1_896_091_200_000)])

        var wrong = brief
        wrong.expires = "soon"
        #expect(wrong != brief)
        try file.change { $0 = [wrong] }
        #expect(throws: SettingsFault.self) { try file.read() }
    }

    @Test("a token of a program that knew no forks allows them where it allowed everything, and no other one does")
    func olderPrograms() throws {
        let file = try Place().file
        func forks(_ grant: String) throws -> Bool? {
            let entry = #"{"id":"t1","subject":"a","hash":"sha256:00","created":"","grant":\#(grant)}"#
            return try file.entries(in: Data(#"{"tokens":[\#(entry)]}"#.utf8))?.first?.grant.fork
        }
        let all = #""read":["*"],"dispatch":["*"],"others":true,"operate":true"#

        #expect(try forks("{\(all)}") == true)
        #expect(try forks("{\(all),\"fork\":false}") == false)
        #expect(try forks("{\(all),\"fork\":true}") == true)
        #expect(try forks(#"{"read":["*"],"dispatch":["*"],"others":true}"#) == false)
    }
}

@Suite("A token that the server does not know yet", .timeLimit(.minutes(5)))
struct NewTokenTests {
    private final class Clock: Sendable {
        let seconds = Mutex(1000.0)
    }

    /// The codes of the answers to a token, in which nil stands for one that is taken.
    private func code(_ token: String, _ authenticator: Authenticator, client: String = "192.0.2.1") async -> String? {
        let request = Request(target: "/v1/state", fields: [.authorization: "Bearer \(token)"], client: client)
        switch authenticator.authenticate(request) {
        case .known(.success): return nil
        case .known(.failure(let problem)): return problem.code
        case .unverified(let text):
            let problem: Problem? = await withCheckedContinuation { continuation in
                if !authenticator.verify(text, for: client, { continuation.resume(returning: $0) }) {
                    continuation.resume(returning: .tooManyVerifications)
                }
            }
            if let problem { return problem.code }
            guard case .known(.success) = authenticator.authenticate(request) else { return "not known" }
            return nil
        }
    }

    @Test("a token counts with its first request, and the file is looked at ten times a second at most")
    func newer() async throws {
        let (place, clock) = (try Place(), Clock())
        let first = entry("first")
        try place.file.change { $0 = [first.entry] }
        let authenticator = Authenticator(
            try CompiledDomain(Demo()).catalogue, tokens: try place.file.read(),
            file: WatchedFile(place.file.file, decode: place.file.entries),
            now: { Instant(nanoseconds: Int64(clock.seconds.withLock { $0 } * 1e9)) },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        #expect(await code(first.token, authenticator) == nil)

        for number in 0..<5 {
            let made = entry("s\(number)")
            try place.file.change { $0 = ($0 ?? []) + [made.entry] }
            #expect(await code(made.token, authenticator) == nil)
            // The same tenth of a second again: the look comes at its end.
            let late = entry("late\(number)")
            try place.file.change { $0 = ($0 ?? []) + [late.entry] }
            #expect(await code(late.token, authenticator) == nil)
            clock.seconds.withLock { $0 += 1 }
        }
        #expect(await code("sk_unknown", authenticator) == "unauthorized")
        // A look that finds a token gone ends its access, and the next refresh says so.
        try place.file.change { $0?.removeAll { $0.subject == "first" } }
        clock.seconds.withLock { $0 += 1 }
        #expect(await code("sk_unknown", authenticator) == "unauthorized")
        #expect(await code(first.token, authenticator) == "unauthorized")
        #expect(authenticator.refresh())
        #expect(!authenticator.refresh())
    }

    @Test("an address that has used up its failures is refused without a look")
    func throttled() async throws {
        let (place, clock) = (try Place(), Clock())
        try place.file.change { $0 = [entry("first").entry] }
        let authenticator = Authenticator(
            try CompiledDomain(Demo()).catalogue, tokens: try place.file.read(),
            file: WatchedFile(place.file.file, decode: place.file.entries),
            now: { Instant(nanoseconds: Int64(clock.seconds.withLock { $0 } * 1e9)) },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })

        var codes: [String?] = []
        for number in 0..<25 { codes.append(await code("sk_\(number)", authenticator)) }

        #expect(codes.count { $0 == "unauthorized" } == 20 && codes.count { $0 == "too-many-failures" } == 5)
        let made = entry("new")
        try place.file.change { $0 = ($0 ?? []) + [made.entry] }
        #expect(await code(made.token, authenticator) == "too-many-failures")
        #expect(await code(made.token, authenticator, client: "192.0.2.2") == nil)
    }

    @Test("a token of the file ends at its time, and does not count as unknown then")
    func ends() async throws {
        let (place, clock) = (try Place(), Clock())
        let token = Token()
        try place.file.change {
            $0 = [TokenEntry(token, subject: "brief", .everything, expires: "1970-01-01T00:20:00Z")]
        }
        let authenticator = Authenticator(
            try CompiledDomain(Demo()).catalogue, tokens: try place.file.read(),
            file: WatchedFile(place.file.file, decode: place.file.entries),
            now: { Instant(nanoseconds: Int64(clock.seconds.withLock { $0 } * 1e9)) },
            date: { Timestamp(milliseconds: Int64(clock.seconds.withLock { $0 } * 1000)) },
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        clock.seconds.withLock { $0 = 1197 }
        #expect(await code(token.text, authenticator) == nil)
        #expect(!authenticator.refresh() && !authenticator.isEndNear)
        clock.seconds.withLock { $0 = 1199.9 }
        #expect(!authenticator.refresh() && authenticator.isEndNear)
        #expect(await code(token.text, authenticator) == nil)
        #expect(authenticator.rejection(of: Demo.Add(amount: 1), by: "brief", with: .file) == nil)

        clock.seconds.withLock { $0 = 1200 }
        for _ in 0..<50 { #expect(await code(token.text, authenticator) == "unauthorized") }
        #expect(authenticator.rejection(of: Demo.Add(amount: 1), by: "brief", with: .file)?.code == "token-revoked")
        #expect(authenticator.refresh())
        #expect(!authenticator.refresh() && !authenticator.isEndNear && authenticator.grants.isEmpty)
    }
}

@Suite("A token file that cannot be read", .timeLimit(.minutes(5)))
struct UnreadableTokensTests {
    private final class Clock: Sendable {
        let seconds = Mutex(1000.0)
    }

    /// An authenticator with a token file, and a clock that the test turns.
    private final class Door {
        let place: Place
        let clock = Clock()
        let token: String
        let authenticator: Authenticator

        init(isOpen: Bool = false) throws {
            place = try Place()
            let made = entry("ci")
            token = made.token
            if !isOpen { try place.file.change { $0 = [made.entry] } }
            let file = place.file
            authenticator = Authenticator(
                try CompiledDomain(Demo()).catalogue, tokens: try file.read(),
                file: WatchedFile(file.file, decode: file.entries),
                now: { [clock] in Instant(nanoseconds: Int64(clock.seconds.withLock { $0 } * 1e9)) },
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        }

        /// The code of the answer to a request with the token; nil where it is taken.
        var code: String? {
            let request = Request(target: "/v1/state", fields: [.authorization: "Bearer \(token)"], client: "192.0.2.1")
            guard case .known(.failure(let problem)) = authenticator.authenticate(request) else { return nil }
            return problem.code
        }

        func refresh(at time: Double) -> Bool {
            clock.seconds.withLock { $0 = time }
            return authenticator.refresh()
        }
    }

    @Test("the server is not ready at once, takes no credential after ten seconds, and all again when it can read")
    func shut() throws {
        let door = try Door()
        let tokens = try Data(contentsOf: URL(filePath: door.place.path))
        guard
            case .known(.success(let access)) = door.authenticator.authenticate(
                Request(target: "/v1/state", fields: [.authorization: "Bearer \(door.token)"]))
        else {
            Issue.record("the token is not taken")
            return
        }
        #expect(door.authenticator.unreadableReason == nil)

        try door.place.link(to: door.place.path)
        #expect(!door.refresh(at: 1000))
        #expect(door.authenticator.unreadableReason?.contains("Too many levels") == true)
        #expect(!door.refresh(at: 1009.9))
        #expect(door.code == nil && !access.hasEnded)
        #expect(door.refresh(at: 1010))
        #expect(door.code == "tokens-unreadable" && access.hasEnded)
        #expect(!door.refresh(at: 1011))

        try FileManager.default.removeItem(atPath: door.place.path)
        try tokens.write(to: URL(filePath: door.place.path))
        #expect(!door.refresh(at: 1012))
        #expect(door.authenticator.unreadableReason == nil)
        #expect(door.code == nil)
    }

    @Test("a file that can be read again within ten seconds ends no access")
    func recovered() throws {
        let door = try Door()
        let tokens = try Data(contentsOf: URL(filePath: door.place.path))

        for start in [1000.0, 1009] {
            try door.place.link(to: door.place.path)
            #expect(!door.refresh(at: start))
            try FileManager.default.removeItem(atPath: door.place.path)
            try tokens.write(to: URL(filePath: door.place.path))
            #expect(!door.refresh(at: start + 8))
        }

        #expect(door.code == nil)
    }

    @Test("a server that was open lets no client in either: there is a file, and it does not know the tokens")
    func open() throws {
        let door = try Door(isOpen: true)
        #expect(!door.authenticator.isProtected)

        try door.place.link(to: door.place.path)
        #expect(!door.refresh(at: 1000))
        #expect(door.refresh(at: 1010))

        #expect(door.code == "tokens-unreadable")
    }

    @Test(
        "a server that is open by itself refuses what came by a proxy, until it has a token",
        arguments: [
            "Forwarded", "Via", "X-Forwarded-For", "x-forwarded-proto", "X-Forwarded-Anything", "X-Real-IP",
        ])
    func proxied(field: String) throws {
        let door = try Door(isOpen: true)
        let name = try #require(HTTPField.Name(field))
        func problem(_ fields: HTTPFields) -> Problem? {
            let request = Request(target: "/v1/state", fields: fields, client: "127.0.0.1")
            guard case .known(.failure(let problem)) = door.authenticator.authenticate(request) else { return nil }
            return problem
        }

        #expect(problem([.origin: "http://localhost"]) == nil)
        let refusal = try #require(problem([name: "x"]))
        #expect(refusal.status == .unauthorized && refusal.code == "unauthorized")
        #expect(refusal.detail.contains("token create --subject admin --all") && refusal.detail.contains("--open"))
        #expect(refusal.fields.contains(.wwwAuthenticate))

        let made = entry("ci")
        try door.place.file.change { $0 = [made.entry] }
        _ = door.refresh(at: 1001)
        #expect(problem([name: "x", .authorization: "Bearer \(made.token)"]) == nil)
    }

    @Test("a byte order mark before the tokens is skipped")
    func mark() throws {
        let door = try Door()
        let url = URL(filePath: door.place.path)

        try (Data("\u{FEFF}".utf8) + Data(contentsOf: url)).write(to: url)
        _ = door.refresh(at: 1000)

        #expect(door.code == nil && door.authenticator.unreadableReason == nil)
        #expect(try door.place.file.read()?.count == 1)
    }

    @Test("a file that is misspelled locks no client out")
    func misspelled() throws {
        let door = try Door()

        try Data("{".utf8).write(to: URL(filePath: door.place.path))
        #expect(!door.refresh(at: 1000))
        #expect(!door.refresh(at: 1020))

        #expect(door.code == nil)
        #expect(door.authenticator.unreadableReason == nil)
    }
}

@Suite("Warnings about a grant")
struct GrantWarningTests {
    @Test(
        "an entry that names nothing of the domain has a warning with the nearest name",
        arguments: [
            (Grant(read: ["/taskss"]), ["read /taskss: the state has no such part; did you mean /tasks?"]),
            (Grant(dispatch: ["taks/*"]), ["dispatch taks/*: no action type begins so; did you mean tasks/*?"]),
            (
                Grant(dispatch: ["counter/ad"]),
                ["dispatch counter/ad: there is no such action type; did you mean counter/add?"]
            ),
            (Grant(read: ["view:nosuch"]), ["read view:nosuch: there is no such view"]),
            (Grant(read: ["store:task"]), ["read store:task: there is no such derived store; did you mean tasks?"]),
            (
                Grant(read: ["actions:tasks/ad"]),
                ["read actions:tasks/ad: there is no such action type; did you mean tasks/add?"]
            ),
            (Grant(), ["the token allows nothing: it has no read and no dispatch"]),
            (Grant(others: true), ["the token allows nothing: it has no read and no dispatch"]),
            (Grant(operate: true), []),
            (Grant.everything, []),
            (
                Grant(
                    read: [
                        "/tasks", "/tasks/entities/1/title", "/counter", "actions:tasks/*", "actions:*", "store:tasks",
                    ],
                    dispatch: ["tasks/*", "counter/add", "c*"]), []
            ),
        ])
    func warnings(grant: Grant, expected: [String]) throws {
        #expect(grant.warnings(in: try CompiledDomain(Demo()).catalogue) == expected)
    }
}
