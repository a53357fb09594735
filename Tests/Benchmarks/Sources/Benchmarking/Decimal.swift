internal import Glibc

extension Double {
    /// The number, rounded to a number of digits after the point; `-` for NaN and the infinities.
    package func fixed(_ digits: Int) -> String {
        guard isFinite else { return "-" }
        let scale = pow(10, Double(digits))
        let scaled = (abs(self) * scale).rounded()
        guard scaled < 1e15 else { return "\(self)" }
        let whole = "\(Int(scaled))"
        let sign = self < 0 && scaled > 0 ? "-" : ""
        guard digits > 0 else { return sign + whole }
        let padded = String(repeating: "0", count: max(0, digits + 1 - whole.count)) + whole
        return "\(sign)\(padded.dropLast(digits)).\(padded.suffix(digits))"
    }

    /// The number for tables, such as `0.123`, `12.3`, `12,345` and `2`.
    ///
    /// It has about three significant digits and commas at thousands; a whole number has no fraction.
    package var readable: String {
        let size = abs(self)
        if size == size.rounded(), isFinite { return fixed(0).grouped }
        if size < 1 { return fixed(3) }
        if size < 10 { return fixed(2) }
        if size < 100 { return fixed(1) }
        return fixed(0).grouped
    }
}

extension String {
    /// The digits of a whole number with a comma at each thousand.
    fileprivate var grouped: String {
        let digits = drop { $0 == "-" }
        var result = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { result += "," }
            result.append(digit)
        }
        return hasPrefix("-") ? "-" + result : result
    }
}
