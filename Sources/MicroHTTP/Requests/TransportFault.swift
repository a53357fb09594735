public import HTTPTypes

/// Why a request is refused before anybody has looked at what it asks for.
public enum TransportFault: Error, Sendable, Equatable {
    /// The head breaks a rule of RFC 9112; the sentence says which, without quoting the client.
    case malformed(String)
    /// The body comes in a transfer coding other than `chunked`.
    case unsupportedTransferCoding
    /// The body is, or says it is, longer than the configured maximum.
    case bodyTooLarge(bytesMax: Int)
    /// All connections are taken; this one was accepted only to be told.
    case connectionsExhausted

    /// The status that RFC 9110 has for this fault.
    public var status: HTTPResponse.Status {
        switch self {
        case .malformed: .badRequest
        case .unsupportedTransferCoding: .notImplemented
        case .bodyTooLarge: .contentTooLarge
        case .connectionsExhausted: .serviceUnavailable
        }
    }
}
