internal import FoundationEssentials
internal import JWT

/// The file of the keys that sign JSON Web Tokens: a JSON Web Key Set (RFC 7517).
struct KeyFile: Sendable {
    let file: SharedFile

    init(path: String) { file = SharedFile(path: path, name: "key file") }

    var path: String { file.path }

    /// The keys of the file, if there is one.
    func read() throws(SettingsFault) -> JSONWebKeySet? { try keys(in: try file.bytes()) }

    func keys(in bytes: Data?) throws(SettingsFault) -> JSONWebKeySet? {
        guard let bytes else { return nil }
        do throws(JSONWebKeySet.Fault) {
            return try JSONWebKeySet([UInt8](bytes))
        } catch { throw SettingsFault(description: "the key file \(path) \(error)") }
    }
}
