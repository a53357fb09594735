package import HTTPTypes
internal import StateStore

/// The header fields of the contract beyond those that every library knows.
extension HTTPField.Name {
    private static func known(_ name: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(name) else { preconditionFailure("\(name) is not a field name") }
        return name
    }

    /// The instant of an answer.
    package static let stateCursor = known("State-Cursor")
    /// The client's name for a command that it may have to repeat.
    package static let idempotencyKey = known("Idempotency-Key")
    /// Says that an answer is the one to an earlier request.
    package static let idempotencyReplayed = known("Idempotency-Replayed")
    /// Which preferences the server has followed.
    package static let preferenceApplied = known("Preference-Applied")
    /// Where to go on (RFC 8288).
    package static let link = known("Link")
    /// What the client would like.
    package static let prefer = known("Prefer")
    /// Where an EventSource stands that comes back (the HTML standard, section 9.2).
    package static let lastEventID = known("Last-Event-ID")
    /// Keeps nginx from collecting what a stream sends.
    package static let accelBuffering = known("X-Accel-Buffering")
    /// The client's or a proxy's name for a request, found again in problems and logs.
    package static let requestID = known("X-Request-Id")
}
