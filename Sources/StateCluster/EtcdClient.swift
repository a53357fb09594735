internal import Dispatch
internal import FoundationEssentials
internal import HTTPClient
internal import StateJSON
internal import Synchronization

enum EtcdFailure: Error, CustomStringConvertible {
    /// No endpoint has carried the request out, and none will.
    case unreachable(String)
    /// An endpoint may have carried it out.
    case unanswered(String)
    /// etcd has refused it, and carried nothing out; the number is that of a gRPC status.
    case refused(Int, String)
    case malformed(String)

    var description: String {
        switch self {
        case .unreachable(let reason): "no etcd can be reached: \(reason)"
        case .unanswered(let reason): "etcd does not answer: \(reason)"
        case .refused(_, let reason): "etcd refuses: \(reason)"
        case .malformed(let reason): "this is not etcd: \(reason)"
        }
    }
}

/// A client of a cluster of etcds by its JSON gateway: one request at a time, to one endpoint until that one fails.
///
/// Each request is such that carrying it out twice does no harm, so a failed one is sent to the next endpoint.
final class EtcdClient: Sendable {
    private let endpoints: [String]
    private let connection: HTTPConnection
    private let login: EtcdLogin
    /// Lets one request at a time use the connection, and owns the number of the endpoint.
    private let queue: DispatchQueue
    /// The endpoint that has answered last.
    private nonisolated(unsafe) var current: Int  // unsafe: only code on `queue` uses it.

    /// How long one endpoint has for an answer.
    private let timeout: Duration
    /// For how long ``ask(_:_:)`` tries again while etcd elects a leader.
    private let patience: Duration
    private static let answerBytesMax = 256 << 20

    init(_ address: ClusterAddress, label: String, timeout: Duration = .seconds(2), patience: Duration = .zero) throws {
        endpoints = address.endpoints
        (self.timeout, self.patience) = (timeout, patience)
        connection = try HTTPConnection(tls: address.tls)
        login = EtcdLogin(address.user)
        queue = DispatchQueue(label: "storekeeper.etcd.\(label)")
        current = Int.random(in: endpoints.indices)
    }

    /// Ends the request that runs, and refuses every later one.
    func cancel() { connection.cancel() }

    func call<Answer: Decodable & Sendable>(
        _ path: String, _ message: some Encodable & Sendable, as type: Answer.Type = Answer.self,
        within timeout: Duration? = nil
    ) throws(EtcdFailure) -> Answer {
        let body: [UInt8]
        do {
            body = try JSON.encode(message)
        } catch {
            throw .malformed("\(error)")
        }
        let answered = queue.sync { Result { () throws(EtcdFailure) in try send(path, body, timeout ?? self.timeout) } }
        do {
            return try Etcd.decode(type, from: try answered.get())
        } catch let failure as EtcdFailure {
            throw failure
        } catch {
            throw .malformed("its answer to \(path) cannot be read")
        }
    }

    private func send(_ path: String, _ body: [UInt8], _ timeout: Duration) throws(EtcdFailure) -> [UInt8] {
        var failure = EtcdFailure.unreachable("it has no endpoints")
        var mayBeDone = false
        for _ in endpoints {
            do throws(EtcdFailure) {
                return try send(path, body, timeout, to: endpoints[current])
            } catch {
                failure = error
                switch error {
                case .unanswered: mayBeDone = true
                case .unreachable: break
                case .refused, .malformed: throw mayBeDone ? .unanswered("\(error)") : error
                }
                current = (current + 1) % endpoints.count
            }
        }
        if mayBeDone, case .unreachable(let reason) = failure { throw .unanswered(reason) }
        throw failure
    }

    private func send(
        _ path: String, _ body: [UInt8], _ timeout: Duration, to endpoint: String
    ) throws(EtcdFailure) -> [UInt8] {
        do throws(EtcdFailure) {
            return try post(path, body, timeout, to: endpoint)
        } catch  where login.isExpired(by: error) {
            return try post(path, body, timeout, to: endpoint)
        }
    }

    private func post(
        _ path: String, _ body: [UInt8], _ timeout: Duration, to endpoint: String
    ) throws(EtcdFailure) -> [UInt8] {
        let request = HTTPConnection.Request(
            endpoint + path, method: "POST", fields: try login.fields(at: endpoint, by: connection), body: body,
            within: timeout, bodyBytesMax: Self.answerBytesMax)
        return try connection.answer(request, of: endpoint)
    }

    // MARK: Requests that are not told apart by how they fail

    func ask<Answer: Decodable & Sendable>(
        _ path: String, _ message: some Encodable & Sendable
    ) throws(ClusterFault) -> Answer {
        let end = ContinuousClock.now + patience
        while true {
            do throws(EtcdFailure) {
                return try call(path, message)
            } catch {
                let fault = ClusterFault(error)
                guard fault.isPassing, ContinuousClock.now < end else { throw fault }
                pause(.milliseconds(200))
            }
        }
    }

