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
        var reader = FormatReader(rest: Slice(base: text, bounds: text.indices))
        let isRight =
            switch self {
            case .dateTime: reader.date() && reader.skip("T", "t") && reader.time()
            case .date: reader.date()
            case .time: reader.time()
            case .email: reader.email()
            case .uri: reader.uri()
            case .uuid: reader.uuid()
            case .ipv4: reader.ipv4()
            case .ipv6: reader.ipv6()
            }
        return isRight && reader.rest.isEmpty
    }
}

private struct FormatReader {
    var rest: Slice<UnsafeBufferPointer<UInt8>>

    mutating func skip(_ expected: Unicode.Scalar...) -> Bool {
        guard let byte = rest.first, expected.contains(Unicode.Scalar(byte)) else { return false }
        rest.removeFirst()
        return true
    }

    mutating func skip(while isOfKind: (UInt8) -> Bool) -> Int {
        let count = rest.prefix(while: isOfKind).count
        rest.removeFirst(count)
        return count
    }

    mutating func number(_ digits: Int) -> Int? {
        let text = rest.prefix(digits)
        guard text.count == digits, text.allSatisfy(isDigit) else { return nil }
        rest.removeFirst(digits)
        return text.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }
}

private func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
private func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
private func isHex(_ byte: UInt8) -> Bool { isDigit(byte) || (0x61...0x66).contains(byte | 0x20) }
private func isOneOf(_ bytes: StaticString, _ byte: UInt8) -> Bool {
    bytes.withUTF8Buffer { $0.contains(byte) }
}

extension FormatReader {
    mutating func date() -> Bool {
        guard let year = number(4), skip("-"), let month = number(2), skip("-"), let day = number(2),
            (1...12).contains(month)
        else { return false }
        let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let days = month == 2 ? (isLeapYear ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
        return (1...days).contains(day)
    }

    mutating func time() -> Bool {
        guard let hour = number(2), hour < 24, skip(":"), let minute = number(2), minute < 60, skip(":"),
            let second = number(2), second <= 60
        else { return false }
        if skip("."), skip(while: isDigit) == 0 { return false }
        var offset = 0
        if !skip("Z", "z") {
            let isBehind = rest.first == UInt8(ascii: "-")
            guard skip("+", "-"), let hours = number(2), hours < 24, skip(":"), let minutes = number(2), minutes < 60
            else { return false }
            offset = (hours * 60 + minutes) * (isBehind ? -1 : 1)
        }
        // A leap second is the last one of a day in UTC.
        return second < 60 || (hour * 60 + minute - offset + 2 * 1440) % 1440 == 1439
    }
}

extension FormatReader {
    mutating func email() -> Bool {
        let start = rest.count
        guard skip("\"") ? quotedRest() : dottedAtoms(), start - rest.count <= 64, skip("@") else { return false }
        guard skip("[") else { return domain() }
        if rest.prefix(5).elementsEqual("IPv6:".utf8) {
            rest.removeFirst(5)
            return ipv6() && skip("]")
        }
        return ipv4() && skip("]")
    }

    private mutating func dottedAtoms() -> Bool {
        repeat {
            guard skip(while: { isLetter($0) || isDigit($0) || isOneOf("!#$%&'*+-/=?^_`{|}~", $0) }) > 0 else {
                return false
            }
        } while skip(".")
        return true
    }

    private mutating func quotedRest() -> Bool {
        while let byte = rest.popFirst(), (0x20...0x7E).contains(byte) {
            if byte == UInt8(ascii: "\"") { return true }
            if byte == UInt8(ascii: "\\"), !(rest.popFirst().map { (0x20...0x7E).contains($0) } ?? false) {
                return false
            }
        }
        return false
    }

    private mutating func domain() -> Bool {
        guard rest.count <= 255 else { return false }
        repeat {
            let label = rest.prefix { isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "-") }
            guard (1...63).contains(label.count), label.first != UInt8(ascii: "-"), label.last != UInt8(ascii: "-")
            else { return false }
            rest.removeFirst(label.count)
        } while skip(".")
        return true
    }

    mutating func ipv4() -> Bool {
        for part in 0..<4 {
            if part > 0, !skip(".") { return false }
            let digits = rest.prefix(3).prefix(while: isDigit)
            let isRight = digits.count == 1 || digits.first != UInt8(ascii: "0")
            guard isRight, let number = number(digits.count), !digits.isEmpty, number < 256 else { return false }
        }
        return true
    }

    mutating func ipv6() -> Bool {
        var (count, hasGap) = (0, false)
        if rest.prefix(2).elementsEqual("::".utf8) {
            rest.removeFirst(2)
            hasGap = true
        }
        while let byte = rest.first, isHex(byte), count < 8 {
            let group = rest.prefix(while: isHex).count
            if rest.dropFirst(group).first == UInt8(ascii: ".") {
                guard ipv4() else { return false }
                count += 2
                break
            }
            guard group <= 4 else { return false }
            rest.removeFirst(group)
            count += 1
            if rest.prefix(2).elementsEqual("::".utf8) {
                guard !hasGap else { return false }
                rest.removeFirst(2)
                hasGap = true
            } else if rest.first == UInt8(ascii: ":") {
                rest.removeFirst()
                guard let next = rest.first, isHex(next) else { return false }
            }
        }
        return hasGap ? count < 8 : count == 8
    }

    mutating func uuid() -> Bool {
        for (index, length) in [8, 4, 4, 4, 12].enumerated() {
            guard index == 0 || skip("-"), skip(while: isHex) == length else { return false }
        }
        return true
    }
}

extension FormatReader {
    mutating func uri() -> Bool {
        guard let first = rest.first, isLetter(first) else { return false }
        _ = skip { isLetter($0) || isDigit($0) || isOneOf("+-.", $0) }
        guard skip(":") else { return false }
        if rest.prefix(2).elementsEqual("//".utf8) {
            rest.removeFirst(2)
            guard authority() else { return false }
        }
        guard characters("/:@") else { return false }
        if skip("?"), !characters("/:@?") { return false }
        return !skip("#") || characters("/:@?")
    }

    private mutating func authority() -> Bool {
        let end = rest.firstIndex { isOneOf("/?#", $0) } ?? rest.endIndex
        if let at = rest[..<end].lastIndex(of: UInt8(ascii: "@")) {
            var user = FormatReader(rest: rest[..<at])
            guard user.characters(":"), user.rest.isEmpty else { return false }
            rest = rest[rest.index(after: at)...]
        }
        if skip("[") {
            // A later version of IP, as RFC 3986 has room for it, is no address that anybody has.
            guard ipv6(), skip("]") else { return false }
        } else if !characters("") {
            return false
        }
        if skip(":") { _ = skip(while: isDigit) }
        return rest.startIndex == end
    }

    private mutating func characters(_ more: StaticString) -> Bool {
        while let byte = rest.first {
            if byte == UInt8(ascii: "%") {
                guard rest.dropFirst().prefix(2).filter(isHex).count == 2 else { return false }
                rest.removeFirst(3)
                continue
            }
            guard isLetter(byte) || isDigit(byte) || isOneOf("-._~!$&'()*+,;=", byte) || isOneOf(more, byte) else {
                break
            }
            rest.removeFirst()
        }
        return true
    }
}
