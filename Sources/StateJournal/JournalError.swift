internal import GRDB
internal import StateStore

/// Why a journal cannot be used.
///
/// The description is a sentence for the operator.
public struct JournalError: Error, Sendable, CustomStringConvertible {
    /// What happened, to what, and what can be done.
    public let description: String

    init(_ description: String) { self.description = description }

    /// Names a commit that is missing between others.
    init(lacking version: Version, _ path: String) {
        self.init("the journal \(path) lacks the commit of version \(version): restore it from a backup")
    }

    /// Names commits that are not what was recorded.
    init(damagedFrom first: Version, through last: Version, _ path: String) {
        let commits =
            first == last ? "the commit of version \(first)" : "one of the commits of versions \(first) to \(last)"
        self.init(
            damaged: path, "\(commits) is not what was recorded, or does not follow the commit before it")
    }

    /// Names damage that is not in a commit.
    init(damaged path: String, _ detail: String) {
        self.init("the journal \(path) is damaged: \(detail): restore it from a backup")
    }

    /// Says why a format is not read.
    init(format: Int, _ path: String) {
        let advice =
            format < JournalSchema.version
            ? "start the server once, which upgrades it" : "use a newer program"
        self.init(
            "the journal \(path) is of format \(format), this program reads format \(JournalSchema.version): \(advice)")
    }

    /// Describes an error of SQLite in one sentence; an error that is described already stays as it is.
    init(_ doing: String, _ path: String, _ error: any Error) {
        if let error = error as? JournalError {
            self = error
            return
        }
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
    /// The index of the clients' IDs could not be extended. No commit is lost; more of the index stays in memory.
    case idsNotIndexed(reason: String)
    /// An upgrade of the file's format is going on, and has rewritten so many of its commits.
    case upgrading(commits: Int, of: Int)
}
