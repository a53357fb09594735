internal import FoundationEssentials
internal import Synchronization

/// A text beside the turns of a history, such as its tokens, which all servers of the history and several commands share.
///
/// Any thread may call any method.
package final class ClusterDocument: Sendable {
    /// The content of the document.
    package struct Content: Sendable {
        /// Nil where there is no document.
        package var bytes: [UInt8]?
        /// The revision of etcd that this is the content of, or of the change that has made it so.
        package var revision: UInt64
    }

    let key: String
    private let client: EtcdClient
    /// The newest message of the watch, while a journal follows the document.
    private let followed = Mutex<Content?>(nil)

    /// Names a document of the history at an address, for a command.
    ///
    /// - Throws: where the machine has no libcurl.
    package convenience init(_ address: ClusterAddress, _ name: String) throws {
        self.init(try EtcdClient(address, label: name), ClusterKeys(name: address.name), name)
    }

    init(_ client: EtcdClient, _ keys: ClusterKeys, _ name: String) {
        self.client = client
        key = "\(keys.name)/\(name)"
    }

    /// The content of the document: as the journal follows it, or else as etcd says now.
    ///
    /// - Throws: ``ClusterFault`` if etcd does not answer.
    package func content() throws(ClusterFault) -> Content {
        if let content = followed.withLock(\.self) { return content }
        return try read()
    }

    /// The revision of the content that a journal follows, if one does.
    package var revision: UInt64? { followed.withLock { $0?.revision } }

    /// The content of the document in etcd now.
    package func read() throws(ClusterFault) -> Content {
        let answer = try client.range(Etcd.Range(key))
        return answer.kvs?.first.map { Content($0) } ?? Content(bytes: nil, revision: answer.header.number)
    }

    /// Replaces what the document has.
    ///
    /// - Returns: false where it is no longer what the caller has seen.
    /// - Throws: ``ClusterFault`` where etcd does not answer: whether it is replaced is not known then.
    package func replace(_ seen: Content, by bytes: [UInt8]) throws(ClusterFault) -> Bool {
        let isAsSeen: Etcd.Compare = seen.bytes == nil ? .absent(key) : .unchanged(key, since: seen.revision)
        return try client.commit([.put(key, bytes)], where: [isAsSeen])
    }

    /// Begins to be followed, or takes what the watch may have missed.
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
