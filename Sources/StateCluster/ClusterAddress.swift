package import HTTPClient
internal import StateStore

package struct ClusterAddress: Sendable, CustomStringConvertible {
    package var endpoints: [String]
    /// The first part of each key.
    package var name: String
    package var description: String
    package var user: User?
    /// For `etcds`; a certificate of this server protects the connection only: etcd's gateway knows no users by
    /// certificate.
    package var tls = HTTPConnection.TLS()

    package struct User: Sendable {
        package var name: String
        /// Each login calls it, so that the password can be changed.
        package var password: @Sendable () -> String

        package init(name: String, password: @escaping @Sendable () -> String) {
            self.name = name
            self.password = password
        }
    }

    package static func isMeant(by text: String) -> Bool { text.hasPrefix("etcd://") || text.hasPrefix("etcds://") }

    /// Nil for a text of another form; `etcds` is for TLS, and a name has letters, digits, `-`, `_`, `.` and `/`.
    package init?(_ text: String) {
        let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let scheme = ["etcd": "http", "etcds": "https"][String(parts[0])] else { return nil }
        let rest = parts[1].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard rest.count == 2, !rest[1].isEmpty, !rest[1].hasSuffix("/"),
            rest[1].utf8.allSatisfy({ byte in
                (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
                    || "-_./".utf8.contains(byte)
            })
        else { return nil }
        let hosts = rest[0].split(separator: ",", omittingEmptySubsequences: false)
        for host in hosts {
            guard let colon = host.lastIndex(of: ":"), colon > host.startIndex,
                UInt16(host[host.index(after: colon)...]) != nil,
                host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"/?#@\"\\".utf8.contains($0) })
            else { return nil }
        }
        endpoints = hosts.map { "\(scheme)://\($0)" }
        name = String(rest[1])
        description = text
    }
}

struct ClusterKeys: Sendable {
    let name: String

    var meta: String { "\(name)/meta" }
    /// Whose history it is; beside `meta`, because servers take another `meta` for another history.
    var domain: String { "\(name)/domain" }
    var draft: String { "\(name)/draft" }
    var writer: String { "\(name)/writer" }
    var turns: String { "\(name)/turns/" }
    var snapshots: String { "\(name)/snapshots/" }

    /// The order of the keys is that of the versions.
    func turn(_ first: Version) -> String { turns + Self.digits(first) }

    func turnRange(
        from first: Version = 0, through last: Version = .max, limit: Int, keysOnly: Bool = false,
        isNewestFirst: Bool = false
    ) -> Etcd.Range {
        let end = last == .max ? Self.end(of: turns) : turn(last + 1)
        return Etcd.Range(turn(first), upTo: end, limit: limit, keysOnly: keysOnly, isNewestFirst: isNewestFirst)
    }

    func version(ofTurn key: some Sequence<UInt8>) -> Version? {
        let text = String(decoding: Array(key), as: UTF8.self)
        guard text.hasPrefix(turns) else { return nil }
        // No history has so many commits that the version behind one is not a number.
        return Version(text.dropFirst(turns.count)).flatMap { $0 <= Version(Int64.max) ? $0 : nil }
    }

    func snapshot(_ version: Version) -> String { snapshots + Self.digits(version) }

    var chunks: String { "\(name)/chunks/" }

    /// The prefix of all parts for nil.
    func chunk(_ version: Version, _ index: Int?) -> String {
        "\(chunks)\(Self.digits(version))/" + (index.map { "\($0)" } ?? "")
    }

    /// The prefix ends with a slash, which `0` follows in ASCII.
    static func end(of prefix: String) -> String { prefix.dropLast() + "0" }

    private static func digits(_ version: Version) -> String {
        let text = "\(version)"
        return String(repeating: "0", count: 20 - text.count) + text
    }
}
