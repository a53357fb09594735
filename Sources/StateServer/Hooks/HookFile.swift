internal import FoundationEssentials
internal import HTTPTypes
internal import StateHTTP
internal import StateJSON
internal import StateStore

struct HookEntry: SharedListEntry {
    var id: String
    var url: String
    /// The action types to which it is limited, with `*` at the end for any ending; empty for all.
    var types: [String] = []
    var path: String?
    var grant: Grant
    /// The secrets, each of which signs: one, or during a rotation the new one and the old one.
    var secrets: [String]
    var created: String
    /// Further header fields of the deliveries, such as `Authorization: Basic ...`; nobody is shown them.
    var fields: [String]?
    var since: String?
    var paused: String?
    var resend: Order?

    struct Order: Sendable, Codable, Equatable {
        /// The cursor of the commit to go on with; nil for the one at which the hook is.
        var from: String?
        /// When it was given, which tells two orders apart; in RFC 3339.
        var time: String
    }

    var subject: String { Self.subjectPrefix + id }
    static let subjectPrefix = Access.hookPrefix
    var pointer: JSONPointer? { path.flatMap { JSONPointer(text: $0) } }

    static let name = "file of the hooks"
    static let key = "hooks"
    static let noun = "hook"
    static let listCommand = "hook list"
    static let repair = ""
    /// Each hook looks at every commit.
    static let hooksMax = 100
}

typealias HookFile = SharedList<HookEntry>

extension HookEntry {
    init(url: String, types: [String], path: String?, _ grant: Grant, fields: [String] = [], since: String?) {
        id = "h" + (0..<5).map { _ in Token.hexadecimal(.random(in: .min ... .max)) }.joined()
        (self.url, self.types, self.path, self.grant, self.since) = (url, types, path, grant, since)
        self.fields = fields.isEmpty ? nil : fields
        secrets = [HookSecret().text]
        created = Date().formatted(.iso8601)
    }

    var fault: String? {
        if let fault = grant.fault ?? HookURL.fault(in: url) { return fault }
        if let fault = Self.fault(in: fields ?? []) { return fault }
        if grant.read.isEmpty { return "it sees nothing: name with --read what it may see, or * for everything" }
        if let path, pointer == nil { return "path \(path): \(JSONPointer.expectation(of: path))" }
        if let type = types.first(where: { $0.isEmpty || $0.dropLast().contains("*") }) {
            return "\"\(type)\" is not an action type: it must be one such as tasks/add, or begin one and end with *"
        }
        if Access.fault(inSubject: id) != nil || id.contains("/") { return "its id is not a name" }
        return (1...2).contains(secrets.count) && secrets.allSatisfy { HookSecret($0) != nil }
            ? nil : "it needs one or two secrets: whsec_ and the base64 of 24 to 64 bytes"
    }

    private static let ownFields = [
        "connection", "content-encoding", "content-length", "content-type", "expect", "host", "te", "trailer",
        "transfer-encoding", "upgrade", "user-agent",
    ]

    /// The fault in further header fields, as a sentence that quotes no value, or nil.
    private static func fault(in fields: [String]) -> String? {
        guard fields.count <= 16, fields.reduce(0, { $0 + $1.utf8.count }) <= 8192 else {
            return "it has more than 16 header fields, or more than 8 KiB of them"
        }
        for (index, field) in fields.enumerated() {
            let name = field.prefix { $0 != ":" }
            let value = field.dropFirst(name.count + 1).drop { $0 == " " }
            guard HTTPField.Name(String(name)) != nil, !value.isEmpty, value.utf8.allSatisfy({ 0x20...0x7E ~= $0 })
            else {
                return "header field \(index + 1) must be a name, a colon and a value, such as Authorization: Basic ..."
            }
            let lowered = name.lowercased()
            if ownFields.contains(lowered) || lowered.hasPrefix("webhook-") {
                return "the header field \(name) is one of the server's own"
            }
        }
        return nil
    }
}

enum HookURL {
    static func fault(in url: String) -> String? {
        if url.prefix(while: { !"?#".contains($0) }).dropFirst(8).prefix(while: { $0 != "/" }).contains("@") {
            return "an address has no user and no password: send them with --header 'Authorization: Basic ...'"
        }
        guard url.utf8.count <= 2048, url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), host(of: url) != nil else {
            return "\"\(url)\" is not the address of a receiver: it must be one such as https://example.org/hook"
        }
        return nil
    }

    static func isInsecure(_ url: String) -> Bool {
        let host = host(of: url) ?? ""
        // 127.example.org is a name like any other.
        let isName = host.hasPrefix("127.") && !host.allSatisfy { $0 == "." || $0.isNumber }
        return !url.hasPrefix("https://") && (isName || !AllowedHosts.isLoopback(host))
    }

    static func origin(of url: String) -> String {
        guard let scheme = url.firstRange(of: "://") else { return "" }
        return String(url[..<scheme.upperBound] + url[scheme.upperBound...].prefix { !"/?#".contains($0) })
    }

    private static func host(of url: String) -> String? {
        guard let scheme = ["https://", "http://"].first(where: url.hasPrefix) else { return nil }
        let authority = url.dropFirst(scheme.count).prefix { !"/?#".contains($0) }
        let host =
            authority.hasPrefix("[") ? authority.prefix { $0 != "]" }.dropFirst() : authority.prefix { $0 != ":" }
        let rest = authority.hasPrefix("[") ? authority.dropFirst(host.count + 2) : authority.dropFirst(host.count)
        let port = rest.dropFirst()
        let hasPort = rest.isEmpty || rest.first == ":" && port.allSatisfy(\.isNumber) && UInt16(port) ?? 0 > 0
        let isClosed = !authority.hasPrefix("[") || authority.contains("]")
        return host.isEmpty || authority.contains("@") || !hasPort || !isClosed ? nil : String(host)
    }
}
