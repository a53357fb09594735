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

@Suite("Recognising clients with JSON Web Tokens", .timeLimit(.minutes(5)))
struct AuthenticatorTests {
    /// The clock, and what the verifier has been asked.
    final class World: Sendable {
        let seconds = Mutex(1000.0)
        let asked = Mutex<[String]>([])

        var now: Instant { Instant(nanoseconds: Int64(seconds.withLock { $0 } * 1e9)) }
        var date: Timestamp { Timestamp(milliseconds: Int64(seconds.withLock { $0 } * 1000)) }

        /// It takes the signature `key` for that of the key `key`.
        func verifies(_ token: SignedToken, _ key: VerificationKey) -> Bool {
            asked.withLock { $0.append(key.id ?? "") }
            return String(decoding: token.signature, as: UTF8.self) == key.id
        }
    }

    /// An authenticator with a key file.
    final class Door {
        let world = World()
        let file = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID().uuidString).json")
        private(set) var authenticator: Authenticator

        init(keys: [String] = ["a", "b"]) throws {
            try Self.write(keys, to: file)
            let catalogue = try CompiledDomain(Demo()).catalogue
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let signed = try SignedTokens(
                KeyFile(path: file.path), ClaimRules(leeway: .seconds(60)), catalogue,
                date: { [world] in world.date }, logger: logger, verifies: { [world] in world.verifies($0, $1) })
            authenticator = Authenticator(
                catalogue, tokens: nil, signed: signed, now: { [world] in world.now }, logger: logger)
        }

        deinit { try? FileManager.default.removeItem(at: file) }

        private static func write(_ keys: [String], to file: URL) throws {
            let x = String(repeating: "A", count: 43)
            let keys = keys.map { kid in
                #"{"kty":"OKP","crv":"Ed25519","x":"\#(kid == "bad" ? "AA" : x)","kid":"\#(kid)"}"#
            }
            try Data("{\"keys\":[\(keys.joined(separator: ","))]}".utf8).write(to: file, options: .atomic)
        }

        func write(_ keys: [String]) throws { try Self.write(keys, to: file) }

        /// A request with a token.
        func request(_ token: String, client: String = "192.0.2.1") -> Request {
            Request(target: "/v1/state", fields: [.authorization: "Bearer \(token)"], client: client)
        }

        /// The access of a token, after its verification where it needs one; nil where it is refused.
        func access(_ token: String, client: String = "192.0.2.1") async -> Access? {
            switch authenticator.authenticate(request(token, client: client)) {
            case .known(.success(let access)): return access
            case .known(.failure): return nil
            case .unverified(let token):
                guard await verify(token, client: client) == nil else { return nil }
                guard case .known(.success(let access)) = authenticator.authenticate(request(token, client: client))
                else { return nil }
                return access
            }
        }

