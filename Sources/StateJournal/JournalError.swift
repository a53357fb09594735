internal import GRDB

/// Why a journal cannot be used.
///
/// The description is a sentence for the operator.
public struct JournalError: Error, Sendable, CustomStringConvertible {
    /// What happened, to what, and what can be done.
    public let description: String

    init(_ description: String) { self.description = description }

    /// Describes an error of SQLite in one sentence.
    init(_ doing: String, _ path: String, _ error: any Error) {
        let reason: String =
            switch (error as? DatabaseError)?.resultCode {
            case .SQLITE_FULL?: "the disk is full"
            case .SQLITE_CANTOPEN?: "the file cannot be opened; does the directory exist and may this user write there?"
            case .SQLITE_READONLY?: "the file or its directory is read-only"
            case .SQLITE_CORRUPT?, .SQLITE_NOTADB?: "the file is damaged or is not a journal"
            case .SQLITE_IOERR?: "the disk reports an error"
            default: (error as? DatabaseError)?.message ?? "\(error)"
            }
        self.init("cannot \(doing) the journal \(path): \(reason)")
    }
}

/// A failure that a journal reports beside its results.
package enum JournalEvent: Sendable {
    /// Commits could not be appended.
    case appendFailed(reason: String)
    /// A snapshot could not be saved. No commit is lost; the next start takes longer.
    case snapshotNotSaved(reason: String)
}
