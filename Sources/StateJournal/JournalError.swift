internal import GRDB
package import StateStore

/// The description is a sentence for the operator.
package struct JournalError: Error, Sendable, CustomStringConvertible {
    package enum Kind: Sendable {
        /// A start can only go on with the loss accepted.
        case damage
        /// This process must not write to the journal again.
        case superseded
        case noRoom
        case other
    }

    package let description: String
    package let kind: Kind

    static let advice =
        "restore the whole data directory from a backup, or go on from the newest state that can be read, under a new epoch, with the option --accept-loss of serve"

    init(_ description: String, kind: Kind = .other) {
        self.description = description
        self.kind = kind
    }

    init(lacking version: Version, _ path: String) {
        self.init("the journal \(path) lacks the commit of version \(version): \(Self.advice)", kind: .damage)
    }

    init(lackingFence path: String) {
        self.init(
            "the fence \(path) is missing, although the journal beside it says that there is one, so nothing tells whether the journal is as long as it was: \(Self.advice)",
            kind: .damage)
    }

    init(damagedFrom first: Version, through last: Version, _ path: String) {
        let commits =
            first == last ? "the commit of version \(first)" : "one of the commits of versions \(first) to \(last)"
        self.init(
            damaged: path, "\(commits) is not what was recorded, or does not follow the commit before it")
    }

    init(damaged path: String, _ detail: String) {
        self.init("the journal \(path) is damaged: \(detail): \(Self.advice)", kind: .damage)
    }

    init(damagedSnapshot version: Version, _ path: String) {
        self.init("the journal \(path): \(Self.damagedSnapshot(version))")
    }

    package static func damagedSnapshot(_ version: Version) -> String {
        "the snapshot of version \(version) is damaged; no commit is lost, and a start uses another snapshot: `journal compact` on the stopped server drops this one, and `journal backup` leaves it out"
    }

    init(format: Int, _ path: String) {
        let advice = format < JournalSchema.version ? "use the program that wrote it" : "use a newer program"
        self.init(
            "the journal \(path) is of format \(format), this program reads format \(JournalSchema.version): \(advice)")
    }

    init(_ doing: String, _ path: String, _ error: any Error) {
        if let error = error as? JournalError {
            self = error
            return
        }
        let (reason, kind): (String, Kind) =
            switch (error as? DatabaseError)?.resultCode {
            case .SQLITE_FULL?: ("the disk is full", .noRoom)
            case .SQLITE_CANTOPEN?:
                ("the file cannot be opened; does the directory exist and may this user write there?", .other)
            case .SQLITE_READONLY?: ("the file or its directory is read-only", .other)
            case .SQLITE_CORRUPT?, .SQLITE_NOTADB?: ("the file is damaged or is not a journal", .damage)
            case .SQLITE_IOERR?: ("the disk reports an error", .other)
            // Every statement is written for these tables: another name in one of them is a damaged byte.
            case .SQLITE_ERROR?:
                ("its tables are not those of a journal, \((error as? DatabaseError)?.message ?? "")", .damage)
            case .some: ((error as? DatabaseError)?.message ?? "\(error)", .other)
            // A value that SQLite returns in another type than the one that was written.
            case nil: ("\(error)", error is RowDecodingError ? .damage : .other)
            }
        let advice = kind == .damage && error is DatabaseError ? ": \(Self.advice)" : ""
        self.init("cannot \(doing) the journal \(path): \(reason)\(advice)", kind: kind)
    }
}

package enum JournalEvent: Sendable {
    /// Where `isOpen`, whether the commits are in the journal is not known.
    case appendFailed(reason: String, isOpen: Bool)
    case appendsAgain
    /// The whole file is verified where it is small.
    case checked(StartCheck.Report)
    case fencePartial
    case lossAccepted(Loss)
    /// No commit is lost; the next start takes longer.
    case snapshotNotSaved(reason: String)
    /// No commit is lost; more of the index stays in memory.
    case idsNotIndexed(reason: String)
}
