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

    static func hexadecimal(_ byte: UInt8) -> String {
        let text = String(byte, radix: 16)
        return text.count == 2 ? text : "0" + text
    }
}

struct TokenEntry: SharedListEntry {
    var id: String
    var subject: String
    /// The SHA-256 of the token, in hexadecimal behind `sha256:`.
    var hash: String
    var created: String
    /// When it ends, as RFC 3339 has it; nil for never.
    var expires: String?
    var grant: Grant

    private enum CodingKeys: String, CodingKey { case id, subject, hash, created, expires, grant }

    static let name = "token file"
    static let key = "tokens"
    static let noun = "token"
    static let listCommand = "token list"
    static let repair = ""

    var fault: String? {
        let misfit = expires != nil && end == nil ? "expires is not a time as RFC 3339 has it" : nil
        return grant.fault ?? Access.fault(inSubject: subject) ?? misfit
    }

    /// Whether the members have the same bytes: two spellings of a name are two names.
    static func == (left: TokenEntry, right: TokenEntry) -> Bool {
        // No member of an entry is one that cannot be encoded.
        (try? JSON.encode(left)) == (try? JSON.encode(right))
    }
}

typealias TokenFile = SharedList<TokenEntry>

extension TokenFile {
    init(path: String) { self.init(SharedFile(path: path, name: TokenEntry.name)) }

    var fullPath: String { file is SharedFile ? URL(fileURLWithPath: path).path : path }
}

extension TokenEntry {
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
            id: "t" + digest.prefix(5).map(Token.hexadecimal).joined(), subject: subject,
            hash: "sha256:" + digest.map(Token.hexadecimal).joined(), created: Date().formatted(.iso8601),
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
