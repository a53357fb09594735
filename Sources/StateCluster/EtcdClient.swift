internal import Dispatch
internal import FoundationEssentials
internal import HTTPClient
internal import StateJSON
internal import Synchronization

/// One request at a time by the JSON gateway, to one endpoint until that one fails; carrying a request out twice does
/// no harm, so a failed one is sent to the next endpoint.
final class EtcdClient: Sendable {
    private let connection: EtcdConnection
    private let queue: DispatchQueue
    /// The endpoint that has answered last.
    private nonisolated(unsafe) var current: Int  // unsafe: only code on `queue` uses it.

    private let timeout: Duration
    /// For how long ``ask(_:_:)`` tries again while etcd elects a leader.
    private let patience: Duration
    private static let answerBytesMax = 256 << 20

    init(_ address: ClusterAddress, label: String, timeout: Duration = .seconds(2), patience: Duration = .zero) throws {
        (self.timeout, self.patience) = (timeout, patience)
        connection = try EtcdConnection(address)
        queue = DispatchQueue(label: "storekeeper.etcd.\(label)")
        current = Int.random(in: address.endpoints.indices)
    }

    func cancel() { connection.http.cancel() }

    func call<Answer: Decodable & Sendable>(
        _ path: String, _ message: some Encodable & Sendable, within timeout: Duration? = nil
    ) throws(ClusterFault) -> Answer {
        guard let body = try? JSON.encode(message) else { throw .malformed("a request to \(path) cannot be written") }
        let answered = queue.sync {
            Result { () throws(ClusterFault) in try send(path, body, timeout ?? self.timeout) }
        }
        let bytes = try answered.get()
        guard let answer = try? Etcd.decode(Answer.self, from: bytes) else {
            throw .malformed("its answer to \(path) cannot be read")
        }
        return answer
    }

    private func send(_ path: String, _ body: [UInt8], _ timeout: Duration) throws(ClusterFault) -> [UInt8] {
        var failure = ClusterFault.unreachable("it has no endpoints")
        var mayBeDone = false
        let endpoints = connection.endpoints
        for _ in endpoints {
            do throws(ClusterFault) {
                return try send(path, body, timeout, to: endpoints[current])
            } catch {
                failure = error
                switch error {
                case .unanswered: mayBeDone = true
                case .unreachable: break
                case .refused, .malformed, .history: throw mayBeDone ? .unanswered("\(error)") : error
                }
                current = (current + 1) % endpoints.count
            }
        }
        if mayBeDone, case .unreachable(let reason) = failure { throw .unanswered(reason) }
        throw failure
    }

    private func send(
        _ path: String, _ body: [UInt8], _ timeout: Duration, to endpoint: String, isAgain: Bool = false
    ) throws(ClusterFault) -> [UInt8] {
        let request = HTTPConnection.Request(
            endpoint + path, method: "POST", fields: try connection.fields(at: endpoint), body: body,
            within: timeout, bodyBytesMax: Self.answerBytesMax)
        do throws(ClusterFault) {
            return try connection.answer(request, of: endpoint)
        } catch  where !isAgain && connection.isExpired(by: error) {
            return try send(path, body, timeout, to: endpoint, isAgain: true)
        }
    }

    // MARK: Requests that are not told apart by how they fail

    func ask<Answer: Decodable & Sendable>(
        _ path: String, _ message: some Encodable & Sendable
    ) throws(ClusterFault) -> Answer {
        let end = ContinuousClock.now + patience
        while true {
            do throws(ClusterFault) {
                return try call(path, message)
            } catch {
                guard error.isPassing, ContinuousClock.now < end else { throw error }
                pause(milliseconds: 200)
            }
        }
    }

    func range(_ range: Etcd.Range) throws(ClusterFault) -> Etcd.RangeResponse { try ask("/v3/kv/range", range) }

    /// False where a condition does not hold.
    func commit(
        _ operations: [Etcd.Operation], where conditions: [Etcd.Compare] = []
    ) throws(ClusterFault) -> Bool {
        let transaction = Etcd.Transaction(compare: conditions, success: operations)
        let answer: Etcd.TransactionResponse = try ask("/v3/kv/txn", transaction)
        return answer.succeeded == true
    }
}

/// A semaphore would wait on Linux for a moment of the wall clock, which can be set back; a group waits for a time.
func pause(milliseconds: Int) {
    let group = DispatchGroup()
    group.enter()
    _ = group.wait(timeout: .now() + .milliseconds(milliseconds))
    group.leave()
}

extension ClusterFault {
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
        let message = "\(endpoint): \(fault.message ?? "gRPC status \(code)")"
        // Only some statuses say that nothing was carried out.
        switch code {
        // Failed precondition: from etcd 3.6 on that is what a learner says, and one that begins; another one may take it.
        case 9: self = .unreachable(message)
        // Invalid argument, not found, permission denied, resource exhausted, out of range, unauthenticated: etcd decides
        // these before it proposes anything.
        case 3, 5, 7, 8, 11, 16: self = .refused(code, message)
        default: self = .unanswered(message)
        }
    }
}

/// The endpoints of etcd, and the token of a user.
///
/// Source: etcd's page "gRPC gateway", "Authentication".
final class EtcdConnection: Sendable {
    let endpoints: [String]
    let http: HTTPConnection
    private let user: ClusterAddress.User?
    private let token = Mutex<String?>(nil)

    private static let timeout = Duration.seconds(2)

    init(_ address: ClusterAddress) throws {
        endpoints = address.endpoints
        http = try HTTPConnection(tls: address.tls)
        user = address.user
    }

    func answer(_ request: HTTPConnection.Request, of endpoint: String) throws(ClusterFault) -> [UInt8] {
        let response: HTTPConnection.Response
        do throws(HTTPConnection.Failure) {
            response = try http.perform(request)
        } catch {
            throw ClusterFault(error, endpoint)
        }
        guard response.status != 200 else { return response.body }
        throw ClusterFault(response.body, status: response.status, endpoint)
    }

    /// The first request of a user asks for a token.
    func fields(at endpoint: String) throws(ClusterFault) -> [String] {
        let type = "Content-Type: application/json"
        guard let user else { return [type] }
        if let token = token.withLock(\.self) { return [type, "Authorization: \(token)"] }
        let body = try? JSON.encode(["name": user.name, "password": user.password()])
        let request = HTTPConnection.Request(
            endpoint + "/v3/auth/authenticate", method: "POST", fields: [type], body: body, within: Self.timeout,
            bodyBytesMax: 1 << 16)
        let answer: [UInt8]
        do throws(ClusterFault) {
            answer = try self.answer(request, of: endpoint)
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
    func isExpired(by failure: ClusterFault) -> Bool {
        guard user != nil, case .refused(let code, let reason) = failure,
            code == 16 || reason.contains("revision of auth store is old")
        else { return false }
        forget()
        return true
    }

    func forget() { token.withLock { $0 = nil } }
}
