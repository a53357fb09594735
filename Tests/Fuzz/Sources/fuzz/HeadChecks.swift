@testable import HTTPMessages
@testable import MicroHTTP
@testable import StateHTTP
@testable import StateStore

/// A target that is taken has one reading: its parts, encoded again, are read as the same parts.
@Sendable func checkTarget(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    if let first = text.utf8.first, [0x2F, 0x3F].contains(first) {
        // A path or a query behind a host is itself.
        let behind = "http://h" + text
        expect(RequestTarget.authority(of: behind).map { $0 == "h" } == true, "\(quoted(bytes)) is of the authority")
        expect((try? RequestTarget(behind)) == (try? RequestTarget((first == 0x3F ? "/" : "") + text)), quoted(bytes))
    }
    let target: RequestTarget
    do throws(RequestTarget.Fault) {
        target = try RequestTarget(text)
    } catch {
        expect(!error.detail.isEmpty, "refused without a sentence")
        return
    }
    let path = target.segments.map(encoded).joined(separator: "/")
    // An empty query and an empty parameter are none.
    let query = target.parameters.map { encoded($0.name) + ($0.value.map { "=" + encoded($0) } ?? "") }
        .joined(separator: "&")
    let again = "/" + path + (query.isEmpty ? "" : "?" + query)
    let read = require(try? RequestTarget(again), "\(again) is refused")
    if target.segments != [""] {
        expect(same(read.segments, target.segments), "\(quoted(text.utf8)) became \(again)")
    }
    let names = { (target: RequestTarget) in target.parameters.flatMap { [$0.name, $0.value ?? "none"] } }
    let isPlain = target.parameters.allSatisfy { !$0.name.isEmpty || $0.value != nil }
    if isPlain { expect(same(names(read), names(target)), "\(quoted(text.utf8)) became \(again)") }
    // A target without escapes is what it says.
    if !text.utf8.contains(where: { "%+?".utf8.contains($0) }), text.utf8.first == 0x2F, text != "/" {
        expect("/" + target.segments.joined(separator: "/") == text, "\(quoted(text.utf8)) became \(target.segments)")
    }
}

private func same(_ left: [String], _ right: [String]) -> Bool {
    left.map { Array($0.utf8) } == right.map { Array($0.utf8) }
}

private func encoded(_ part: String) -> String {
    part.utf8.map { byte in
        let isUnreserved = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~".utf8.contains(byte)
        let digits = String(byte, radix: 16)
        return isUnreserved ? String(UnicodeScalar(byte)) : "%" + (digits.count == 1 ? "0" : "") + digits
    }.joined()
}

/// Several fields are one with commas, the first of a name counts, and what is read is written and read again.
@Sendable func checkPreferences(_ bytes: [UInt8]) {
    let values = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        .map { String(decoding: $0, as: UTF8.self) }
    let preferences = Preferences(values)
    // A quote that is not closed takes the comma behind it.
    if !bytes.contains(0x22) {
        expect(Preferences([values.joined(separator: ",")]) == preferences, "\(values) joined are others")
        expect(Preferences([values.joined(separator: " , \t,")]) == preferences, "\(values) joined are others")
    }
    if bytes.allSatisfy({ $0 < 0x80 }) {
        expect(Preferences(values.map { $0.uppercased() }) == Preferences(values.map { $0.lowercased() }), "\(values)")
    }
    var written: [String] = []
    if let returning = preferences.returning { written.append("return=\(returning.rawValue)") }
    switch preferences.wait {
    case .usual?: written.append("wait")
    case .seconds(let seconds)?:
        expect(seconds >= 0, "a wait of \(seconds)")
        written.append("wait=\"\(seconds)\"")
    case nil: break
    }
    expect(Preferences(written) == preferences, "\(values) became \(written)")
    expect(Preferences(written + values) == preferences, "what comes first does not count")
}

/// A list of tags, written again, is the same list.
@Sendable func checkConditions(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    switch EntityTagCondition(text) {
    case nil: break
    case .any?: expect(text.filter { $0 != " " && $0 != "\t" } == "*", "\(quoted(bytes)) is not a star")
    case .tags(let tags)?:
        expect(!tags.isEmpty && !tags.contains { $0.opaque.utf8.contains(0x22) }, "\(quoted(bytes)) has a strange tag")
        let written = tags.map { ($0.isWeak ? "W/" : "") + "\"" + $0.opaque + "\"" }
        for separator in [",", ", ", " ,\t, "] {
            expect(
                EntityTagCondition(written.joined(separator: separator)) == .tags(tags),
                "\(quoted(bytes)) became \(written)")
        }
    }
}

/// A cursor is its text.
@Sendable func checkCursor(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    guard let cursor = Cursor(text: text) else { return }
    expect(cursor.description.utf8.elementsEqual(text.utf8), "\(quoted(bytes)) became \(cursor)")
    expect(Cursor(text: Substring(text)) == cursor, "a substring is another cursor")
}

/// A host is allowed when its name is in the list, by a rule that is written down here a second time.
@Sendable func checkHosts(_ bytes: [UInt8]) {
    let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 2, omittingEmptySubsequences: false)
        .map { String(decoding: $0, as: UTF8.self) }
    guard lines.count == 3 else { return }
    let further = lines[1].split(separator: ",").map(String.init)
    let hosts = AllowedHosts(listening: [lines[0]], further: further)
    let value = lines[2]
    let isAllowed = hosts.allows(value)
    let isASCII = value.utf8.allSatisfy { $0 < 0x80 }
    if isASCII { expect(hosts.allows(value.uppercased()) == hosts.allows(value.lowercased()), "case counts: \(value)") }
    let isWildcard = ["0.0.0.0", "::"].contains(lines[0])
    guard !isWildcard || !further.isEmpty else { return expect(isAllowed, "a wildcard refuses \(value)") }
    // Only the case of ASCII does not count: the Kelvin sign is no k.
    expect(!isAllowed || isASCII, "\(value) is allowed")
    guard isAllowed else { return }
    let names = further + [lines[0], "[" + lines[0] + "]", "localhost", "127.0.0.1", "[::1]"]
    let value8 = Array(value.lowercased().utf8)
    expect(
        names.contains { name in
            let name = Array(name.lowercased().utf8)
            guard value8.starts(with: name) else { return false }
            let rest = value8.dropFirst(name.count)
            return rest.isEmpty || rest.first == 0x3A && rest.dropFirst().allSatisfy { (0x30...0x39).contains($0) }
        }, "\(value) is allowed by \(names)")
}
