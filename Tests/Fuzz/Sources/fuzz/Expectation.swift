import Glibc

/// Ends the process, which libFuzzer notes as a finding, unless a condition holds.
func expect(
    _ condition: @autoclosure () -> Bool, _ sentence: @autoclosure () -> String, file: StaticString = #fileID,
    line: UInt = #line
) {
    guard !condition() else { return }
    let message = Array("\(file):\(line): \(sentence())\n".utf8)
    _ = message.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    abort()
}

/// The value, or the end of the process where there is none.
func require<Value>(
    _ value: Value?, _ sentence: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
) -> Value {
    guard let value else {
        expect(false, sentence(), file: file, line: line)
        abort()
    }
    return value
}

/// Bytes as text for a message, with escapes for what is not ASCII.
func quoted(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { (0x20...0x7E).contains($0) ? String(UnicodeScalar($0)) : "\\x" + String($0, radix: 16) }.joined()
}

/// A reader of decisions from the bytes of an input; behind their end it reads zeros.
struct Decisions {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isEmpty: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// A number below a bound of at most 256.
    mutating func number(below bound: Int) -> Int { Int(byte()) % bound }

    mutating func bytes(_ count: Int) -> [UInt8] {
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }
}
