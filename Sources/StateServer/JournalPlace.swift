internal import StateCluster
internal import StateJournal
internal import StateStore

enum JournalPlace: Sendable, CustomStringConvertible {
    case directory(String)
    case cluster(ClusterAddress)

    init?(_ text: String, _ settings: Settings) throws(SettingsFault) {
        guard text != "none" else { return nil }
        self = ClusterAddress.isMeant(by: text) ? .cluster(try settings.etcdAddress(text)) : .directory(text)
    }

    var description: String {
        switch self {
        case .directory(let path): path
        case .cluster(let address): address.description
        }
    }

    var directory: String {
        get throws(SettingsFault) {
            guard case .directory(let path) = self else {
                throw SettingsFault(description: "data is \(self): this command works on a directory only")
            }
            return path
        }
    }

    func history() throws -> any RecordedHistory {
        switch self {
        case .directory(let path): try JournalReader(directory: path)
        case .cluster(let address): try ClusterHistory(address)
        }
    }

    /// Whether a history is there, even a damaged one; it throws if etcd does not say.
    var hasHistory: Bool {
        get throws {
            switch self {
            // There is no other reason to throw.
            case .directory(let path): (try? JournalReader.check(path)) != nil
            case .cluster(let address): try ClusterHistory.isThere(address)
            }
        }
    }

    var domain: HistoryDomain? {
        get throws {
            switch self {
            case .directory(let path): try JournalReader(directory: path).domain
            case .cluster(let address): try ClusterHistory.domain(address)
            }
        }
    }

    func draft(epoch: Epoch = .random()) throws -> any HistoryDraft {
        switch self {
        case .directory(let path): try JournalDraft(directory: path, epoch: epoch)
        case .cluster(let address): try ClusterDraft(address, epoch: epoch)
        }
    }

    func document(_ key: String, name: String) throws(SettingsFault) -> any SharedDocument {
        switch self {
        case .directory(let path):
            return SharedFile(path: "\(path)/\(key).json", name: name, isSecret: key == HookFile.key)
        case .cluster(let address):
            do {
                return ClusterFile(try ClusterDocument(address, key), name: name, at: address, key)
            } catch { throw SettingsFault(description: "\(error)") }
        }
    }

    func copyDocuments(to other: JournalPlace) throws(SettingsFault) -> [String] {
        var copied: [String] = []
        for (key, name) in [("tokens", TokenFile.name), ("quarantine", QuarantineFile.name)] {
            guard let bytes = try document(key, name: name).bytes() else { continue }
            try other.document(key, name: name).change { (there) throws(SettingsFault) in there == nil ? bytes : nil }
            copied.append(name)
        }
        return copied
    }

    /// Throws where the history may go on beside a copy of its epoch; a cluster passes, copied at one revision of etcd.
    func refuseInUse() throws {
        if case .directory(let path) = self { try JournalReader.refuseInUse(path) }
    }

    var finding: String {
        func history() -> String {
            do {
                let history = try self.history()
                return "epoch \(history.epoch.text), version \(history.latest)"
            } catch {
                return "\(error)"
            }
        }
        return switch self {
        case .directory: history()
        case .cluster(let address): "\(EtcdCount(address)); \(history())"
        }
    }
}
