internal import HTTPMessages
internal import Logging
internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import Synchronization

enum Recognition: Sendable {
    case known(Authentication)
    case unverified(String)
}

/// Knows the credentials of the server, and what each of them allows; any thread may call any method.
final class Authenticator: Sendable {
    private struct State {
        var open: Access?
        var accesses: [[UInt8]: (entry: TokenEntry, access: Access)] = [:]
        var hasFile = false
        var failures = Failures()
    }

    private let state: Mutex<State>
    private let catalogue: Catalogue
    private let file: WatchedFile<[TokenEntry]?>?
    private let signed: SignedTokens?
    private let takesProxied: Bool
    private let verifications = Verifications()
    private let now: @Sendable () -> Instant
    private let date: @Sendable () -> Timestamp
    /// The last look at the files, and whether accesses have ended that nobody was told of.
    private let looks = Mutex((last: Instant?.none, hasEnded: false))
    private let logger: Logger
    /// How long tokens and keys stay known while their file cannot be read: one of them may have been revoked.
    static let unreadableMax = Duration.seconds(10)
    /// How near the end of a token is when its answers are not reused any more: longer than between two looks at the files.
    static let reuseMargin = Duration.seconds(2)
    /// Unknown tokens cause no more looks at the files than one in this time.
    static let lookPause = Duration.milliseconds(100)

    /// Without `tokens` and without `signed`, every client may do everything; a proxied one only if it `takesProxied`.
    init(
        _ catalogue: Catalogue, tokens: [TokenEntry]?, file: WatchedFile<[TokenEntry]?>? = nil,
        signed: SignedTokens? = nil, takesProxied: Bool = false, now: @escaping @Sendable () -> Instant,
        date: @escaping @Sendable () -> Timestamp = Timestamp.now, logger: Logger
    ) {
        (self.catalogue, self.file, self.signed, self.takesProxied) = (catalogue, file, signed, takesProxied)
        (self.now, self.date, self.logger) = (now, date, logger)
        var state = State()
        for entry in tokens ?? [] { Self.add(entry, catalogue, to: &state) }
        state.hasFile = tokens != nil
        if tokens == nil, signed == nil { state.open = Access() }
        self.state = Mutex(state)
    }

    private static func add(_ entry: TokenEntry, _ catalogue: Catalogue, to state: inout State) {
        guard let digest = entry.digest else { return }
        let access = Access(entry.grant, subject: entry.subject, in: catalogue, expiry: entry.end, by: .file)
        state.accesses[digest] = (entry, access)
    }

    var isProtected: Bool { state.withLock { $0.open == nil } }

    var unreadableReason: String? { file?.unreadableReason ?? signed?.file.unreadableReason }

    var faults: (tokens: String?, keys: String?) { (file?.fault, signed?.fault) }

    var grants: [TokenEntry] {
        state.withLock { $0.accesses.values.filter { !$0.access.hasEnded } }.map(\.entry)
            .sorted { ($0.created, $0.id) < ($1.created, $1.id) }
    }

    var canJudge: Bool { file?.isShut != true && signed?.file.isShut != true }

    /// The subjects that have a token of the file; nil while that is not known, and where clients need none.
    var subjects: Set<ExactText>? {
        guard canJudge else { return nil }
        let now = date()
        return state.withLock { state in
            guard state.hasFile else { return nil }
            let valid = state.accesses.values.filter { !$0.access.hasEnded(at: now) }
            return Set(valid.map { ExactText($0.entry.subject) })
        }
    }

    func needsToken(_ credential: CredentialKind?) -> Bool { signed == nil || credential == .file }

    /// A JSON Web Token says only when it is shown what it allows; `credential` is nil for what an older program kept.
    func rejection(of action: any Action, by subject: String?, with credential: CredentialKind?) -> Rejection? {
        guard let subject, credential != .jwt || signed == nil else { return nil }
        let now = date()
        let accesses = state.withLock { state in
            state.open == nil
                ? state.accesses.values.filter {
                    JSONPointer.sameBytes($0.entry.subject, subject) && !$0.access.hasEnded(at: now)
                } : nil
        }
        guard let accesses, !accesses.contains(where: { $0.access.dispatches(action) }) else { return nil }
        if credential == nil, accesses.isEmpty, signed != nil { return nil }
        return Rejection(
            "token-revoked",
            accesses.isEmpty
                ? "\(subject) has scheduled the action, and has no token any more"
                : "\(subject) has scheduled the action, and has no token that allows it now")
    }

