internal import HTTPMessages
internal import Logging
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// Knows the credentials of the server, and what each of them allows.
///
/// Any thread may call any method.
final class Authenticator: Sendable {
    private struct State {
        /// The access of every client, while no credential is asked for.
        var open: Access?
        var accesses: [[UInt8]: (entry: TokenFile.Entry, access: Access)] = [:]
        var stamp: [Int]?
        var failures = Failures()
    }

    private let state: Mutex<State>
    private let catalogue: Catalogue
    private let file: TokenFile?
    private let now: @Sendable () -> Instant
    private let logger: Logger

    /// Knows these tokens.
    ///
    /// - Parameters:
    ///   - tokens: the tokens; nil where there is no file, and every client may do everything until there is one.
    ///   - file: where the tokens are; nil where there is no file.
    ///   - stamp: the version of the file that the tokens were read from.
    init(
        _ catalogue: Catalogue, tokens: [TokenFile.Entry]?, file: TokenFile? = nil, stamp: [Int]? = nil,
        now: @escaping @Sendable () -> Instant, logger: Logger
    ) {
        self.catalogue = catalogue
        self.file = file
        self.now = now
        self.logger = logger
        var state = State()
        state.stamp = stamp
        for entry in tokens ?? [] { Self.add(entry, catalogue, to: &state) }
        if tokens == nil { state.open = Access() }
        self.state = Mutex(state)
    }

    private static func add(_ entry: TokenFile.Entry, _ catalogue: Catalogue, to state: inout State) {
        guard let digest = entry.digest else { return }
        state.accesses[digest] = (entry, Access(entry.grant, subject: entry.subject, in: catalogue))
    }

    /// Whether the clients need a credential.
    var isProtected: Bool { state.withLock { $0.open == nil } }

    /// Finds the access of a request, and remembers it for the requests with the same head.
    ///
    /// Where the head is not remembered, the cost is a hash of the credential.
    func authenticate(_ request: Request) -> Authentication {
        if let access = request.memo?.value(RememberedHead.self)?.access, !access.hasEnded { return .granted(access) }
        let access: Access
        if let open = state.withLock({ $0.open }) {
            access = open
        } else {
            switch Credential(request) {
            case .none: return .refused(.unauthorized)
            case .malformed: return .refused(failure(of: request.client))
            case .token(let token):
                let digest = Token.digest(token)
                guard let known = state.withLock({ $0.accesses[digest]?.access }) else {
                    return .refused(failure(of: request.client))
                }
                access = known
            }
        }
        request.memo?.store(RememberedHead(access))
        return .granted(access)
    }

    /// Counts a credential that the server does not know.
    private func failure(of client: String) -> Problem {
        let now = now()
        return state.withLock { $0.failures.take(client, at: now) } ? .unauthorized : .tooManyFailures
    }

    /// Reads the token file again if it has changed.
    ///
    /// - Returns: whether an access has ended.
    func reload() -> Bool {
        guard let file else { return false }
        let stamp = file.stamp
        guard state.withLock({ $0.stamp != stamp }) else { return false }
        let entries: [TokenFile.Entry]?
        do {
            entries = try file.read()
        } catch {
            // Whoever is known stays known: a file that is half written or misspelled locks nobody out.
            state.withLock { $0.stamp = stamp }
            logger.error("tokens not read", metadata: ["reason": .string(error.description)])
            return false
        }
        let ended = state.withLock { state in
            state.stamp = stamp
            return Self.take(entries ?? [], isThere: entries != nil, catalogue, into: &state)
        }
        for access in ended { access.end() }
        logger.notice(
            "tokens read",
            metadata: ["tokens": .stringConvertible(entries?.count ?? 0), "ended": .stringConvertible(ended.count)])
        return !ended.isEmpty
    }

    /// Takes the entries of a new version of the file; returns the accesses that have ended.
    private static func take(
        _ entries: [TokenFile.Entry], isThere: Bool, _ catalogue: Catalogue, into state: inout State
    ) -> [Access] {
        var ended: [Access] = []
        if isThere, let open = state.open.take() { ended.append(open) }
        let byDigest = Dictionary(entries.compactMap { entry in entry.digest.map { ($0, entry) } }) { $1 }
        for (digest, known) in state.accesses where byDigest[digest] != known.entry {
            ended.append(known.access)
            state.accesses[digest] = nil
        }
        for (digest, entry) in byDigest where state.accesses[digest] == nil { add(entry, catalogue, to: &state) }
        // A file that is gone opens nothing: only a start without one does.
        return ended
    }
}

/// The credentials that the server did not know, by address: 20 at once, and one more each second.
struct Failures {
    private var byClient: [String: (left: Double, since: Instant)] = [:]
    private static let burst = 20.0
    private static let clientsMax = 10_000

    /// Counts a failure; returns false where the address has had its share.
    mutating func take(_ client: String, at now: Instant) -> Bool {
        if byClient.count >= Self.clientsMax, byClient[client] == nil {
            byClient = byClient.filter { Self.refilled($0.value, at: now) < Self.burst }
            // More addresses than that are an attack, in which an address counts for little.
            if byClient.count >= Self.clientsMax { byClient = [:] }
        }
        let left = byClient[client].map { Self.refilled($0, at: now) } ?? Self.burst
        byClient[client] = (max(0, left - 1), now)
        return left >= 1
    }

    private static func refilled(_ entry: (left: Double, since: Instant), at now: Instant) -> Double {
        min(burst, entry.left + (now - entry.since) / .seconds(1))
    }
}
