package import HTTPTypes
internal import StateStore

/// The header fields of the contract that swift-http-types does not name.
extension HTTPField.Name {
    private static func known(_ name: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(name) else { preconditionFailure("\(name) is not a field name") }
        return name
    }

    /// The cursor of the instant that an answer describes.
    package static let stateCursor = known("State-Cursor")
    /// Why the answer to a request with `wait` has not waited.
    package static let stateWait = known("State-Wait")
    /// For how many seconds a server of a cluster may have missed what others acknowledge.
    package static let stateAge = known("State-Age")
    /// `true` on an answer that repeats the answer to an earlier request.
    package static let idempotencyReplayed = known("Idempotency-Replayed")
    /// The preferences that the server has followed (RFC 7240).
    package static let preferenceApplied = known("Preference-Applied")
    /// Links to other resources (RFC 8288).
    package static let link = known("Link")
    /// The preferences of the client (RFC 7240).
    package static let prefer = known("Prefer")
    /// `no` on streams: nginx then does not buffer the answer.
    package static let accelBuffering = known("X-Accel-Buffering")
    /// For how many seconds nginx keeps the answer in its cache, whatever `Cache-Control` says.
    package static let accelExpires = known("X-Accel-Expires")
    /// The offset from which a client of a Durable Streams stream reads next.
    package static let streamNextOffset = known("Stream-Next-Offset")
    /// `true` on an answer with everything that the stream had at the time.
    package static let streamUpToDate = known("Stream-Up-To-Date")
    /// The interval of time that the client of a live read echoes as `cursor`.
    package static let streamCursor = known("Stream-Cursor")
}