        /// The problem of a token; nil for a good one.
        func verify(_ token: String, client: String = "192.0.2.1") async -> Problem? {
            await withCheckedContinuation { continuation in
                let isTaken = authenticator.verify(token, for: client) { continuation.resume(returning: $0) }
                #expect(isTaken)
            }
        }
    }

    /// A token that a key has signed, as the verifier of these tests sees it.
    static func token(
        _ subject: String = "ci", key: String = "a", exp: Double = 2000, header: String = #"{"alg":"EdDSA"}"#
    ) -> String {
        let claims = #"{"sub":"\#(subject)","exp":\#(exp),"storekeeper":{"read":["/tasks"]}}"#
        return "\(base64URL(header)).\(base64URL(claims)).\(base64URL(key))"
    }

    @Test("a token is verified once and then known until its end and the leeway")
    func once() async throws {
        let door = try Door()
        let token = Self.token()

        let access = try #require(await door.access(token))
        #expect(access.subject == "ci" && access.expiry == Timestamp(milliseconds: 2_060_000))
        #expect(await door.access(token) === access)
        #expect(door.world.asked.withLock { $0 } == ["a"])
        #expect(!door.authenticator.refresh())
        #expect(!access.hasEnded)

        door.world.seconds.withLock { $0 = 2059 }
        #expect(!door.authenticator.refresh())
        #expect(await door.access(token) === access)
        door.world.seconds.withLock { $0 = 2060 }
        #expect(await door.access(token) == nil)
        #expect(door.authenticator.refresh())
        #expect(access.hasEnded)
        #expect(!door.authenticator.refresh())
    }

    @Test("a server with keys asks for a credential")
    func asks() throws {
        let door = try Door()

        #expect(door.authenticator.isProtected)
        guard case .known(.failure(let problem)) = door.authenticator.authenticate(Request(target: "/v1/state")) else {
            Issue.record("a request without a credential was not refused")
            return
        }
        #expect(problem.code == "unauthorized")
    }

    @Test("every key of the algorithm is tried for a token that names none, and only the named one otherwise")
    func keys() async throws {
        let door = try Door(keys: ["a", "b", "c"])

        #expect(await door.access(Self.token(key: "c")) != nil)
        #expect(door.world.asked.withLock { $0 } == ["a", "b", "c"])
        #expect(await door.access(Self.token(key: "c", header: #"{"alg":"EdDSA","kid":"b"}"#)) == nil)
        #expect(door.world.asked.withLock { $0 } == ["a", "b", "c", "b"])
        #expect(await door.access(Self.token(key: "c", header: #"{"alg":"HS256","kid":"c"}"#)) == nil)
        #expect(door.world.asked.withLock { $0 }.count == 4)
    }

    @Test("a key that has gone from the file ends its accesses, and the others stay")
    func removed() async throws {
        let door = try Door()
        let gone = try #require(await door.access(Self.token(key: "a")))
        let kept = try #require(await door.access(Self.token(key: "b")))

        try door.write(["b", "c"])
        #expect(door.authenticator.refresh())

        #expect(gone.hasEnded)
        #expect(!kept.hasEnded)
        #expect(await door.access(Self.token(key: "a")) == nil)
        #expect(await door.access(Self.token(key: "b")) === kept)
        #expect(await door.access(Self.token(key: "c")) != nil)
    }

    @Test("a file that is broken changes no access and is a fault, and one that is missing has no keys")
    func broken() async throws {
        let door = try Door()
        let access = try #require(await door.access(Self.token()))
        #expect(door.authenticator.faults.keys == nil)

        for content in ["{", "<html>502</html>", #"{"keys":{}}"#] {
            try Data(content.utf8).write(to: door.file)
            #expect(!door.authenticator.refresh())
            #expect(door.authenticator.faults.keys?.contains("must be a JSON Web Key Set") == true)
        }
        #expect(!access.hasEnded && door.authenticator.unreadableReason == nil)
        #expect(await door.access(Self.token("other")) != nil)
        try door.write(["a"])
        #expect(!door.authenticator.refresh())
        #expect(!access.hasEnded && door.authenticator.faults.keys == nil)

        try FileManager.default.removeItem(at: door.file)
        #expect(door.authenticator.refresh())
        #expect(access.hasEnded && door.authenticator.faults.keys?.contains("there is no key file") == true)
        #expect(await door.access(Self.token("third")) == nil)
    }

    @Test("a key that cannot be used keeps neither the old keys in force nor the new ones out")
    func odd() async throws {
        let door = try Door(keys: ["a", "bad"])
        let gone = try #require(await door.access(Self.token(key: "a")))

        try door.write(["bad", "b"])
        #expect(door.authenticator.refresh())
        #expect(gone.hasEnded && door.authenticator.faults.keys == nil)
        #expect(await door.access(Self.token("new", key: "b")) != nil)

        try door.write(["bad"])
        #expect(door.authenticator.refresh())
        #expect(door.authenticator.faults.keys?.contains("has no key for") == true)
        #expect(await door.access(Self.token("newer", key: "b")) == nil)
    }

    @Test("a key file that cannot be read ends the tokens of its keys after ten seconds, until it can be read")
    func unreadable() async throws {
        let door = try Door()
        let access = try #require(await door.access(Self.token(exp: 9000)))
        let seconds = door.world.seconds.withLock { $0 }
        // A directory cannot be read by root, either.
        try FileManager.default.removeItem(at: door.file)
        try FileManager.default.createDirectory(at: door.file, withIntermediateDirectories: false)

        #expect(!door.authenticator.refresh())
        #expect(door.authenticator.unreadableReason != nil)
        door.world.seconds.withLock { $0 = seconds + 9 }
        #expect(!door.authenticator.refresh())
        #expect(await door.access(Self.token(exp: 9000)) === access)
        door.world.seconds.withLock { $0 = seconds + 10 }
        #expect(door.authenticator.refresh())
        #expect(access.hasEnded)
        #expect(door.authenticator.problemOfEndedAccess.code == "tokens-unreadable")
        for _ in 0..<30 {
            guard
                case .known(.failure(let problem)) = door.authenticator.authenticate(
                    door.request(Self.token(exp: 9000)))
            else {
                Issue.record("a token was not refused")
                return
            }
            #expect(problem.code == "tokens-unreadable")
        }

        try FileManager.default.removeItem(at: door.file)
        try door.write(["b"])
        #expect(!door.authenticator.refresh())
        #expect(door.authenticator.unreadableReason == nil)
        #expect(await door.access(Self.token(key: "a", exp: 9000)) == nil)
        #expect(await door.access(Self.token(key: "b", exp: 9000)) != nil)
    }

    @Test("a new key counts with the first token that it has signed")
    func newKey() async throws {
        let door = try Door()
        #expect(await door.access(Self.token(key: "a")) != nil)

        try door.write(["a", "b", "c"])
        #expect(await door.access(Self.token(key: "c")) != nil)
        #expect(await door.access(Self.token(key: "c", header: #"{"alg":"EdDSA","kid":"c"}"#)) != nil)
    }

    @Test("what was scheduled with a JSON Web Token asks no token of the file, and what was with one of the file does")
    func scheduled() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID().uuidString).json")
        defer { try? FileManager.default.removeItem(at: file) }
        let x = String(repeating: "A", count: 43)
        try Data(#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"\#(x)"}]}"#.utf8).write(to: file)
        let catalogue = try CompiledDomain(Demo()).catalogue
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let signed = try SignedTokens(
            KeyFile(path: file.path), ClaimRules(leeway: .zero), catalogue, date: Timestamp.now, logger: logger)
        let weak = TokenEntry(Token(), subject: "weak", Grant(read: ["/counter"]))
        let strong = TokenEntry(Token(), subject: "strong", .everything)
        func isDispatched(_ subject: String?, _ credential: CredentialKind?, _ signed: SignedTokens?) -> Bool {
            let authenticator = Authenticator(
                catalogue, tokens: [weak, strong], signed: signed, now: { Instant(nanoseconds: 0) }, logger: logger)
            return authenticator.rejection(of: Demo.Add(amount: 1), by: subject, with: credential) == nil
        }

        let subjects = ["weak", "strong", "gone", nil]
        #expect(subjects.map { isDispatched($0, .file, signed) } == [false, true, false, true])
        #expect(subjects.map { isDispatched($0, .jwt, signed) } == [true, true, true, true])
        // A server that takes none any more has only its file to ask.
        #expect(subjects.map { isDispatched($0, .jwt, nil) } == [false, true, false, true])
        // An entry of an older program.
        #expect(subjects.map { isDispatched($0, nil, signed) } == [false, true, true, true])
        #expect(subjects.map { isDispatched($0, nil, nil) } == [false, true, false, true])
    }

    @Test("a start refuses a file that has no key for signatures")
    func starts() throws {
        #expect(throws: SettingsFault.self) { _ = try Door(keys: ["bad"]) }
        #expect(throws: SettingsFault.self) { _ = try Door(keys: []) }
    }

    @Test("an address with too many failures is refused without a verification, and its known tokens work")
    func throttled() async throws {
        let door = try Door(keys: ["a"])
        let good = Self.token()
        #expect(await door.access(good) != nil)

        var codes: [String] = []
        for number in 0..<30 {
            let bad = Self.token("\(number)", key: "x")
            switch door.authenticator.authenticate(door.request(bad)) {
            case .known(.failure(let problem)): codes.append(problem.code)
            case .known(.success): codes.append("granted")
            case .unverified: codes.append(await door.verify(bad)?.code ?? "good")
            }
        }

        #expect(codes == Array(repeating: "unauthorized", count: 20) + Array(repeating: "too-many-failures", count: 10))
        #expect(door.world.asked.withLock { $0 }.count == 21)
        #expect(await door.access(good) != nil)
        #expect(await door.access(Self.token("new")) == nil)
        #expect(await door.access(Self.token("new"), client: "192.0.2.2") != nil)
    }

    @Test("an expired token is verified once, is refused as any other, and is no failure of its address")
    func expired() async throws {
        let door = try Door(keys: ["a"])
        let known = Self.token("known", exp: 1000)
        #expect(await door.access(known) != nil)
        door.world.seconds.withLock { $0 = 1060 }
        #expect(door.authenticator.refresh())

        for number in 0..<50 {
            #expect(await door.access(known) == nil)
            #expect(await door.access(Self.token("late", exp: Double(number % 2))) == nil)
        }

        #expect(door.world.asked.withLock { $0 }.count == 3)
        #expect(await door.verify(Self.token("late", exp: 1))?.code == "unauthorized")
        #expect(await door.access(Self.token("new")) != nil)
    }

    @Test("tokens that wait when the failures of their address are used up are refused without a verification")
    func waiting() async throws {
        let door = try Door(keys: ["a"])

        let problems = await withTaskGroup(of: Problem?.self) { group in
            for number in 0..<100 {
                let bad = Self.token("\(number)", key: "x")
                group.addTask { [authenticator = door.authenticator] in
                    await withCheckedContinuation { continuation in
                        _ = authenticator.verify(bad, for: "192.0.2.1") { continuation.resume(returning: $0) }
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }

        #expect(problems.count(where: { $0?.code == "unauthorized" }) == 20)
        #expect(problems.count(where: { $0?.code == "too-many-failures" }) == 80)
        #expect(door.world.asked.withLock { $0 }.count == 20)
    }
}

@Suite("Verifications", .timeLimit(.minutes(5)))
struct VerificationsTests {
    @Test("one runs at a time, and the clients take turns")
    func fair() async {
        let verifications = Verifications()
        let order = Mutex<[String]>([])
        let running = Mutex(0)
        let (gate, opener) = AsyncStream<Void>.makeStream()

        let (began, begin) = AsyncStream<Void>.makeStream()
        _ = verifications.run(for: "a") {
            begin.finish()
            for await _ in gate {}
        }
        for await _ in began {}
        await withTaskGroup(of: Void.self) { group in
            let (ends, end) = AsyncStream<Void>.makeStream()
            for client in ["a", "a", "a", "b", "b", "c"] {
                _ = verifications.run(for: client) {
                    #expect(
                        running.withLock {
                            $0 += 1; return $0
                        } == 1)
                    await Task.yield()
                    running.withLock { $0 -= 1 }
                    order.withLock { $0.append(client) }
                    end.yield()
                }
            }
            opener.finish()
            group.addTask {
                var left = 6
                for await _ in ends {
                    left -= 1
                    if left == 0 { return }
                }
            }
        }

        #expect(order.withLock { $0 } == ["a", "b", "c", "a", "b", "a"])
    }

    @Test("more than may wait are refused, and later ones are taken again")
    func bound() async throws {
        let verifications = Verifications()
        let (gate, opener) = AsyncStream<Void>.makeStream()
        let (began, begin) = AsyncStream<Void>.makeStream()
        _ = verifications.run(for: "a") {
            begin.finish()
            for await _ in gate {}
        }
        for await _ in began {}

        for _ in 0..<Verifications.waitingMax { #expect(verifications.run(for: "a") {}) }
        #expect(!verifications.run(for: "a") {})
        #expect(!verifications.run(for: "b") {})
        opener.finish()

        while !verifications.run(for: "b", {}) { await Task.yield() }
    }
}

@Suite("Failures by address")
struct FailuresTests {
    @Test("however many other addresses fail, the failures of an address count", arguments: [5000, 10_000, 40_000])
    func manyAddresses(count: Int) {
        let now = Instant(nanoseconds: 0)
        var failures = Failures()
        func take(_ address: String, _ now: Instant) -> Bool { failures.take(address, at: now) }
        for _ in 0..<20 { #expect(take("guesser", now)) }
        #expect(!take("guesser", now))
        for number in 0..<200 { for _ in 0..<10 { _ = failures.take("other \(number)", at: now) } }

        for number in 0..<count { #expect(take("address \(number)", now)) }

        #expect(!take("guesser", now))
        #expect(!failures.isLeft("guesser", at: now))
        for number in 0..<200 {
            let taken = (0..<20).count { _ in failures.take("other \(number)", at: now) }
            #expect(taken == 10)
        }
        #expect(failures.isLeft("new", at: now))
        #expect(take("guesser", now + .seconds(2)))
    }
}
