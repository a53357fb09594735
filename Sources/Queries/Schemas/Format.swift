internal import StateJSON

/// A format whose texts are checked: the rules are those of the RFCs, without a look-up of anything.
enum Format: String {
    /// RFC 3339, section 5.6.
    case dateTime = "date-time"
    case date, time
    /// RFC 5321, section 4.1.2: an address in ASCII.
    case email
    /// RFC 3986, section 3: with a scheme.
    case uri
    /// RFC 4122, section 3.
    case uuid
    case ipv4
    /// RFC 4291, section 2.2.
    case ipv6

    var sentence: String {
        switch self {
        case .dateTime: "a date and time as RFC 3339 has them, such as 2030-01-31T12:00:00Z"
        case .date: "a date, such as 2030-01-31"
        case .time: "a time with its offset, such as 12:00:00Z"
        case .email: "an email address"
        case .uri: "a URI with its scheme"
        case .uuid: "a UUID"
        case .ipv4: "an IPv4 address"
        case .ipv6: "an IPv6 address"
        }
    }

    func matches(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        switch self {
        case .dateTime:
            return text.count > 11 && "Tt".utf8.contains(text[10]) && Self.isDate(text[..<10])
                && Self.isTime(text[11...])
        case .date: return Self.isDate(text[...])
        case .time: return Self.isTime(text[...])
        case .email:
            // The longest name before the sign, and the longest domain behind it.
            guard let at = text.lastIndex(of: UInt8(ascii: "@")), at <= 64, text.count - at <= 256 else { return false }
            return Self.emailPattern.matches(text)
        case .uri: return Self.uriPattern.matches(text)
        case .uuid: return Self.uuidPattern.matches(text)
        case .ipv4: return Self.ipv4Pattern.matches(text)
        case .ipv6: return Self.ipv6Pattern.matches(text)
        }
    }

    private static func isDate(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        text.count == 10 && RFC3339.milliseconds(String(decoding: text, as: UTF8.self) + "T00:00:00Z") != nil
    }

    private static func isTime(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        let time = "2000-01-01T" + String(decoding: text, as: UTF8.self)
        guard let milliseconds = RFC3339.milliseconds(time) else { return false }
        // A leap second, which is read as the one behind it, is the last one of a day in UTC.
        return !text.dropFirst(6).starts(with: "60".utf8) || milliseconds % 86_400_000 <= 1000
    }

    private static let emailPattern: Pattern = {
        let atoms = #"[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+)*"#
        let quoted = #""(?:[ !#-\[\]-~]|\\[ -~])*""#
        let label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
        return pattern(
            #"(?:\#(atoms)|\#(quoted))@(?:\#(label)(?:\.\#(label))*|\[(?:\#(ipv4Text)|IPv6:\#(ipv6Text))\])"#)
    }()

    private static let uriPattern: Pattern = {
        let escaped = "%[0-9a-fA-F]{2}"
        func some(_ more: String) -> String { #"(?:[a-zA-Z0-9._~!$&'()*+,;=\#(more)-]|\#(escaped))"# }
        let authority = #"(?:\#(some(":"))*@)?(?:\[\#(ipv6Text)\]|\#(some(""))*)(?::[0-9]*)?"#
        // Two slashes begin an authority, never a path.
        let path = "(?://\(authority)(?:/\(some("/:@"))*)?|/?(?:\(some(":@"))\(some("/:@"))*)?)"
        return pattern(#"[a-zA-Z][a-zA-Z0-9+.-]*:\#(path)(?:\?\#(some("/:@?"))*)?(?:#\#(some("/:@?"))*)?"#)
    }()

    private static let uuidPattern = pattern("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
    private static let ipv4Pattern = pattern(ipv4Text)
    private static let ipv6Pattern = pattern(ipv6Text)

    private static let ipv4Text: String = {
        let part = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
        return #"(?:\#(part)\.){3}\#(part)"#
    }()

    /// The alternatives of RFC 3986, appendix A, by the number of groups behind the gap.
    private static let ipv6Text: String = {
        let group = "[0-9a-fA-F]{1,4}"
        let last = "(?:\(group):\(group)|\(ipv4Text))"
        func upTo(_ count: Int) -> String { "(?:(?:\(group):){0,\(count - 1)}\(group))?" }
        let long = (1...5).map { "\(upTo($0))::(?:\(group):){\(5 - $0)}\(last)" }
        let short = ["\(upTo(6))::\(group)", "\(upTo(7))::"]
        let whole = ["(?:\(group):){6}\(last)", "::(?:\(group):){5}\(last)"]
        return "(?:\((whole + long + short).joined(separator: "|")))"
    }()

    private static func pattern(_ text: String) -> Pattern {
        guard let pattern = try? Pattern(#"\A(?:\#(text))\z"#) else {
            preconditionFailure("RE2 does not take the pattern of a format")
        }
        return pattern
    }
}
