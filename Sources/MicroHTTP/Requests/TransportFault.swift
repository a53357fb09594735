package import HTTPTypes

/// Why the transport refuses a request before a handler receives it.
package enum TransportFault: Error, Sendable, Equatable {
    /// The head breaks a rule of RFC 9112; the sentence says which, without quoting the client.
    case malformed(String)
    /// The head is longer than the configured maximum, or has more fields.
    case headTooLarge(bytesMax: Int, fieldsMax: Int)
    /// The target is longer than the configured maximum, or has more parameters.
    case targetTooLong(bytesMax: Int, parametersMax: Int)
    /// The version of HTTP is neither 1.0 nor 1.1.
    case versionNotSupported
    /// The request has taken longer to arrive than the configuration allows.
    case tooSlow
    /// The body comes in a transfer coding other than `chunked`.
    case unsupportedTransferCoding
    /// The body is chunked, and the version of libmicrohttpd does not read chunks strictly.
    case lengthRequired
    /// The body is longer than the configured maximum, by its length or by its head.
    case bodyTooLarge(bytesMax: Int)
    /// The clients' bodies and unread answers occupy as much memory as the configuration allows.
    case memoryExhausted
    /// The bodies of this client occupy its share of that memory.
    case shareExhausted
    /// The server has as many connections as its configuration allows, and refuses this one.
    case connectionsExhausted

    /// The status that RFC 9110 has for this fault.
    package var status: HTTPResponse.Status {
        switch self {
        case .malformed: .badRequest
        case .headTooLarge: .requestHeaderFieldsTooLarge
        case .targetTooLong: .uriTooLong
        case .versionNotSupported: HTTPResponse.Status(code: 505, reasonPhrase: "HTTP Version Not Supported")
        case .tooSlow: .requestTimeout
        case .unsupportedTransferCoding: .notImplemented
        case .lengthRequired: .lengthRequired
        case .bodyTooLarge: .contentTooLarge
        case .shareExhausted: .tooManyRequests
        case .memoryExhausted, .connectionsExhausted: .serviceUnavailable
        }
    }
}
