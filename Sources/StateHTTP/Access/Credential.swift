internal import FoundationEssentials
package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
internal import StateStore

package typealias Authentication = Result<Access, Problem>

package enum Credential: Sendable, Equatable {
    case token(String)
    case none
    case malformed

    /// Reads `Authorization` (RFC 6750, RFC 7617), or `access_token` for an EventSource, which sets no fields; O(n).
    package init(_ request: Request) {
        let values = request[values: .authorization]
        let parts = values.first?.split(separator: " ", omittingEmptySubsequences: true) ?? []
        switch (values.count, parts.count, parts.first?.lowercased()) {
        case (0, _, _): self = Self.parameter(of: request)
        case (1, 2, "bearer"): self = .token(String(parts[1]))
        case (1, 2, "basic"): self = Self.basic(parts[1])
        default: self = .malformed
        }
    }

    private static func basic(_ encoded: Substring) -> Credential {
        guard let bytes = Data(base64Encoded: String(encoded)), let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
            let token = String(validating: bytes[(colon + 1)...], as: UTF8.self)
        else { return .malformed }
        return .token(token)
    }

    private static func parameter(of request: Request) -> Credential {
        guard request.target.utf8.contains(UInt8(ascii: "?")), isForEvents(request),
            let target = try? RequestTarget(request.target)
        else { return .none }
        let given = target.parameters.filter { $0.name == parameterName }
        guard given.count <= 1 else { return .malformed }
        return given.first.map { $0.value.map { .token($0) } ?? .malformed } ?? .none
    }

    fileprivate static let parameterName = "access_token"

    fileprivate static func isForEvents(_ request: Request) -> Bool {
        request[.accept]?.lowercased().contains("text/event-stream") ?? false
    }
}

extension RequestTarget {
    mutating func takeToken(of request: Request) {
        guard !parameters.isEmpty, Credential.isForEvents(request) else { return }
        parameters.removeAll { $0.name == Credential.parameterName }
    }
}

extension Problem {
    /// The credential of the request is missing, or the server does not know it; which of these, the answer does not tell.
    package static let unauthorized = Problem(
        .unauthorized, "unauthorized", "this server needs a credential that it knows: Authorization: Bearer <token>",
        fields: [.wwwAuthenticate: "Bearer realm=\"storekeeper\""])

    package static let openBehindProxy = Problem(
        .unauthorized, "unauthorized",
        "this server asks nobody for a credential, because it listens on this machine only; this request came by a proxy (Forwarded, Via, X-Forwarded-* or X-Real-IP). Make a token with `storekeeper token create --subject admin --all`, or start the server with --open",
        fields: unauthorized.fields)

    package static let tooManyVerifications = busy(
        "too-many-verifications", "too many clients with new tokens have come at once; try again in a moment")

    package static let tokensUnreadable = busy(
        "tokens-unreadable", after: 10,
        "this server cannot read the file of its tokens or of its keys, and takes no credential of that file until it can; its log says why"
    )

    package static let tooManyFailures = tooMany(
        "too-many-failures", after: 10,
        "this address has sent too many credentials that this server does not know; try again later")
}
