internal import StateJournal

/// What a failed start means for an operator.
public enum FailureCause: Sendable {
    /// The journal is damaged or shorter than it was: each further start fails until an operator has chosen what to do.
    case damagedJournal
    /// A setting is wrong: each further start fails until it is changed.
    case settings
    /// Anything else, which may pass: a port that is in use, or a full disk.
    case other

    /// Classifies an error that ``StateServer`` or ``SettingsReading`` has thrown.
    public init(of error: any Error) {
        switch error {
        case let error as JournalError where error.kind == .damage: self = .damagedJournal
        case is SettingsFault: self = .settings
        default: self = .other
        }
    }
}
