import Synchronization

/// What has been found out about a request's head, kept for the requests that have the same head.
///
/// Whoever serves requests gives equal heads the same notes; whoever reads them leaves there what would be found out
/// again and again.
public final class HeadNotes: Sendable {
    private let note = Mutex<(any AnyObject & Sendable)?>(nil)

    /// Makes empty notes.
    public init() {}

    /// What was left here, if it is of this kind.
    public func left<Note: AnyObject & Sendable>(_ kind: Note.Type = Note.self) -> Note? {
        note.withLock { $0 as? Note }
    }

    /// Leaves something for those who come after; what was there before is gone.
    public func leave(_ note: some AnyObject & Sendable) {
        self.note.withLock { $0 = note }
    }
}