    var problemOfEndedAccess: Problem { canJudge ? .unauthorized : .tokensUnreadable }

    func authenticate(_ request: Request) -> Recognition {
        if file?.isShut == true { return .known(.failure(.tokensUnreadable)) }
        if let open = state.withLock({ $0.open }) {
            guard takesProxied || !request.head.known.areOfProxy else { return .known(.failure(.openBehindProxy)) }
            return .known(.success(open))
        }
        switch Credential(request) {
        case .none: return .known(.failure(.unauthorized))
        case .malformed: return .known(.failure(failure(of: request.client)))
        case .token(let token):
            switch knowledge(of: Token.digest(token)) {
            case .access(let known): return .known(.success(known))
            // A client that held a good token has guessed nothing.
            case .expired: return .known(.failure(.unauthorized))
            case .nothing where SignedToken.isLike(token) && signed?.file.isShut == true:
                return .known(.failure(.tokensUnreadable))
            case .nothing:
                // A newer version of a file may have it.
                guard file != nil || signed != nil, mayFail(request.client) else {
                    return .known(.failure(failure(of: request.client)))
                }
                return .unverified(token)
            }
        }
    }

    private func knowledge(of digest: [UInt8]) -> SignedTokens.Knowledge {
        guard let known = state.withLock({ $0.accesses[digest]?.access }) else {
            return signed?.knowledge(of: digest) ?? .nothing
        }
        return known.hasEnded(at: date()) ? .expired : .access(known)
    }

    /// Verifies an unknown token, and looks for a bad one in newer files; `done`, which any thread may call, takes nil
    /// for a good one, and false says that too many wait.
    ///
    /// An address that has had its share of failures gets no verification of a signature.
    func verify(_ token: String, for client: String, _ done: @escaping @Sendable (Problem?) -> Void) -> Bool {
        let (begun, digest) = (now(), Token.digest(token))
        return verifications.run(for: client) { [self] in
            let version = signed?.version
            let found: Problem? = problem(of: token, digest, verifies: mayFail(client)) ?? failure(of: client)
            guard let found, found.code == Problem.unauthorized.code else { return done(found) }
            let rest = looks.withLock { $0.last.map { Self.lookPause - (begun - $0) } } ?? .zero
            Task {
                // Nobody cancels it. The looks of refresh() do not count: one of them may have been a moment before the token.
                try? await Task.sleep(for: max(.zero, rest))
                look(unlessSince: begun)
                done(problem(of: token, digest, verifies: signed?.version != version) ?? found)
            }
        }
    }

    /// The problem of a token, nil within for a good one; nil for one that is not known.
    private func problem(of token: String, _ digest: [UInt8], verifies: Bool) -> Problem?? {
        var knowledge = knowledge(of: digest)
        if case .nothing = knowledge, verifies, let signed, SignedToken.isLike(token) {
            knowledge = signed.verify(token, digest)
        }
        return switch knowledge {
        case .access: .some(nil)
        case .expired: .some(Problem.unauthorized)
        case .nothing: nil
        }
    }

    private func mayFail(_ client: String) -> Bool {
        let now = now()
        return state.withLock { $0.failures.isLeft(client, at: now) }
    }

    private func failure(of client: String) -> Problem {
        let now = now()
        return state.withLock { $0.failures.take(client, at: now) } ? .unauthorized : .tooManyFailures
    }

    func refresh() -> Bool {
        looks.withLock { looks in
            defer { looks.hasEnded = false }
            return read() || looks.hasEnded
        }
    }

