package import HTTPTypes
internal import StateStore

extension HTTPField.Name {
    private static func known(_ name: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(name) else { preconditionFailure("\(name) is not a field name") }
        return name
    }

    package static let stateCursor = known("State-Cursor")
    /// Why the answer to a request with `wait` has not waited.
    package static let stateWait = known("State-Wait")
    /// For how many seconds a server of a cluster may have missed what others acknowledge.
    package static let stateAge = known("State-Age")
    package static let idempotencyReplayed = known("Idempotency-Replayed")
    /// The preferences that the server has followed (RFC 7240).
    package static let preferenceApplied = known("Preference-Applied")
    /// Links to other resources (RFC 8288).
    package static let link = known("Link")
    package static let prefer = known("Prefer")
    /// `no` on streams: nginx then does not buffer the answer.
    package static let accelBuffering = known("X-Accel-Buffering")
    /// For how many seconds nginx keeps the answer in its cache, whatever `Cache-Control` says.
    package static let accelExpires = known("X-Accel-Expires")
    package static let streamNextOffset = known("Stream-Next-Offset")
    package static let streamUpToDate = known("Stream-Up-To-Date")
    /// The interval of time that the client of a live read echoes as `cursor`.
    package static let streamCursor = known("Stream-Cursor")
}
