public import HTTPTypes

/// An HTTP request as a value: all of it has arrived, and nothing about it is interpreted yet.
public struct Request: Sendable {
    /// The method, as sent.
    public var method: HTTPRequest.Method
    /// The raw request target: path and query exactly as sent, still percent-encoded.
    public var target: String
    /// The header fields, in the order they came.
    public var fields: HTTPFields
    /// The whole body; empty when there is none.
    public var body: [UInt8]
    /// What is known of its head, where others have come with the same.
    public var notes: HeadNotes?
    /// Who asks: the peer's address without its port, the key of per-client limits.
    public var client: String

    /// Makes a request; every part but the target has the default that a test would want.
    public init(
        method: HTTPRequest.Method = .get, target: String, fields: HTTPFields = [:], body: [UInt8] = [],
        client: String = "127.0.0.1"
    ) {
        self.method = method
        self.target = target
        self.fields = fields
        self.body = body
        self.client = client
    }
}
