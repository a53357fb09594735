internal import GRDB
internal import StateJSON
package import StateStore

extension SQLiteJournal {
    /// The policy of a start for a journal that is damaged or shorter than its fence says.
    package enum DamagePolicy: Sendable {
        /// It ends with a sentence, and changes nothing.
        case refuse
        /// It verifies the whole journal, and where that finds damage, goes on from the last good version under a new epoch.
        /// The damaged files stay beside the new journal.
        case acceptLoss
    }

    /// Opens the journal in a directory, or begins one there, and reads the newest state.
    ///
    /// - Parameters:
    ///   - time: the current time, at which idempotency keys may have expired.
    /// - Throws: what ``init(directory:retention:report:initial:)`` and ``recover(at:)`` throw.
    package static func open(
        directory: String, retention: Retention = Retention(), onDamage policy: DamagePolicy = .refuse,
        at time: Timestamp, report: @escaping @Sendable (JournalEvent) -> Void = { _ in },
        initial: () throws -> [UInt8]
    ) throws -> (journal: SQLiteJournal, recovery: Recovery) {
        func open(_ extent: StartCheck.Extent?) throws -> (SQLiteJournal, Recovery) {
            do {
                let journal = try SQLiteJournal(
                    directory: directory, retention: retention, extent: extent, report: report, initial: initial)
                return (journal, try journal.recover(at: time))
            } catch let error as DatabaseError {
                throw JournalError("open", DataDirectory(path: directory).journal, error)
            }
        }
        guard policy == .acceptLoss else { return try open(nil) }
        do {
            return try open(.whole)
        } catch let error as JournalError where error.kind == .damage {
            let place = DataDirectory(path: directory)
            do {
                let lock = try DirectoryLock(place)
                defer { lock.release() }
                report(
                    .lossAccepted(
                        try DamageRecovery.replace(place, lock, because: error.description, initial: initial)))
            }
            return try open(nil)
        }
    }
}
