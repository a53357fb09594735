/// The stage of a loop between its start and its end.
///
/// Draining answers waiting exchanges at once and lets work finish. After the grace time the loop answers work in the
/// same way, and cutting leaves a moment for answers that are being sent before the loop closes their connections.
enum Stage {
    case serving
    case draining(until: LoopInstant)
    case cutting(until: LoopInstant)

    /// Whether answers close their connections, and waits and streams end as soon as they begin.
    var isStopping: Bool {
        switch self {
        case .serving: false
        case .draining, .cutting: true
        }
    }

    /// Whether work ends as soon as it begins.
    var refusesWork: Bool { if case .cutting = self { true } else { false } }

    /// When the stage ends even if no event occurs.
    var deadline: LoopInstant? {
        switch self {
        case .serving: nil
        case .draining(let until), .cutting(let until): until
        }
    }
}
