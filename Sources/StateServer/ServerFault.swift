internal import MicroHTTP
internal import StateCluster
internal import StateJournal
internal import StateStore

/// Why a server cannot start or go on, besides a wrong setting or declaration.
///
/// The description is a sentence for the operator.
public struct ServerFault: Error, Sendable, CustomStringConvertible {
    /// The thing that an operator has to mend.
    public enum Cause: Sendable {
        /// The server cannot listen on its address or socket: another process does, or this one may not.
        case address
        /// The journal cannot be opened or written: another server uses it, the disk is full, or the directory is not writable.
        case journal
        /// The journal is damaged or shorter than it was: each further start fails until an operator has chosen what to do.
        case damagedJournal
        /// The system does not give the server what it needs, such as open files for its connections.
        case system
    }

    /// The thing that the operator has to mend.
    public let cause: Cause
    /// The event, its object, and a remedy, in a sentence.
    public let description: String

    init(_ cause: Cause, _ description: String) {
        self.cause = cause
        self.description = description
    }

    init?(_ error: any Error) {
        switch error {
        case let error as JournalError:
            cause = error.kind == .damage ? .damagedJournal : .journal
            description = error.description
        case let error as ClusterFault:
            cause = .journal
            description = error.description
        case let error as ServerError:
            cause = error.isOfAddress ? .address : .system
            description = error.description
        default: return nil
        }
    }

    static func translating<Result>(_ work: () throws -> Result) throws -> Result {
        do {
            return try work()
        } catch let refusal as DomainClaim.Refusal {
            throw SettingsFault(description: refusal.description)
        } catch {
            throw ServerFault(error) ?? error
        }
    }
}
