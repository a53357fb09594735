internal import FoundationEssentials
internal import StateJSON

protocol SharedListEntry: Sendable, Codable, Equatable {
    static var name: String { get }
    /// The key of the document, and the member that has the entries.
    static var key: String { get }
    static var noun: String { get }
    static var listCommand: String { get }
    /// The way out for an operator whose list cannot be read.
    static var repair: String { get }
    var id: String { get }
    var fault: String? { get }
}

/// A ``SharedDocument`` that is a list of entries; nil stands for no document.
struct SharedList<Entry: SharedListEntry>: Sendable {
    private struct Content: Decodable {
        let entries: [Entry]

        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: JSONCodingKey.self)
            entries = try members.decode([Entry].self, forKey: JSONCodingKey(stringValue: Entry.key))
        }
    }

    let file: any SharedDocument

    init(_ file: any SharedDocument) { self.file = file }

    var path: String { file.path }

    func read() throws(SettingsFault) -> [Entry]? { try entries(in: try file.bytes()) }

    func entries(in bytes: Data?) throws(SettingsFault) -> [Entry]? {
        guard let bytes else { return nil }
        do throws(SettingsFault) {
            let entries = try file.decode(bytes, as: Content.self).entries
            for entry in entries {
                if let fault = entry.fault {
                    throw SettingsFault("the \(file.name) \(path) has a fault in \(entry.id): \(fault)")
                }
            }
            return entries
        } catch { throw SettingsFault("\(error)\(Entry.repair)") }
    }

    /// Changes the entries while no other process does; the same ones are written again only on demand.
    func change(
        writesSame: Bool = false, _ body: (inout [Entry]?) throws(SettingsFault) -> Void
    ) throws(SettingsFault) {
        try file.change { (bytes) throws(SettingsFault) in
            let old = try self.entries(in: bytes)
            var entries = old
            try body(&entries)
            guard let entries, writesSame || entries != old else { return nil }
            return try file.encode([Entry.key: entries])
        }
    }

    /// Nil stands for all entries.
    func change(_ id: String?, _ body: (inout Entry) throws(SettingsFault) -> Void) throws(SettingsFault) {
        try change { (entries) throws(SettingsFault) in
            guard var changed = entries ?? id.map({ _ in [] }) else { return }
            let chosen = if let id { [try index(of: id, in: changed)] } else { Array(changed.indices) }
            for index in chosen { try body(&changed[index]) }
            entries = changed
        }
    }

    func remove(_ id: String) throws(SettingsFault) {
        try change { (entries) throws(SettingsFault) in
            let index = try index(of: id, in: entries ?? [])
            entries?.remove(at: index)
        }
    }

    private func index(of id: String, in entries: [Entry]) throws(SettingsFault) -> Int {
        guard let index = entries.firstIndex(where: { $0.id == id }) else {
            throw SettingsFault("there is no \(Entry.noun) \(id) in \(path); `\(Entry.listCommand)` shows them")
        }
        return index
    }
}
