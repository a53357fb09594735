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
