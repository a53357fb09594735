internal import FoundationEssentials
internal import Synchronization

/// All servers of a history and several commands share such a text, for example its tokens; any thread may call any
/// method.
package final class ClusterDocument: Sendable {
    package struct Content: Sendable {
        package var bytes: [UInt8]?
        /// Of etcd, for the content or for the change that has made it so.
        package var revision: UInt64
    }

    let key: String
    private let client: EtcdClient
    /// Nil while no journal follows the document.
    private let followed = Mutex<Content?>(nil)

    package convenience init(_ address: ClusterAddress, _ name: String) throws {
        self.init(try EtcdClient(address, label: name), ClusterKeys(name: address.name), name)
    }

    init(_ client: EtcdClient, _ keys: ClusterKeys, _ name: String) {
        self.client = client
        key = "\(keys.name)/\(name)"
    }

    package func content() throws(ClusterFault) -> Content {
        if let content = followed.withLock(\.self) { return content }
        return try read()
    }

    package var revision: UInt64? { followed.withLock { $0?.revision } }

    package func read() throws(ClusterFault) -> Content {
        let answer = try client.range(Etcd.Range(key))
        return answer.kvs?.first.map { Content($0) } ?? Content(bytes: nil, revision: answer.header.number)
    }

    /// Returns false where the document is no longer what the caller has seen; where etcd does not answer, whether it
    /// is replaced is not known.
    package func replace(_ seen: Content, by bytes: [UInt8]) throws(ClusterFault) -> Bool {
        let isAsSeen: Etcd.Compare = seen.bytes == nil ? .absent(key) : .unchanged(key, since: seen.revision)
        return try client.commit([.put(key, bytes)], where: [isAsSeen])
    }

    func follow() throws(ClusterFault) { note(try read()) }

    func note(_ content: Content) {
        followed.withLock { known in
            // The watch may begin before what was read.
            if content.revision >= known?.revision ?? 0 { known = content }
        }
    }
}

extension ClusterDocument.Content {
    init(_ pair: Etcd.Pair, isDeleted: Bool = false) {
        self.init(bytes: isDeleted ? nil : pair.bytes, revision: UInt64(pair.mod_revision) ?? 0)
    }
}
