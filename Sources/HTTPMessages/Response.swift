public import HTTPTypes

/// An HTTP response as a value.
public struct Response: Sendable, Equatable {
    /// The status code and phrase.
    public var status: HTTPResponse.Status
    /// The header fields.
    ///
    /// The transport adds `Content-Length`, `Date` and `Connection`.
    public var fields: HTTPFields
    /// The bytes of the body, which the transport does not send with 204 and 304 and in answer to HEAD.
    public var body: [UInt8]
    /// Whether the connection stays open after this response.
    public var connection: ConnectionFate

    /// What the transport does with the connection after it has sent the response.
    public enum ConnectionFate: Sendable {
        /// The connection stays open for further requests.
        case keep
        /// The transport sends `Connection: close` and closes the connection.
        case close
    }

    /// Makes a response; only the status has no default.
    public init(
        status: HTTPResponse.Status, fields: HTTPFields = [:], body: [UInt8] = [], connection: ConnectionFate = .keep
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.connection = connection
    }
}
