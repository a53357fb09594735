internal import FoundationEssentials
internal import Logging
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// Knows the clients that have a JSON Web Token, and verifies each token once; any thread may call any method.
final class SignedTokens: Sendable {
    private struct State {
        var keys: [VerificationKey]
        var version = 0
        var fault: String?
        var remembered = RememberedTokens()
    }

    private let state: Mutex<State>
    private let keyFile: KeyFile
    /// No token is taken while it is shut: a key may have been withdrawn in a file that cannot be read.
    let file: WatchedFile<JSONWebKeySet?>
    private let rules: ClaimRules
    private let verifies: @Sendable (SignedToken, VerificationKey) -> Bool
    private let catalogue: Catalogue
    private let date: @Sendable () -> Timestamp
    private let logger: Logger

    init(
        _ file: KeyFile, _ rules: ClaimRules, _ catalogue: Catalogue,
        date: @escaping @Sendable () -> Timestamp, logger: Logger,
        verifies: @escaping @Sendable (SignedToken, VerificationKey) -> Bool = { $1.verifies($0.message, $0.signature) }
    ) throws(SettingsFault) {
        keyFile = file
        self.file = WatchedFile(file.file) { (bytes) throws(SettingsFault) in try file.keys(in: bytes) }
        (self.rules, self.verifies, self.catalogue, self.date, self.logger) = (rules, verifies, catalogue, date, logger)
        let read = try file.readAtStart()
        state = Mutex(State(keys: read?.keys ?? []))
        warnOfFaults(in: read)
        for warning in rules.grant?.warnings(in: catalogue) ?? [] {
            logger.log(.warning, "jwt_grant allows less than it says", ["reason": warning])
        }
    }

    var version: Int { state.withLock { $0.version } }

    var fault: String? { file.fault ?? state.withLock { $0.fault } }

    enum Knowledge {
        case access(Access)
        case expired
        case nothing
    }

    func knowledge(of digest: [UInt8]) -> Knowledge {
        let now = date()
        return state.withLock { state in
            if let access = state.remembered.access(digest, at: now) { return .access(access) }
            return state.remembered.hasEnded(digest, at: now) ? .expired : .nothing
        }
    }

    func verify(_ text: String, _ digest: [UInt8]) -> Knowledge {
        do throws(TokenRefusal) {
            let token = try SignedToken(text)
            let candidates = token.candidates(among: state.withLock { $0.keys })
            guard let key = candidates.first(where: { verifies(token, $0) }) else {
                let claim = candidates.isEmpty ? "kid" : "signature"
                throw TokenRefusal(claim, "that of a key of the file for \(token.algorithm.rawValue)")
            }
            let claims = try Claims(token.payload)
            let (grant, end) = try rules.access(of: claims, at: date())
            let now = date()
            let access = Access(grant, subject: claims.sub, in: catalogue, expiry: end, by: .jwt)
            let knowledge = state.withLock { state -> Knowledge in
                // The key may have gone since the verification began.
                guard state.keys.contains(key) else { return .nothing }
                guard now < end else {
                    state.remembered.noteEnded(digest, end)
                    return .expired
                }
                if let known = state.remembered.access(digest, at: now) { return .access(known) }
                state.remembered.insert(access, digest, key: key, end: end)
                return .access(access)
            }
            if case .expired = knowledge { log(TokenRefusal("exp", "later than now, with the leeway")) }
            return knowledge
        } catch {
            log(error)
            return .nothing
        }
    }

    private func log(_ refusal: TokenRefusal) {
        logger.log(.debug, "JSON Web Token refused", ["claim": refusal.claim, "expected": refusal.expected])
    }

    private func warnOfFaults(in read: JSONWebKeySet?) {
        for fault in read?.faults ?? [] {
            logger.log(.warning, "key left out", ["file": keyFile.path, "reason": fault])
        }
    }

    func refresh(at instant: Instant) -> Bool {
        let now = date()
        var ended = state.withLock { $0.remembered.removeEnded(at: now) }
        ended += reload(at: instant)
        for access in ended { access.end() }
        return !ended.isEmpty
    }

    func hasEnds(by time: Timestamp) -> Bool { state.withLock { $0.remembered.earliestEnd <= time } }

    func forgetAll() -> [Access] { state.withLock { $0.remembered.removeAll(except: []) } }

    private func reload(at now: Instant) -> [Access] {
        switch file.news(at: now) {
        case .content(let read):
            let fault = keyFile.fault(in: read)
            let ended = state.withLock { state in
                (state.keys, state.fault, state.version) = (read?.keys ?? [], fault, state.version + 1)
                return state.remembered.removeAll(except: state.keys)
            }
            let (keys, skipped) = (read?.keys.count ?? 0, read?.skippedCount ?? 0)
            logger.log(.notice, "keys read", ["keys": keys, "skipped": skipped, "ended": ended.count])
            warnOfFaults(in: read)
            if let fault { logger.log(.error, "no JSON Web Token is taken", ["reason": fault]) }
            return ended
        case .fault(let reason):
            // The keys stay as they are: a file that is half written or misspelled locks no client out.
            logger.log(.error, "keys not read", ["reason": reason])
            return []
        case .shut:
            logger.error("no JSON Web Token is taken until the key file can be read")
            state.withLock { $0.keys = [] }
            return forgetAll()
        case nil: return []
        }
    }
}

/// The file of the keys that sign JSON Web Tokens: a JSON Web Key Set (RFC 7517).
struct KeyFile: Sendable {
    let file: SharedFile

    init(path: String) { file = SharedFile(path: path, name: "key file") }

    var path: String { file.path }

    func read() throws(SettingsFault) -> JSONWebKeySet? { try keys(in: try file.bytes()) }

    func keys(in bytes: Data?) throws(SettingsFault) -> JSONWebKeySet? {
        guard let bytes else { return nil }
        do throws(SettingsFault) {
            return try JSONWebKeySet([UInt8](bytes))
        } catch { throw SettingsFault("the key file \(path) \(error)") }
    }

    func readAtStart() throws(SettingsFault) -> JSONWebKeySet? {
        let read = try read()
        if let fault = fault(in: read) { throw SettingsFault(fault) }
        return read
    }

    func fault(in read: JSONWebKeySet?) -> String? {
        guard let read else { return "there is no key file \(path), which the setting jwt_keys names" }
        guard read.keys.isEmpty else { return nil }
        let reasons = read.faults.prefix(3).map { "; \($0)" }.joined()
        return "the key file \(path) has no key for \(VerificationKey.Algorithm.names)\(reasons)"
    }
}
