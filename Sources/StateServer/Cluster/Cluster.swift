internal import Dispatch
internal import FoundationEssentials
internal import HTTPClient
internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateCluster
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// A server on a history in etcd beside other servers, which sends actions on to the one that writes.
final class Cluster: Sendable {
    enum Outcome {
        case answered(Response, Cursor?)
        case notCarriedOut
        /// It is not there any more, and has not said that it goes: it may have ended by an action.
        case ended
        /// The connection has ended before the answer: it may have carried it out, and may have ended by it.
        case lost
        /// It has not answered in time, and may have carried it out.
        case unknown
    }

    private let journal: ClusterJournal
    private let pool: HTTPPool
    private let queue = DispatchQueue(label: "storekeeper.cluster.forwarding")
    /// The server that writes, and since when it cannot be reached; nil while it can.
    private let unreachable = Mutex<(address: String, since: ContinuousClock.Instant)?>(nil)

    private static let requestsMax = 64
    /// How long a connection to the server that writes may take, and its answer behind what its client allows.
    private static let connectTime = Duration.seconds(1)
    private static let answerTime = Duration.seconds(10)
    private static let answerBytesMax = 1 << 30
    /// The fields that belong to one connection, or to the page of a browser, which this server has judged.
    private static let ownFields: Set<String> = [
        "connection", "content-length", "date", "expect", "host", "keep-alive", "origin", "proxy-connection",
        "storekeeper-forwarded", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// The codes of a server that takes no action, whatever it is.
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
            if found.status == 503, Self.refusing.contains(Self.code(of: found.body) ?? "") { return .notCarriedOut }
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

    private static func code(of body: [UInt8]) -> String? {
        try? JSONDecoder().decode(ProblemCode.self, from: Data(body)).code
    }
}

enum ForwardingAddress {
    static func host(of text: String) -> String? {
        guard isOne(text) else { return nil }
        let place = text.dropFirst("http://".count)
        return place.lastIndex(of: ":").map { place[..<$0].filter { !"[]".contains($0) } }
    }

    static func isOne(_ text: String) -> Bool {
        guard text.hasPrefix("http://") else { return false }
        let place = text.dropFirst("http://".count)
        guard let colon = place.lastIndex(of: ":"), colon > place.startIndex,
            let port = UInt16(place[place.index(after: colon)...]), port > 0
        else { return false }
        return place.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"/?#@\"\\".utf8.contains($0) }
    }
}
