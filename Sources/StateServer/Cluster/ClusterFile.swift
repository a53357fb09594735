internal import FoundationEssentials
internal import StateCluster

struct ClusterFile: SharedDocument {
    let name: String
    let path: String
    private let document: ClusterDocument

    private static let triesMax = 20

    init(_ document: ClusterDocument, name: String, at address: ClusterAddress, _ key: String) {
        self.document = document
        self.name = name
        path = "\(address)/\(key)"
    }

    var stamp: [Int]? { document.revision.map { [Int(clamping: $0)] } }

    func bytes() throws(SettingsFault) -> Data? {
        try reaching("read") { () throws(ClusterFault) in try document.content() }.bytes.map { Data($0) }
    }

    func change(_ change: (Data?) throws(SettingsFault) -> Data?) throws(SettingsFault) {
        for _ in 0..<Self.triesMax {
            let seen = try reaching("changed") { () throws(ClusterFault) in try document.read() }
            guard let changed = try change(seen.bytes.map { Data($0) }) else { return }
            let isDone = try reaching("changed") { () throws(ClusterFault) in
                try document.replace(seen, by: Array(changed))
            }
            if isDone { return }
        }
        throw SettingsFault("the \(name) \(path) cannot be changed: others change it all the time")
    }

    private func reaching<Value>(
        _ what: String, _ body: () throws(ClusterFault) -> Value
    ) throws(SettingsFault) -> Value {
        do {
            return try body()
        } catch {
            throw SettingsFault("the \(name) \(path) cannot be \(what): \(error)")
        }
    }
}
