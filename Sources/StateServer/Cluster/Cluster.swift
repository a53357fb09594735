internal import Dispatch
internal import FoundationEssentials
internal import HTTPClient
internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateCluster
internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import Synchronization

final class Cluster: Sendable {
    enum Outcome {
        case answered(Response, Cursor?)
        case notCarriedOut
        /// It is not there any more, and has not said that it goes: it may have ended by an action.
        case ended
        /// The connection has ended before the answer: it may have carried it out, and may have ended by it.
        case lost
        /// The server has not answered in time, and may have carried it out.
        case unknown
    }

    private let journal: ClusterJournal
    private let pool: HTTPPool
    private let queue = DispatchQueue(label: "storekeeper.cluster.forwarding")
    /// The server that writes, and since when it cannot be reached; nil while it can.
    private let unreachable = Mutex<(address: String, since: ContinuousClock.Instant)?>(nil)

    private static let requestsMax = 64
    private static let connectTime = Duration.seconds(1)
    /// The answer has this time behind what its client allows.
    private static let answerTime = Duration.seconds(10)
    private static let answerBytesMax = 1 << 30
    /// The fields that belong to one connection, or to the page of a browser, which this server has judged.
    private static let ownFields: Set<String> = [
        "connection", "content-length", "date", "expect", "host", "keep-alive", "origin", "proxy-connection",
        "storekeeper-forwarded", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    private static let refusing: Set<String> = ["domain-mismatch", "draining", "model-version"]

    init(_ journal: ClusterJournal) throws {
        self.journal = journal
        pool = try HTTPPool(requestsMax: Self.requestsMax)
    }

    func start(isFit: @escaping @Sendable () -> Bool, _ changed: @escaping @Sendable () -> Void) {
        journal.write(while: isFit)
        journal.watchStaleness(changed)
        queue.async { [pool] in pool.run() }
    }

    func stop() { pool.stop() }

    /// For how long this server may have missed what others acknowledge; nil while it misses nothing.
    var staleness: Duration? { journal.staleness }

    var isWriter: Bool { journal.writer == .this }

    /// Whether this server dispatches the schedule; without a writer each may, as the journal takes each action once.
    var mayDispatchScheduled: Bool {
        if case .other = journal.writer { return false }
        return staleness == nil
    }

    var target: String? {
        guard journal.secret != nil, case .other(let address) = journal.writer else { return nil }
        return address
    }

    /// The client from whom another server of the history has sent a request on; nil for any other request.
    func origin(of request: Request) -> String? {
        guard let secret = journal.secret, let value = request[.storekeeperForwarded] else { return nil }
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, Self.isEqual(parts[0].utf8, secret.utf8) else { return nil }
        return String(parts[1])
    }

    /// Compares in a time that tells nothing of the place of a difference.
    private static func isEqual(_ left: Substring.UTF8View, _ right: String.UTF8View) -> Bool {
        left.count == right.count && zip(left, right).reduce(0) { $0 | $1.0 ^ $1.1 } == 0
    }

    /// Sends a request on and waits as long as the same server writes; `done` runs on the thread of all requests.
    ///
    /// A server that stands still is left after its lease: packets between two may be lost while both reach etcd.
    func send(
        _ request: Request, to address: String, of client: String, waiting wait: Duration,
        _ done: @escaping @Sendable (Outcome) -> Void
    ) {
        let fields = request.fields.compactMap { field in
            Self.ownFields.contains(field.name.canonicalName) ? nil : "\(field.name.rawName): \(field.value)"
        }
        var sent = HTTPConnection.Request(
            address + RequestTarget.originForm(request.target), method: request.method.rawValue,
            fields: fields + ["Storekeeper-Forwarded: \(journal.secret ?? "") \(client)"], body: request.body,
            within: Self.answerTime + wait, bodyBytesMax: Self.answerBytesMax)
        sent.connectTimeout = Self.connectTime
        pool.send(sent) { [journal] in
            journal.writer == .other(address)
        } then: { [self] result in
            done(self.outcome(result, of: address))
        }
    }

    /// How long the lease of a writer that has ended may go on: one that has it longer cannot be reached, and is there.
    private static let leaseTime = Duration.seconds(5)

    private func outcome(_ result: HTTPPool.Outcome, of address: String) -> Outcome {
        if case .failure(.unreachable) = result {
            let since = unreachable.withLock { unreachable in
                if unreachable?.address != address { unreachable = (address, .now) }
                return unreachable?.since ?? .now
            }
            return since.duration(to: .now) < Self.leaseTime ? .ended : .notCarriedOut
        }
        unreachable.withLock { $0 = nil }
        switch result {
        case .success(let found):
            var fields = HTTPFields()
            for (name, value) in found.fields {
                guard let name = HTTPField.Name(name), !Self.ownFields.contains(name.canonicalName) else { continue }
                fields.append(HTTPField(name: name, value: value))
            }
            let status = HTTPResponse.Status(code: found.status)
            if found.status == 503,
                let problem = try? JSON.decode(ProblemCode.self, from: found.body, ignoresUnknown: true),
                Self.refusing.contains(problem.code)
            {
                return .notCarriedOut
            }
            return .answered(
                Response(status: status, fields: fields, body: found.body),
                fields[.stateCursor].flatMap { Cursor(text: $0) })
        case .failure(.disconnected): return .lost
        case .failure: return .unknown
        }
    }

    private struct ProblemCode: Decodable {
        var code: String
    }
}

enum ForwardingAddress {
    static func host(of text: String) -> String? {
        let place = text.dropFirst("http://".count)
        guard text.hasPrefix("http://"), let colon = place.lastIndex(of: ":"), colon > place.startIndex,
            let port = UInt16(place[place.index(after: colon)...]), port > 0,
            place.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"/?#@\"\\".utf8.contains($0) })
        else { return nil }
        return place[..<colon].filter { !"[]".contains($0) }
    }
}