    private func look(unlessSince begun: Instant) {
        looks.withLock { looks in
            if let last = looks.last, last > begun { return }
            looks.last = now()
            looks.hasEnded = read() || looks.hasEnded
        }
    }

    /// Whether accesses have ended; one look is under way at a time.
    private func read() -> Bool {
        let expired = expiring(by: date())
        for access in expired { access.end() }
        let hasEnded = signed?.refresh(at: now()) ?? false
        return reload() || hasEnded || !expired.isEmpty
    }

    private func expiring(by time: Timestamp) -> [Access] {
        state.withLock { $0.accesses.values.map(\.access) }.filter { !$0.hasEnded && $0.hasEnded(at: time) }
    }

    var isEndNear: Bool {
        let time = date().advanced(by: Self.reuseMargin)
        return signed?.hasEnds(by: time) ?? false || !expiring(by: time).isEmpty
    }

    private func reload() -> Bool {
        let entries: [TokenEntry]?
        switch file?.news(at: now()) {
        case .content(let read): entries = read
        case .fault(let reason):
            // A client that is known stays known: a file that is half written or misspelled locks none out.
            logger.log(.error, "tokens not read", ["reason": reason])
            return false
        case .shut:
            logger.error("no credential is taken until the token file can be read")
            let known = state.withLock { state in
                defer { (state.accesses, state.open) = ([:], nil) }
                return state.accesses.values.map(\.access) + [state.open].compactMap(\.self)
            }
            let ended = known + (signed?.forgetAll() ?? [])
            for access in ended { access.end() }
            return !ended.isEmpty
        case nil: return false
        }
        let byDigest = Dictionary((entries ?? []).compactMap { entry in entry.digest.map { ($0, entry) } }) { $1 }
        var wasOpen = false
        let ended = state.withLock { state in
            var ended: [Access] = []
            state.hasFile = entries != nil
            // A file that is removed opens nothing; only a start without a file does.
            if entries != nil, let open = state.open.take() {
                ended.append(open)
                wasOpen = true
            }
            for (digest, known) in state.accesses where byDigest[digest] != known.entry {
                ended.append(known.access)
                state.accesses[digest] = nil
            }
            for (digest, entry) in byDigest where state.accesses[digest] == nil {
                Self.add(entry, catalogue, to: &state)
            }
            return ended
        }
        for access in ended { access.end() }
        logger.log(.notice, "tokens read", ["tokens": entries?.count ?? 0, "ended": ended.count])
        if wasOpen { logger.warning("the server is no longer open: every client needs a token") }
        warnWithoutAdministrator()
        return !ended.isEmpty
    }

    func warnWithoutAdministrator() {
        let isWithout = state.withLock { state in
            state.open == nil && !state.accesses.values.contains { $0.entry.grant.isEverything && !$0.access.hasEnded }
        }
        guard isWithout, signed == nil else { return }
        logger.warning("no token can do everything; `token create --all` makes one")
    }
}

struct Failures {
    private var byClient: [String: (left: Double, since: Instant)] = [:]
    private static let burst = 20.0
    private static let clientsMax = 10_000

    mutating func take(_ client: String, at now: Instant) -> Bool {
        if byClient.count >= Self.clientsMax, byClient[client] == nil {
            // The half that has the most left is forgotten; the next look is some thousand failures away.
            let known = byClient.map { (key: $0.key, value: (left: Self.refilled($0.value, at: now), since: now)) }
            let kept = known.sorted { $0.value.left < $1.value.left }.prefix(Self.clientsMax / 2)
            byClient = Dictionary(uniqueKeysWithValues: kept.lazy.map { ($0.key, $0.value) })
        }
        let left = byClient[client].map { Self.refilled($0, at: now) } ?? Self.burst
        byClient[client] = (max(0, left - 1), now)
        return left >= 1
    }

    func isLeft(_ client: String, at now: Instant) -> Bool {
        byClient[client].map { Self.refilled($0, at: now) >= 1 } ?? true
    }

    private static func refilled(_ entry: (left: Double, since: Instant), at now: Instant) -> Double {
        min(burst, entry.left + (now - entry.since) / .seconds(1))
    }
}
