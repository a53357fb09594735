import TestSupport
import Testing

@testable import StateJSON

@Suite("Content hashes")
struct ContentHashTests {
    /// The characters one after the other, by the division of RFC 4648 that has a number of 128 bits behind two zeros.
    func reference(_ number: UInt128) -> String {
        let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567")
        var (text, rest) = ("", number)
        for _ in 0..<26 {
            text = "\(alphabet[Int(rest % 32)])\(text)"
            rest /= 32
        }
        return text
    }

    @Test("base 32 has the characters of the number's digits", arguments: 0..<8)
    func digits(seed: UInt64) {
        var generator = SplitMix(seed: seed)
        var numbers: [UInt128] = [0, 1, .max, .max - 1, 1 << 64, 1 << 127]
        for shift in 0..<128 { numbers += [1 << UInt128(shift), UInt128.max << UInt128(shift), 26 << UInt128(shift)] }
        for _ in 0..<500 { numbers.append(UInt128(generator.next()) << 64 | UInt128(generator.next())) }
        for number in numbers {
            let (high, low) = (UInt64(truncatingIfNeeded: number >> 64), UInt64(truncatingIfNeeded: number))
            #expect(ContentHash(high: high, low: low).text == reference(number))
        }
    }

    @Test("the written bytes are those of the text")
    func written() {
        let hash = ContentHash(Array("some content".utf8))
        var bytes = [UInt8](repeating: 0, count: 40)
        let count = bytes.withUnsafeMutableBytes { hash.write(to: $0) }
        #expect(text(Array(bytes[..<count])) == hash.text)
    }
}
