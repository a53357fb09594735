internal import MicroHTTP
internal import StateStore
internal import Synchronization

/// The states of past versions that clients have asked for lately, within an eighth of the memory that clients may occupy.
///
/// They are kept as JSON, because a typed state takes up to eight times as much memory; only the last one is kept typed. A
/// client that goes through versions gets each from the one before, and one that reads several values of a version gets them
/// from one state. Any thread may call any method.
final class PastStates: Sendable {
    private struct Kept {
        let text: [UInt8]
        var lastUse: Int
    }

    private struct State {
        var kept: [Version: Kept] = [:]
        var bytes = 0
        var uses = 0
        /// The state that was made last.
        var last: (any AnySnapshot)?
    }

    private let state = Mutex(State())
    private let memory: MemoryBudget
    private let bytesMax: Int

    init(_ memory: MemoryBudget) {
        self.memory = memory
        bytesMax = memory.bytesMax / 8
    }

    /// The state at a version, if it is the last one that was kept.
    func last(at version: Version) -> (any AnySnapshot)? {
        state.withLock { $0.last?.cursor.version == version ? $0.last : nil }
    }

    /// The newest kept state from a version on up to another, as JSON; nil where there is none.
    ///
    /// O(n) in the number of kept states.
    func newest(from oldest: Version, to version: Version) -> (version: Version, text: [UInt8])? {
        state.withLock { state in
            guard let found = state.kept.keys.filter({ (oldest...version).contains($0) }).max() else { return nil }
            state.uses += 1
            state.kept[found]?.lastUse = state.uses
            return state.kept[found].map { (found, $0.text) }
        }
    }

    /// Keeps a state, and drops those that were used longest ago where there is no room.
    ///
    /// - Parameter text: the state as JSON.
    func keep(_ snapshot: any AnySnapshot, as text: [UInt8]) {
        let (version, bytes) = (snapshot.cursor.version, text.count)
        guard bytes <= bytesMax / 2 else { return }
        state.withLock { state in
            state.last = snapshot
            guard state.kept[version] == nil else { return }
            while state.bytes + bytes > bytesMax, drop(from: &state) {}
            // What clients send and have not read comes first.
            while !memory.reserve(bytes) { guard drop(from: &state) else { return state.last = nil } }
            state.uses += 1
            state.bytes += bytes
            state.kept[version] = Kept(text: text, lastUse: state.uses)
        }
    }

    /// Drops the state that was used longest ago; returns false where there is none.
    private func drop(from state: inout State) -> Bool {
        guard let oldest = state.kept.min(by: { $0.value.lastUse < $1.value.lastUse }) else { return false }
        state.kept[oldest.key] = nil
        state.bytes -= oldest.value.text.count
        memory.release(oldest.value.text.count)
        return true
    }
}
