internal import FoundationEssentials
internal import Synchronization

/// A file that a running server reads again after each change; what was read before stays where it has a fault.
///
/// Any thread may call any method.
final class WatchedFile<Content: Sendable>: Sendable {
    /// The news since the last look.
    enum News {
        case content(Content)
        case fault(String)
    }

    private struct State {
        var stamp: [Int]?
        /// Why the file cannot be read; nil while it can, also where its content has a fault.
        var unreadableReason: String?
    }

    private let file: any SharedDocument
    private let decode: @Sendable (Data?) throws(SettingsFault) -> Content
    private let state: Mutex<State>

    /// Watches a file for later changes.
    init(_ file: any SharedDocument, decode: @escaping @Sendable (Data?) throws(SettingsFault) -> Content) {
        self.file = file
        self.decode = decode
        state = Mutex(State(stamp: file.stamp))
    }

    /// Why the file cannot be read; nil while it can, also where its content has a fault.
    var unreadableReason: String? { state.withLock { $0.unreadableReason } }

    /// Reads the file.
    func content() throws(SettingsFault) -> Content { try decode(try file.bytes()) }

    /// Reads the file if it has changed, or could not be read.
    func news() -> News? {
        let stamp = file.stamp
        guard state.withLock({ $0.stamp != stamp || $0.unreadableReason != nil }) else { return nil }
        var isRead = false
        do throws(SettingsFault) {
            let bytes = try file.bytes()
            isRead = true
            let content = try decode(bytes)
            state.withLock { $0 = State(stamp: stamp) }
            return .content(content)
        } catch {
            let reason = error.description
            return state.withLock { state in
                state.stamp = stamp
                if isRead, state.unreadableReason == nil { return .fault(reason) }
                let isNew = state.unreadableReason != reason
                state.unreadableReason = reason
                return isNew ? .fault(reason) : nil
            }
        }
    }
}
