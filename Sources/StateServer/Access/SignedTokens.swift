internal import FoundationEssentials
internal import JWT
internal import Logging
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// Knows the clients that have a JSON Web Token: it verifies each token once and remembers its access until the token ends.
///
/// Any thread may call any method.
final class SignedTokens: Sendable {
    private struct State {
        var keys: [VerificationKey]
        var remembered = RememberedTokens()
        var unreadableSince: Instant?
        /// Whether the file could not be read for so long that no key is taken.
        var isShut = false
    }

    private let state: Mutex<State>
    private let file: WatchedFile<JSONWebKeySet?>
    private let rules: ClaimRules
    private let verifier: SignatureVerifier
    private let catalogue: Catalogue
    private let date: @Sendable () -> Timestamp
    private let logger: Logger

    init(
        _ file: KeyFile, _ rules: ClaimRules, _ verifier: SignatureVerifier, _ catalogue: Catalogue,
        date: @escaping @Sendable () -> Timestamp, logger: Logger
    ) throws(SettingsFault) {
        self.file = WatchedFile(file.file) { (bytes) throws(SettingsFault) in
            let read = try file.keys(in: bytes)
            for key in read?.keys ?? [] {
                guard let fault = verifier.fault(key) else { continue }
                let name = key.id.map { "kid \($0)" } ?? "a key without kid"
                throw SettingsFault(description: "the key file \(file.path) has a fault in \(name): \(fault)")
            }
            return read
        }
        self.rules = rules
        self.verifier = verifier
        self.catalogue = catalogue
        self.date = date
        self.logger = logger
        guard let keys = try self.file.content()?.keys else {
            throw SettingsFault(description: "there is no key file \(file.path), which the setting jwt_keys names")
        }
        guard !keys.isEmpty else {
            throw SettingsFault(
                description: "the key file \(file.path) has no key for HS256, RS256, ES256 or EdDSA")
        }
        state = Mutex(State(keys: keys))
    }

    var unreadableReason: String? { file.unreadableReason }

    /// Whether no token is taken, because one of the keys may have been withdrawn in a file that cannot be read.
    var isShut: Bool { state.withLock { $0.isShut } }

    enum Knowledge {
        case access(Access)
        case expired
        case nothing
    }

    /// Looks a token up without a verification.
    func knowledge(of digest: [UInt8]) -> Knowledge {
        let now = date()
        return state.withLock { state in
            if let access = state.remembered.access(digest, at: now) { return .access(access) }
            return state.remembered.hasEnded(digest, at: now) ? .expired : .nothing
        }
    }

    func verify(_ text: String, _ digest: [UInt8]) async -> Knowledge {
        guard let token = SignedToken(text) else { return .nothing }
        for key in token.candidates(among: state.withLock { $0.keys }) {
            guard let claims = await verifier.claims(token, key) else { continue }
            guard let access = rules.access(of: claims, at: date()) else { return .nothing }
            return remember(claims.sub, access.grant, digest, key, until: access.end)
        }
        return .nothing
    }

    private func remember(
        _ subject: String, _ grant: Grant, _ digest: [UInt8], _ key: VerificationKey, until end: Timestamp
    ) -> Knowledge {
        let now = date()
        let access = Access(grant, subject: subject, in: catalogue, expiry: end)
        return state.withLock { state in
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
    }

    /// Ends the accesses whose tokens have expired, and those of keys that a new version of the file has not.
    func refresh(at instant: Instant) -> Bool {
        let now = date()
        var ended = state.withLock { $0.remembered.removeEnded(at: now) }
        ended += reload() + shutWhereUnreadable(at: instant)
        for access in ended { access.end() }
        return !ended.isEmpty
    }

    /// Forgets every token, and returns their accesses: each request with a token needs another verification.
    func forgetAll() -> [Access] { state.withLock { $0.remembered.removeAll(except: []) } }

    private func reload() -> [Access] {
        switch file.news() {
        case .content(let read):
            let ended = state.withLock { state in
                state.keys = read?.keys ?? []
                (state.unreadableSince, state.isShut) = (nil, false)
                return state.remembered.removeAll(except: state.keys)
            }
            logger.notice(
                "keys read",
                metadata: [
                    "keys": .stringConvertible(read?.keys.count ?? 0),
                    "skipped": .stringConvertible(read?.skippedCount ?? 0), "ended": .stringConvertible(ended.count),
                ])
            return ended
        case .fault(let reason):
            // The keys stay as they are: a file that is half written or misspelled locks no client out.
            logger.error("keys not read", metadata: ["reason": .string(reason)])
            return []
        case nil: return []
        }
    }

    /// Takes no token any more where the file could not be read for a time, until it can.
    private func shutWhereUnreadable(at now: Instant) -> [Access] {
        guard unreadableReason != nil else { return [] }
        let ended: [Access]? = state.withLock { state in
            let since = state.unreadableSince ?? now
            state.unreadableSince = since
            guard !state.isShut, now - since >= Authenticator.unreadableMax else { return nil }
            (state.isShut, state.keys) = (true, [])
            return state.remembered.removeAll(except: [])
        }
        if ended != nil { logger.error("no JSON Web Token is taken until the key file can be read") }
        return ended ?? []
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
        do throws(JSONWebKeySet.Fault) {
            return try JSONWebKeySet([UInt8](bytes))
        } catch { throw SettingsFault(description: "the key file \(path) \(error)") }
    }
}