extension RequestHandler {
    /// Sends a request on to the server that writes, over one hop; nil for one that the caller carries out.
    ///
    /// An action that the other server has surely not carried out is carried out here: the journal takes the commits of
    /// any server. One that may have ended the other server is not repeated here at once.
    func forward(
        _ dispatch: DispatchRequest, _ request: Request, _ exchange: Exchange, in cluster: Cluster
    ) -> Reply? {
        guard cluster.staleness == nil else { return .now(respond(.notDurable, exchange)) }
        guard let address = cluster.target, cluster.origin(of: request) == nil, !isDraining.load(ordering: .acquiring)
        else { return carryOut(dispatch, exchange) }
        let wait = (dispatch.wait?.duration ?? .zero) + .milliseconds(request.body.count / 1000)
        cluster.send(request, to: address, of: exchange.client, waiting: wait) { [self] outcome in
            metrics.count(outcome)
            switch outcome {
            case .answered(let response, let cursor):
                answer(exchange, response, having: cursor?.version ?? 0, until: platform.now() + .seconds(2))
            case .notCarriedOut:
                complete(carryOut(dispatch, exchange), exchange)
            case .unknown where dispatch.isIdempotent, .ended:
                complete(carryOut(dispatch, exchange, isSuspected: true), exchange)
            case .lost, .unknown:
                let response = respond(.outcomeUnknown(id: dispatch.clientID), exchange)
                guard let quarantine else { return answer(exchange, response) }
                quarantine.recordLoss(of: address, during: dispatch) { [self] in
                    // The other servers have the list by then, of which a client may ask any next.
                    platform.after(.milliseconds(200)) { [self] in answer(exchange, response) }
                }
            }
        }
        return .working()
    }

    private func carryOut(
        _ dispatch: DispatchRequest, _ exchange: Exchange, isSuspected: Bool = false
    ) -> Reply {
        if cluster != nil, let lost = store.lostHistory { return .now(respond(.domainFailed(lost.failure), exchange)) }
        guard let quarantine else { return self.dispatch(dispatch, exchange) }
        let verdict = quarantine.judge(dispatch, isSuspected: isSuspected) { [self] verdict in
            let isAnswered = complete(carryOut(dispatch, exchange, verdict), exchange)
            // It is refused before it has come to the store.
            if isAnswered { quarantine.endTrial(of: dispatch, isReduced: false) }
        }
        return verdict.map { carryOut(dispatch, exchange, $0) } ?? .working()
    }

    private func carryOut(
        _ dispatch: DispatchRequest, _ exchange: Exchange, _ verdict: Quarantine.Verdict
    ) -> Reply {
        switch (verdict, dispatch.content) {
        // The turn itself refuses an action that is set aside, unless it is committed already.
        case (.passes, _), (.refused, .one): self.dispatch(dispatch, exchange)
        case (.refused(let id), .lines):
            .now(
                contract.response(
                    to: dispatch, outcome: .rejected(.quarantined(id), index: 0), latest: latest,
                    name: name(of: exchange)))
        case (.isTried, _): .now(respond(.outcomeUnknown(id: dispatch.clientID), exchange))
        case (.unknown, _): .now(respond(.notDurable, exchange))
        }
    }

    var staleness: Duration? {
        guard let cluster else { return nil }
        return cluster.staleness ?? store.lostHistory.map { platform.now() - $0.since }
    }

    /// Answers once this server has a version itself, so that the client's next read at this server has what the answer says.
    private func answer(_ exchange: Exchange, _ response: Response, having version: Version, until end: Instant) {
        guard latest.version < version, platform.now() < end, store.lostHistory == nil else {
            return answer(exchange, response)
        }
        platform.after(.microseconds(200)) { [self] in
            answer(exchange, response, having: version, until: end)
        }
    }
}

struct ClusterFile: SharedDocument {
    let name: String
    let path: String
    private let document: ClusterDocument

    private static let triesMax = 20

    init(_ document: ClusterDocument, name: String, at address: ClusterAddress, _ key: String) {
        self.document = document
        self.name = name
        path = "\(address)/\(key)"
    }

    var stamp: [Int]? { document.revision.map { [Int(clamping: $0)] } }

    func bytes() throws(SettingsFault) -> Data? {
        try reaching("read") { () throws(ClusterFault) in try document.content() }.bytes.map { Data($0) }
    }

    func change(_ change: (Data?) throws(SettingsFault) -> Data?) throws(SettingsFault) {
        for _ in 0..<Self.triesMax {
            let seen = try reaching("changed") { () throws(ClusterFault) in try document.read() }
            guard let changed = try change(seen.bytes.map { Data($0) }) else { return }
            let isDone = try reaching("changed") { () throws(ClusterFault) in
                try document.replace(seen, by: Array(changed))
            }
            if isDone { return }
        }
        throw SettingsFault("the \(name) \(path) cannot be changed: others change it all the time")
    }

    private func reaching<Value>(
        _ what: String, _ body: () throws(ClusterFault) -> Value
    ) throws(SettingsFault) -> Value {
        do {
            return try body()
        } catch {
            throw SettingsFault("the \(name) \(path) cannot be \(what): \(error)")
        }
    }
}
