internal import CCrypto
internal import FoundationEssentials
internal import StateHTTP
internal import StateJSON
internal import StateStore

struct Token: Sendable {
    let text: String

    init() {
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
        text = "sk_" + Base64URL.text(bytes)
    }

    /// The SHA-256 of a token, which has as much entropy as the hash: the hash needs neither salt nor rounds.
    static func digest(_ text: String) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        let bytes = Array(text.utf8)
        guard EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha256(), nil) == 1 else {
            preconditionFailure("libcrypto has no SHA-256")
        }
        return digest
    }
}

struct TokenFile: Sendable {
    struct Entry: Sendable, Codable, Equatable {
        var id: String
        var subject: String
        /// The SHA-256 of the token, in hexadecimal behind `sha256:`.
        var hash: String
        var created: String
        /// When it ends, as RFC 3339 has it; nil for never.
        var expires: String?
        var grant: Grant

        private enum CodingKeys: String, CodingKey { case id, subject, hash, created, expires, grant }

        /// Whether the members have the same bytes: two spellings of a name are two names.
        static func == (left: Entry, right: Entry) -> Bool {
            // No member of an entry is one that cannot be encoded.
            (try? JSON.encode(left)) == (try? JSON.encode(right))
        }
    }

    private struct Content: Codable {
        var tokens: [Entry]
    }

    static let name = "token file"
    static let key = "tokens"

    let file: any SharedDocument

    init(_ file: any SharedDocument) { self.file = file }

    init(path: String) { self.init(SharedFile(path: path, name: Self.name)) }

    var path: String { file.path }

    var fullPath: String { file is SharedFile ? URL(fileURLWithPath: path).path : path }

    func read() throws(SettingsFault) -> [Entry]? { try entries(in: try file.bytes()) }

    func entries(in bytes: Data?) throws(SettingsFault) -> [Entry]? {
        guard let bytes else { return nil }
        let tokens = try file.decode(bytes, as: Content.self).tokens
        for entry in tokens {
            let misfit = entry.expires != nil && entry.end == nil ? "expires is not a time as RFC 3339 has it" : nil
            if let fault = entry.grant.fault ?? Access.fault(inSubject: entry.subject) ?? misfit {
                throw SettingsFault("the token file \(path) has a fault in \(entry.id): \(fault)")
            }
        }
        return tokens
    }

    /// Changes the entries, which are nil without a file, while no other process does.
    func change(_ body: (inout [Entry]?) throws(SettingsFault) -> Void) throws(SettingsFault) {
        try file.change { (bytes) throws(SettingsFault) in
            let old = try self.entries(in: bytes)
            var entries = old
            try body(&entries)
            guard let entries, entries != old else { return nil }
            return try file.encode(Content(tokens: entries))
        }
    }
}

extension TokenFile.Entry {
    private enum GrantKeys: String, CodingKey { case fork }

    /// Reads an entry; a token of an older program that allowed everything allows forks, which that program did not know.
    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        id = try members.decode(String.self, forKey: .id)
        subject = try members.decode(String.self, forKey: .subject)
        hash = try members.decode(String.self, forKey: .hash)
        created = try members.decode(String.self, forKey: .created)
        expires = try members.decodeIfPresent(String.self, forKey: .expires)
        grant = try members.decode(Grant.self, forKey: .grant)
        guard try !members.nestedContainer(keyedBy: GrantKeys.self, forKey: .grant).contains(.fork) else { return }
        var whole = grant
        whole.fork = true
        if whole.isEverything { grant = whole }
    }

    var end: Timestamp? { expires.flatMap { RFC3339.milliseconds($0) }.map { Timestamp(milliseconds: $0) } }

    init(_ token: Token, subject: String, _ grant: Grant, expires: String? = nil) {
        let digest = Token.digest(token.text)
        self.init(
            id: "t" + digest.prefix(5).map(TokenFile.hexadecimal).joined(), subject: subject,
            hash: "sha256:" + digest.map(TokenFile.hexadecimal).joined(), created: Date().formatted(.iso8601),
            expires: expires, grant: grant)
    }

    var digest: [UInt8]? {
        let digits = Array(hash.utf8.dropFirst(7))
        guard hash.hasPrefix("sha256:"), digits.count == 64 else { return nil }
        let bytes = stride(from: 0, to: 64, by: 2).compactMap {
            UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
        }
        return bytes.count == 32 ? bytes : nil
    }
}

extension TokenFile {
    static func hexadecimal(_ byte: UInt8) -> String {
        let text = String(byte, radix: 16)
        return text.count == 2 ? text : "0" + text
    }
}
