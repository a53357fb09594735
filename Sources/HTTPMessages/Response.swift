public import HTTPTypes

/// An HTTP response as a value.
public struct Response: Sendable, Equatable {
    /// The status code and phrase.
    public var status: HTTPResponse.Status
    /// The header fields.
    ///
    /// `Content-Length`, `Date` and `Connection` are the transport's to add.
    public var fields: HTTPFields
    /// The body's bytes; not sent with 204, 304 or in answer to HEAD.
    public var body: [UInt8]
    /// Whether the connection stays usable after this answer.
    public var connection: ConnectionFate

    /// What becomes of the connection once the answer is sent.
    public enum ConnectionFate: Sendable {
        /// Further requests may follow.
        case keep
        /// `Connection: close` is sent and the connection ends.
        case close
    }

    /// Makes a response.
    public init(
        status: HTTPResponse.Status, fields: HTTPFields = [:], body: [UInt8] = [], connection: ConnectionFate = .keep
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.connection = connection
    }
}
