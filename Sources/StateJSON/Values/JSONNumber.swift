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

extension JSONNumber {
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
