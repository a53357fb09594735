/// A number as JSON Schema compares it, however it is spelled: exact as a whole number of 64 bits, else as a double.
enum SchemaNumber: Hashable {
    /// A whole number between -2^64 and 2^64.
    case whole(Int128)
    case double(Double)

    init(_ double: Double) {
        let isExact = double.magnitude < 0x1p64 && double == double.rounded(.towardZero)
        self = isExact ? .whole(Int128(double)) : .double(double)
    }

    /// Whether the number has no fraction: 1.0 has none.
    var isWhole: Bool {
        switch self {
        case .whole: true
        case .double(let double): double == double.rounded(.towardZero)
        }
    }
}

extension SchemaNumber: Comparable {
    static func < (left: SchemaNumber, right: SchemaNumber) -> Bool {
        switch (left, right) {
        case (.whole(let left), .whole(let right)): left < right
        case (.double(let left), .double(let right)): left < right
        case (.whole(let left), .double(let right)): isLess(left, right)
        case (.double(let left), .whole(let right)): !isLess(right, left)
        }
    }

    /// Whether a whole number is less than a double, which no whole number equals.
    private static func isLess(_ whole: Int128, _ double: Double) -> Bool {
        guard double.magnitude < 0x1p64 else { return double > 0 }
        return whole <= Int128(double.rounded(.down))
    }
}

extension SchemaNumber {
    /// The digits decide, so that 0.0075 is a multiple of 0.0001; the divisor is more than 0.
    func isMultiple(of divisor: SchemaNumber) -> Bool {
        if case .whole(let value) = self, case .whole(let unit) = divisor { return value % unit == 0 }
        let (value, unit) = (Decimal(self), Decimal(divisor))
        var rest = value.digits % unit.digits
        for _ in 0..<max(0, value.exponent - unit.exponent) where rest != 0 { rest = rest * 10 % unit.digits }
        guard value.exponent < unit.exponent else { return rest == 0 }
        var scaled = unit.digits
        for _ in value.exponent..<unit.exponent {
            guard scaled <= value.digits else { return value.digits == 0 }
            scaled *= 10
        }
        return value.digits % scaled == 0
    }

    private struct Decimal {
        /// The shortest spelling of a number has at most 20 digits.
        private(set) var digits: UInt128 = 0
        private(set) var exponent = 0

        init(_ number: SchemaNumber) {
            let text =
                switch number {
                case .whole(let whole): whole.description
                case .double(let double): double.description
                }
            let parts = text.split(separator: "e")
            if parts.count == 2 { exponent = Int(parts[1]) ?? 0 }
            var isFraction = false
            for byte in parts[0].utf8 {
                if byte == UInt8(ascii: ".") { isFraction = true }
                guard (0x30...0x39).contains(byte) else { continue }
                digits = digits * 10 + UInt128(byte - 0x30)
                if isFraction { exponent -= 1 }
            }
            while digits != 0, digits % 10 == 0 {
                digits /= 10
                exponent += 1
            }
        }
    }
}
