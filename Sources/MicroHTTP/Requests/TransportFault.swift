package import HTTPTypes

package enum TransportFault: Error, Sendable, Equatable {
    /// The sentence does not quote the client.
    case malformed(String)
    case headTooLarge(bytesMax: Int, fieldsMax: Int)
    case targetTooLong(bytesMax: Int, parametersMax: Int)
    case versionNotSupported
    case tooSlow
    case unsupportedTransferCoding
    /// The body is chunked, and the version of libmicrohttpd does not read chunks strictly.
    case lengthRequired
    case bodyTooLarge(bytesMax: Int)
    /// The bodies and unread answers of all clients are too much.
    case memoryExhausted
    /// The bodies of this client occupy its share of that memory.
    case shareExhausted
    case connectionsExhausted

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
