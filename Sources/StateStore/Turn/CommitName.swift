package import StateJSON

/// A name by which an index finds a commit: an ID that a client gave, of one subject or of any.
package struct CommitName: Hashable, Sendable {
    package let id: ExactText
    /// The subject that has dispatched it; nil for any.
    package let subject: ExactText?

    package init(_ id: String, by subject: String?) {
        self.id = ExactText(id)
        self.subject = ExactText(optional: subject)
    }

    /// The hash by which a journal's index finds the commit.
    ///
    /// It is that of both texts with a NUL between them, as journals have it. Two names may have one hash, so a reader
    /// compares the commit that it finds.
    package var hash: ContentHash {
        var text = subject.map { "\($0.text)\0\(id.text)" } ?? id.text
        return text.withUTF8 { ContentHash(UnsafeRawBufferPointer($0)) }
    }
}
