internal import Dispatch
internal import FoundationEssentials
internal import StateJSON
internal import StateJournal
internal import StateStore
internal import Synchronization

package enum ClusterWriter: Sendable, Equatable {
    case this
    /// The address at which the others reach it, such as `http://10.0.0.1:8080`.
    case other(String)
    case nobody
}

/// The part, a key under a lease of two seconds, spares conflicts and decides nothing: that do the transactions that
/// append; each look, on a thread of its own, is linearizable, so that an etcd without a majority is not current.
final class WriterLease: Sendable {
    enum Finding: Sendable {
        /// The history of this server or its continuation, whose newest turn begins with this version.
        case current(newest: Version)
        case replaced(String)
        /// An earlier state of it, or a history that has gone on from there in another way.
        case older(String)
        case failed(String)
    }

    private struct Holder: Codable {
        var address: String
        /// Tells servers with one address apart.
        var id: String
    }

    private struct State {
        var writer = ClusterWriter.nobody
        /// When the newest look with an answer has begun.
        var confirmed = ContinuousClock.now
        var lease: String?
    }

    private let client: EtcdClient
    private let keys: ClusterKeys
    private let metaRevision: UInt64
    /// Nil for a server that does not take the part.
    private let holder: Holder?
    private let queue = DispatchQueue(label: "storekeeper.cluster.lease")
    private let isStopped = Atomic(false)
    private let state = Mutex(State())

    private static let leaseSeconds = 2

    init(_ address: ClusterAddress, _ keys: ClusterKeys, metaRevision: UInt64, reachedAt place: String?) throws {
        client = try EtcdClient(address, label: "lease", timeout: .milliseconds(700))
        self.keys = keys
        self.metaRevision = metaRevision
        holder = place.map { Holder(address: $0, id: String(UInt64.random(in: 0 ... .max), radix: 16)) }
    }

    var writer: ClusterWriter { state.withLock { $0.writer } }

    /// Counts from the last moment at which this server could surely know the newest turn.
    var age: Duration { state.withLock { $0.confirmed }.duration(to: .now) }

    /// Looks until `tip` returns nil; any other result also says whether this server may have the part.
    func start(
        _ tip: @escaping @Sendable () -> (key: Version, hash: SegmentHash, mayWrite: Bool)?,
        _ take: @escaping @Sendable (Finding) -> Void
    ) {
        queue.async { [self] in
            while !isStopped.load(ordering: .relaxed), let tip = tip() {
                if !tip.mayWrite { giveUp() }
                take(look(tip))
                pause(milliseconds: 500)
            }
        }
    }

    /// Another server takes the part at once.
    func stop() {
        isStopped.store(true, ordering: .relaxed)
        queue.sync {}
        giveUp()
    }

    private func giveUp() {
        guard let lease = state.withLock({ exchange(&$0.lease, with: nil) }) else { return }
        // Where this fails, the lease ends by itself.
        let _: Etcd.Nothing? = try? client.call("/v3/lease/revoke", Etcd.Lease(ID: lease))
    }

    private func look(_ tip: (key: Version, hash: SegmentHash, mayWrite: Bool)) -> Finding {
        let begun = ContinuousClock.now
        do throws(ClusterFault) {
            let lease = tip.mayWrite ? try keepLease() : nil
            let answer: Etcd.TransactionResponse = try client.call("/v3/kv/txn", transaction(tip.key, lease))
            let found = answer.found
            guard found.count == 4 else { return .failed("its answer to a transaction cannot be read") }
            let writer = found[0].map(reader) ?? (answer.succeeded == true && lease != nil ? .this : .nobody)
            state.withLock { ($0.writer, $0.confirmed) = (writer, begun) }
            guard let meta = found[1] else { return .replaced("it is deleted") }
            guard meta.mod_revision == "\(metaRevision)" else { return .replaced("it has begun anew") }
            guard let turn = found[2] else {
                return .older("its newest turn is gone, as after the restore of an older backup")
            }
            if keys.version(ofTurn: turn.key) == tip.key, SegmentHash(turn.bytes.prefix(16)) != tip.hash {
                return .older("the turn of version \(tip.key) has changed")
            }
            return .current(newest: found[3].flatMap { keys.version(ofTurn: $0.key) } ?? tip.key)
        } catch {
            // Its own lease has ended by now, and whether another server has taken the part is not known.
            if age > .seconds(Self.leaseSeconds) { state.withLock { $0.writer = .nobody } }
            return .failed("\(error)")
        }
    }

    private func transaction(_ key: Version, _ lease: String?) -> Etcd.Transaction {
        let read: [Etcd.Operation] = [
            .read(.init(keys.meta)), .read(keys.turnRange(from: key, limit: 1)),
            .read(keys.turnRange(limit: 1, keysOnly: true, isNewestFirst: true)),
        ]
        let look = Etcd.Operation.read(.init(keys.writer))
        guard let lease, let holder, let value = try? JSON.encode(holder) else {
            return Etcd.Transaction(compare: [], success: [look] + read)
        }
        return Etcd.Transaction(
            compare: [.absent(keys.writer)],
            success: [.put(keys.writer, value, lease: lease)] + read, failure: [look] + read)
    }

    private func reader(_ pair: Etcd.Pair) -> ClusterWriter {
        guard let found = try? Etcd.decode(Holder.self, from: pair.bytes) else { return .nobody }
        return found.id == holder?.id ? .this : .other(found.address)
    }

    private func keepLease() throws(ClusterFault) -> String? {
        guard holder != nil else { return nil }
        if let lease = state.withLock({ $0.lease }) {
            let answer: Etcd.LeaseLine = try client.call("/v3/lease/keepalive", Etcd.Lease(ID: lease))
            if let left = answer.result?.TTL.flatMap({ Int($0) }), left > 0 { return lease }
        }
        let lease: Etcd.Lease = try client.call("/v3/lease/grant", ["TTL": Self.leaseSeconds])
        state.withLock { $0.lease = lease.ID }
        return lease.ID
    }
}
