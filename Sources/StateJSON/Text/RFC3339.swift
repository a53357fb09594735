internal import FoundationEssentials

/// A year beyond 9999 has a sign and six digits, as in JavaScript.
package enum RFC3339 {
    /// Foundation counts from 2001.
    private static let referenceDay: Int64 = 11_323
    private static let secondsOfDay: Int64 = 86_400

    /// As many digits of a second as the number has, at most nine; nil beyond the year 999999.
    static func text(_ date: Date) -> String? {
        let interval = date.timeIntervalSinceReferenceDate
        // NaN is in no range.
        guard (-3.1e13...3.1e13).contains(interval) else { return nil }
        let whole = interval.rounded(.down)
        var (seconds, fraction) = (Int64(whole), Int64(((interval - whole) * 1e9).rounded()))
        // Only a date close to 2001 is spelled with an exponent, or with more than nine digits behind the point.
        let spelled = interval.magnitude.description.split(separator: ".").last ?? ""
        if spelled.utf8.count <= 9, let value = Int64(spelled) {
            fraction = value * power(9 - spelled.utf8.count)
            if interval < 0, fraction > 0 { fraction = 1_000_000_000 - fraction }
        }
        if fraction == 1_000_000_000 { (seconds, fraction) = (seconds + 1, 0) }
        var digits = fraction == 0 ? 0 : 9
        while digits > 0, fraction % 10 == 0 { (fraction, digits) = (fraction / 10, digits - 1) }
        return text(seconds + referenceDay * secondsOfDay, fraction, digits)
    }

    /// All three digits of a second; milliseconds since 1970.
    package static func text(milliseconds: Int64) -> String {
        let rest = (milliseconds % 1000 + 1000) % 1000
        // The difference to the second before would leave Int64 at its lower end.
        return text(milliseconds / 1000 - (milliseconds % 1000 < 0 ? 1 : 0), rest, 3)
    }

    /// The seconds count since 1970.
    private static func text(_ seconds: Int64, _ fraction: Int64, _ fractionDigits: Int) -> String {
        let ofDay = (seconds % secondsOfDay + secondsOfDay) % secondsOfDay
        let (year, month, day) = civil((seconds - ofDay) / secondsOfDay)
        let isPlain = (0...9999).contains(year)
        // A store writes the time of each commit, and strings of parts take ten times as long.
        return String(unsafeUninitializedCapacity: 40) { text in
            var index = 0
            func add(_ number: Int64, _ digits: Int, _ separator: Unicode.Scalar) {
                var rest = number
                for place in (index..<index + digits).reversed() {
                    text[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                    rest /= 10
                }
                text[index + digits] = UInt8(ascii: separator)
                index += digits + 1
            }
            if !isPlain {
                text[0] = year < 0 ? UInt8(ascii: "-") : UInt8(ascii: "+")
                index = 1
            }
            add(abs(year), isPlain ? 4 : max(6, String(abs(year)).utf8.count), "-")
            add(month, 2, "-")
            add(day, 2, "T")
            add(ofDay / 3600, 2, ":")
            add(ofDay / 60 % 60, 2, ":")
            add(ofDay % 60, 2, fractionDigits > 0 ? "." : "Z")
            if fractionDigits > 0 { add(fraction, fractionDigits, "Z") }
            return index
        }
    }

    /// Since 1970, with any offset from UTC; nil for other text.
    package static func milliseconds(_ text: String) -> Int64? {
        date(text).map { Int64(($0.timeIntervalSince1970 * 1000).rounded()) }
    }

    static func date(_ text: String) -> Date? {
        var reader = Reader(rest: Array(text.utf8)[...])
        guard let year = reader.year(), reader.skip("-"), let month = reader.number(2, in: 1...12), reader.skip("-"),
            let day = reader.number(2, in: 1...31), reader.skip("T", "t"), let hour = reader.number(2, in: 0...23),
            reader.skip(":"), let minute = reader.number(2, in: 0...59), reader.skip(":"),
            // A leap second is the next one.
            let second = reader.number(2, in: 0...60), let fraction = reader.fraction(), let offset = reader.offset(),
            reader.rest.isEmpty
        else { return nil }
        let days = self.days(year, month, day)
        guard civil(days).day == day else { return nil }
        let seconds = (days - referenceDay) * secondsOfDay + hour * 3600 + minute * 60 + second - offset
        // Read as one number, a date gets back the one that it was spelled from.
        let scale = power(fraction.digits)
        let isBefore = seconds < 0 && fraction.value > 0
        let whole = isBefore ? -(seconds + 1) : abs(seconds)
        let part = String(scale + (isBefore ? scale - fraction.value : fraction.value)).dropFirst()
        return Double("\(seconds < 0 ? "-" : "")\(whole).\(part)0").map(Date.init(timeIntervalSinceReferenceDate:))
    }

    private static func power(_ exponent: Int) -> Int64 { (0..<exponent).reduce(1) { power, _ in power * 10 } }

    /// Gregorian, in eras of 400 years that begin in March.
    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let ofEra = shifted - era * 146_097
        let year = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * year + year / 4 - year / 100)
        let month = (5 * ofYear + 2) / 153
        return (
            year + era * 400 + (month < 10 ? 0 : 1), month < 10 ? month + 3 : month - 9,
            ofYear - (153 * month + 2) / 5 + 1
        )
    }

    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shifted = month > 2 ? year : year - 1
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let ofEra = shifted - era * 400
        let ofYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }

    private struct Reader {
        var rest: ArraySlice<UInt8>

        mutating func skip(_ expected: Character...) -> Bool {
            guard let byte = rest.first, expected.contains(Character(Unicode.Scalar(byte))) else { return false }
            rest.removeFirst()
            return true
        }

        mutating func number(_ digits: Int, in range: ClosedRange<Int64>) -> Int64? {
            let text = rest.prefix(digits)
            guard text.count == digits, text.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            rest = rest.dropFirst(digits)
            return Int64(String(decoding: text, as: UTF8.self)).flatMap { range.contains($0) ? $0 : nil }
        }

        mutating func year() -> Int64? {
            if skip("+") { return number(6, in: 0...999_999) }
            return skip("-") ? number(6, in: 1...999_999).map { -$0 } : number(4, in: 0...9999)
        }

        /// Digits behind the eighteenth are dropped.
        mutating func fraction() -> (value: Int64, digits: Int)? {
            guard skip(".") else { return (0, 0) }
            let text = rest.prefix { (0x30...0x39).contains($0) }
            rest = rest.dropFirst(text.count)
            let kept = text.prefix(18)
            return Int64(String(decoding: kept, as: UTF8.self)).map { ($0, kept.count) }
        }

        mutating func offset() -> Int64? {
            if skip("Z", "z") { return 0 }
            let sign: Int64 = rest.first == UInt8(ascii: "-") ? -1 : 1
            guard skip("+", "-"), let hours = number(2, in: 0...23), skip(":"), let minutes = number(2, in: 0...59)
            else { return nil }
            return sign * (hours * 3600 + minutes * 60)
        }
    }
}
