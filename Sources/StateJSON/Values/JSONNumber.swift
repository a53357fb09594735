/// Exact as a whole number of 64 bits, else a double.
package enum JSONNumber: Hashable, Sendable {
    case whole(Int128)
    case double(Double)

    package init(_ double: Double) {
        let isExact = double.magnitude < 0x1p64 && double == double.rounded(.towardZero)
        self = isExact ? .whole(Int128(double)) : .double(double)
    }

    package init?(_ value: JSONValue) {
        switch value {
        case .integer(let number): self = .whole(Int128(number))
        case .unsigned(let number): self = .whole(Int128(number))
        case .double(let number): self.init(number)
        // A document has such a number as the nearest double as well.
        case .decimal(let text): self.init(Double(text) ?? .infinity)
        case .null, .bool, .string, .array, .object: return nil
        }
    }

    package var json: JSONValue {
        switch self {
        case .whole(let whole):
            Int64(exactly: whole).map(JSONValue.integer) ?? UInt64(exactly: whole).map(JSONValue.unsigned)
                ?? .double(Double(whole))
        case .double(let double): .double(double)
        }
    }

    /// Whether the number has no fraction: 1.0 has none.
    package var isWhole: Bool {
        switch self {
        case .whole: true
        case .double(let double): double == double.rounded(.towardZero)
        }
    }

    /// The digits decide, so that 0.0075 is a multiple of 0.0001; the divisor is more than 0.
    package func isMultiple(of divisor: JSONNumber) -> Bool {
        if case .whole(let value) = self, case .whole(let unit) = divisor { return value % unit == 0 }
        guard let value = decimal, let unit = divisor.decimal else { return false }
        var rest = value.magnitude % unit.magnitude
        for _ in 0..<max(0, value.exponent - unit.exponent) where rest != 0 { rest = rest * 10 % unit.magnitude }
        guard value.exponent < unit.exponent else { return rest == 0 }
        var scaled = unit.magnitude
        for _ in value.exponent..<unit.exponent {
            guard scaled <= value.magnitude else { return value.magnitude == 0 }
            scaled *= 10
        }
        return value.magnitude % scaled == 0
    }

    /// The shortest spelling, which has at most 20 digits; nil for the infinities.
    private var decimal: DecimalDigits? {
        switch self {
        case .whole(let whole): DecimalDigits(whole.description.utf8)
        case .double(let double): DecimalDigits(double.description.utf8)
        }
    }
}

extension JSONNumber: Comparable {
    package static func < (left: JSONNumber, right: JSONNumber) -> Bool {
        switch (left, right) {
        case (.whole(let left), .whole(let right)): left < right
        case (.double(let left), .double(let right)): left < right
        case (.whole(let left), .double(let right)): isLess(left, right)
        case (.double(let left), .whole(let right)): !isLess(right, left)
        }
    }

    /// No whole number equals the double.
    private static func isLess(_ whole: Int128, _ double: Double) -> Bool {
        guard double.magnitude < 0x1p64 else { return double > 0 }
        return whole <= Int128(double.rounded(.down))
    }
}

package struct DecimalDigits: Equatable {
    private let isNegative: Bool
    /// Without zeros at either end; empty for zero.
    private let digits: [UInt8]
    package let exponent: Int

    /// At most 38 digits fit.
    package var magnitude: UInt128 { digits.reduce(0) { $0 * 10 + UInt128($1 - UInt8(ascii: "0")) } }

    /// Nil for other text, and for an exponent beyond 9999.
    package init?(_ text: some Collection<UInt8>) {
        var rest = text[...]
        isNegative = rest.first == UInt8(ascii: "-")
        if isNegative { rest = rest.dropFirst() }
        var digits: [UInt8] = []
        var exponent = 0
        var isFraction = false
        while let byte = rest.first, byte != UInt8(ascii: "e"), byte != UInt8(ascii: "E") {
            rest = rest.dropFirst()
            switch byte {
            case UInt8(ascii: "."): isFraction = true
            case 0x30...0x39:
                if byte != UInt8(ascii: "0") || !digits.isEmpty { digits.append(byte) }
                if isFraction { exponent -= 1 }
            default: return nil
            }
        }
        if !rest.isEmpty {
            // The magnitude, because the smallest whole number has no absolute value.
            guard let stated = Int(String(decoding: rest.dropFirst(), as: UTF8.self)), stated.magnitude <= 9999 else {
                return nil
            }
            exponent += stated
        }
        while digits.last == UInt8(ascii: "0") {
            digits.removeLast()
            exponent += 1
        }
        self.digits = digits
        self.exponent = digits.isEmpty ? 0 : exponent
    }

    /// Without an exponent up to 200 digits.
    var text: String {
        let sign = isNegative ? "-" : ""
        let figures = String(decoding: digits, as: UTF8.self)
        let point = digits.count + exponent
        switch (digits.isEmpty, exponent, point) {
        case (true, _, _): return "0"
        case (_, 0..., ...200): return sign + figures + String(repeating: "0", count: exponent)
        case (_, _, 1...200): return sign + figures.prefix(point) + "." + figures.suffix(digits.count - point)
        case (_, (-200)..., ...0): return sign + "0." + String(repeating: "0", count: -point) + figures
        default:
            let fraction = digits.count > 1 ? "." + figures.dropFirst() : ""
            return sign + figures.prefix(1) + fraction + "e\(point - 1)"
        }
    }
}

extension JSONValue {
    /// The value is a ``double(_:)`` where that has the number's digits.
    static func number(_ double: Double, spelled text: some Collection<UInt8>) -> JSONValue {
        // Every number of 15 digits is the shortest spelling of a double.
        guard text.count > 15, !double.description.utf8.elementsEqual(text), let exact = DecimalDigits(text),
            exact != DecimalDigits(double.description.utf8)
        else { return .double(double) }
        let spelling = exact.text
        return Int64(spelling).map(JSONValue.integer) ?? UInt64(spelling).map(JSONValue.unsigned) ?? .decimal(spelling)
    }
}
