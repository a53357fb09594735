internal import FoundationEssentials
internal import StateJSON

/// What a running server reads, and several commands may change at the same time: a file, or a key beside the turns of a cluster.
protocol SharedDocument: Sendable {
    /// What the document is, as in `token file`.
    var name: String { get }

    /// Where it is, for people.
    var path: String { get }

    /// What identifies a version of the document; nil where there is none.
    var stamp: [Int]? { get }

    /// What the document has; nil where there is none.
    ///
    /// - Throws: ``SettingsFault`` for a document that cannot be read, also where that hides whether there is one.
    func bytes() throws(SettingsFault) -> Data?

    /// Replaces what the document has by what a function makes of it, while no other process does.
    ///
    /// - Parameter change: takes what the document has, nil where there is none; returns nil to leave it so. It may be called
    ///   again where another process has been first.
    /// - Throws: ``SettingsFault`` where the document cannot be read or replaced, and what `change` throws.
    func change(_ change: (Data?) throws(SettingsFault) -> Data?) throws(SettingsFault)
}

extension SharedDocument {
    /// Decodes what the document has; a field that the type does not know is ignored.
    ///
    /// - Throws: ``SettingsFault`` for a document that is not JSON, or not the JSON of the type; it says where in it.
    func decode<Content: Decodable>(_ bytes: Data, as type: Content.Type) throws(SettingsFault) -> Content {
        do throws(JSONFault) {
            return try JSON.decode(type, from: [UInt8](bytes), unknownFields: .ignored)
        } catch {
            let pointer = error.pointer.tokens.isEmpty ? "" : " at \(error.pointer)"
            let what = error.kind == .mismatch ? "has a fault\(pointer)" : "is not JSON"
            throw SettingsFault(description: "the \(name) \(path) \(what): \(error.detail)")
        }
    }

    /// Encodes what the document gets, for people who read it.
    func encode(_ content: some Encodable) throws(SettingsFault) -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            return try encoder.encode(content) + Data("\n".utf8)
        } catch {
            throw SettingsFault(description: "the \(name) \(path) cannot be written: \(error)")
        }
    }
}
