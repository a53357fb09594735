internal import FoundationEssentials
internal import HTTPClient
internal import StateJSON
internal import Synchronization

/// Puts the token of a user of etcd into requests, and gets another one when it has expired.
///
/// Source: etcd's page "gRPC gateway", "Authentication".
final class EtcdLogin: Sendable {
    private let user: ClusterAddress.User?
    private let token = Mutex<String?>(nil)

    /// How long one endpoint has for an answer.
    private static let timeout = Duration.seconds(2)

    init(_ user: ClusterAddress.User?) { self.user = user }

    /// The fields of a request to an endpoint; the first one of a user asks for a token.
    func fields(at endpoint: String, by connection: HTTPConnection) throws(EtcdFailure) -> [String] {
        let type = "Content-Type: application/json"
        guard let user else { return [type] }
        if let token = token.withLock(\.self) { return [type, "Authorization: \(token)"] }
        var request = HTTPConnection.Request(
            endpoint + "/v3/auth/authenticate", within: Self.timeout, bodyBytesMax: 1 << 16)
        request.method = "POST"
        request.fields = [type]
        request.body = (try? JSON.encode(Etcd.Authenticate(name: user.name, password: user.password())))
            .map { Array($0) }
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

    /// Whether a request has failed because its token counts no more; the next one then has another.
    ///
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