    func range(_ range: Etcd.Range) throws(ClusterFault) -> Etcd.RangeResponse { try ask("/v3/kv/range", range) }

    /// Carries out operations; false where a condition does not hold.
    func commit(
        _ operations: [Etcd.Operation], where conditions: [Etcd.Compare] = []
    ) throws(ClusterFault) -> Bool {
        let transaction = Etcd.Transaction(compare: conditions, success: operations)
        let answer: Etcd.TransactionResponse = try ask("/v3/kv/txn", transaction)
        return answer.succeeded == true
    }
}

extension HTTPConnection {
    func answer(_ request: Request, of endpoint: String) throws(EtcdFailure) -> [UInt8] {
        let response: Response
        do throws(Failure) {
            response = try perform(request)
        } catch {
            throw EtcdFailure(error, endpoint)
        }
        guard response.status != 200 else { return response.body }
        throw EtcdFailure(response.body, status: response.status, endpoint)
    }
}

/// A semaphore would wait on Linux for a moment of the wall clock, which can be set back; a group waits for a time.
func pause(_ time: DispatchTimeInterval) {
    let group = DispatchGroup()
    group.enter()
    _ = group.wait(timeout: .now() + time)
    group.leave()
}

extension EtcdFailure {
    init(_ failure: HTTPConnection.Failure, _ endpoint: String) {
        switch failure {
        case .unreachable(let reason): self = .unreachable("\(endpoint): \(reason)")
        case .disconnected(let reason): self = .unanswered("\(endpoint): \(reason)")
        case .timedOut: self = .unanswered("\(endpoint): no answer in time")
        case .cancelled: self = .unanswered("\(endpoint): the server stops")
        case .tooLong: self = .malformed("the answer of \(endpoint) is too long")
        }
    }

    init(_ body: [UInt8], status: Int, _ endpoint: String) {
        guard let fault = try? Etcd.decode(Etcd.Fault.self, from: body), let code = fault.code else {
            // Its gateway explains in a line of text what it refuses before etcd has it.
            let text = String(decoding: body.prefix(200), as: UTF8.self).split(whereSeparator: \.isNewline)
            self = .unanswered("\(endpoint): its status is \(status): \(text.joined(separator: " "))")
            return
        }
        self.init(fault: fault.message ?? "gRPC status \(code)", code: code, endpoint)
    }

    /// Reads a gRPC status: only some of them say that nothing was carried out.
    init(fault message: String, code: Int, _ endpoint: String) {
        switch code {
        // Failed precondition: from etcd 3.6 on that is what a learner says, and one that begins; another one may take it.
        case 9: self = .unreachable("\(endpoint): \(message)")
        // Invalid argument, not found, permission denied, resource exhausted, out of range, unauthenticated: etcd decides
        // these before it proposes anything.
        case 3, 5, 7, 8, 11, 16: self = .refused(code, "\(endpoint): \(message)")
        default: self = .unanswered("\(endpoint): \(message)")
        }
    }
}

/// Puts the token of a user of etcd into requests, and gets another one when it has expired.
///
/// Source: etcd's page "gRPC gateway", "Authentication".
final class EtcdLogin: Sendable {
    private let user: ClusterAddress.User?
    private let token = Mutex<String?>(nil)

    private static let timeout = Duration.seconds(2)

    init(_ user: ClusterAddress.User?) { self.user = user }

    /// The fields of a request to an endpoint; the first one of a user asks for a token.
    func fields(at endpoint: String, by connection: HTTPConnection) throws(EtcdFailure) -> [String] {
        let type = "Content-Type: application/json"
        guard let user else { return [type] }
        if let token = token.withLock(\.self) { return [type, "Authorization: \(token)"] }
        let body = try? JSON.encode(Etcd.Authenticate(name: user.name, password: user.password()))
        let request = HTTPConnection.Request(
            endpoint + "/v3/auth/authenticate", method: "POST", fields: [type], body: body, within: Self.timeout,
            bodyBytesMax: 1 << 16)
        let answer: [UInt8]
        do throws(EtcdFailure) {
            answer = try connection.answer(request, of: endpoint)
        } catch {
            // Whatever has come of this request, the one that it is for has not been sent.
            if case .unanswered(let reason) = error { throw .unreachable(reason) }
            throw error
        }
        guard let found = try? Etcd.decode(Etcd.Authenticated.self, from: answer) else {
            throw .malformed("\(endpoint) has no token for the user \(user.name)")
        }
        token.withLock { $0 = found.token }
        return [type, "Authorization: \(found.token)"]
    }

    /// A token expires, is lost with the process of an etcd, and counts no more when users or roles have changed.
    func isExpired(by failure: EtcdFailure) -> Bool {
        guard user != nil, case .refused(let code, let reason) = failure,
            code == 16 || reason.contains("revision of auth store is old")
        else { return false }
        forget()
        return true
    }

    func forget() { token.withLock { $0 = nil } }
}
