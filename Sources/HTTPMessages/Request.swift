public import HTTPTypes

/// An HTTP request as a value: complete, and not yet interpreted.
public struct Request: Sendable {
    /// The method, as sent.
    public var method: HTTPRequest.Method
    /// The raw request target: path and query exactly as sent, still percent-encoded.
    public var target: String
    /// The header fields, in the order of the head.
    public var fields: HTTPFields
    /// The whole body; empty when there is none.
    public var body: [UInt8]
    /// The memo of the request's head; nil for a head that the transport does not cache.
    public var memo: HeadMemo?
    /// The peer's address without its port, which is the key of limits per client.
    public var client: String

    /// Makes a request; only the target has no default.
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
