internal import FoundationEssentials
internal import StateJSON

/// A document that a running server reads, and several commands may change at the same time: a file, or a key beside
/// the turns of a cluster.
protocol SharedDocument: Sendable {
    /// The kind of the document, as in `token file`.
    var name: String { get }

    var path: String { get }

    /// The identity of a version of the document, or nil without a document.
    var stamp: [Int]? { get }

    /// The content, or nil without a document.
    ///
    /// - Throws: ``SettingsFault`` for a document that cannot be read, also if that hides whether there is one.
    func bytes() throws(SettingsFault) -> Data?

    /// Replaces the content by the result of a function, while no other process does.
    ///
    /// - Parameter change: takes the content, or nil without a document; returns nil to leave it so. It may be called
    ///   again if another process has been first.
    func change(_ change: (Data?) throws(SettingsFault) -> Data?) throws(SettingsFault)
}

extension SharedDocument {
    /// Decodes the content; a field that the type does not know is ignored.
    func decode<Content: Decodable>(_ bytes: Data, as type: Content.Type) throws(SettingsFault) -> Content {
        do throws(JSONFault) {
            return try JSON.decode(type, from: [UInt8](bytes), unknownFields: .ignored)
        } catch {
            let pointer = error.pointer.tokens.isEmpty ? "" : " at \(error.pointer)"
            let what = error.kind == .mismatch ? "has a fault\(pointer)" : "is not JSON"
            throw SettingsFault(description: "the \(name) \(path) \(what): \(error.detail)")
        }
    }

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
