internal import MicroHTTP
internal import StateStore
internal import Synchronization

/// The states of past versions that clients have asked for lately, within an eighth of the memory that clients may occupy.
///
/// A client that goes through versions gets each from the one before, and one that asks again gets what was made. Any thread
/// may call any method.
final class PastStates: Sendable {
    private struct Kept {
        let snapshot: any AnySnapshot
        let bytes: Int
        var lastUse: Int
    }

    private struct State {
        var kept: [Version: Kept] = [:]
        var bytes = 0
        var uses = 0
    }

    private let state = Mutex(State())
    private let memory: MemoryBudget
    private let bytesMax: Int

    init(_ memory: MemoryBudget) {
        self.memory = memory
        bytesMax = memory.bytesMax / 8
    }

    /// The newest kept state from a version on up to another; nil where there is none.
    ///
    /// O(n) in the number of kept states.
    func newest(from oldest: Version, to version: Version) -> (any AnySnapshot)? {
        state.withLock { state in
            guard let found = state.kept.keys.filter({ (oldest...version).contains($0) }).max() else { return nil }
            state.uses += 1
            state.kept[found]?.lastUse = state.uses
            return state.kept[found]?.snapshot
        }
    }

    /// Keeps a state, and drops those that were used longest ago where there is no room.
    ///
    /// - Parameter bytes: the size of the state as JSON.
    func keep(_ snapshot: any AnySnapshot, bytes: Int) {
        guard bytes <= bytesMax / 2 else { return }
        state.withLock { state in
            guard state.kept[snapshot.cursor.version] == nil else { return }
            while state.bytes + bytes > bytesMax, drop(from: &state) {}
            // What clients send and have not read comes first.
            while !memory.reserve(bytes) { guard drop(from: &state) else { return } }
            state.uses += 1
            state.bytes += bytes
            state.kept[snapshot.cursor.version] = Kept(snapshot: snapshot, bytes: bytes, lastUse: state.uses)
        }
    }

    /// Drops the state that was used longest ago; returns false where there is none.
    private func drop(from state: inout State) -> Bool {
        guard let oldest = state.kept.min(by: { $0.value.lastUse < $1.value.lastUse }) else { return false }
        state.kept[oldest.key] = nil
        state.bytes -= oldest.value.bytes
        memory.release(oldest.value.bytes)
        return true
    }
}
