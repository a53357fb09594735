internal import CRE2
internal import StateJSON

package final class Pattern: Sendable {
    package struct Fault: Error {
        package var detail: String
        package var isTooLarge: Bool
    }

    let text: String
    /// unsafe: RE2 does not change an expression that it has compiled.
    nonisolated(unsafe) private let compiled: OpaquePointer

    /// In the syntax of RE2; `memoryMax` bytes bound the expression and its matches.
    package init(_ text: String, memoryMax: Int = 8 << 20) throws(Fault) {
        var reason = [CChar](repeating: 0, count: 256)
        var isTooLarge = false
        let made = text.withBytes { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                storekeeper_pattern_make(
                    $0.baseAddress, $0.count, Int64(memoryMax), &isTooLarge, &reason, reason.count)
            }
        }
        guard let made else {
            let bytes = reason.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            throw Fault(detail: String(decoding: bytes, as: UTF8.self), isTooLarge: isTooLarge)
        }
        (self.text, compiled) = (text, made)
    }

    deinit { storekeeper_pattern_free(compiled) }

    /// Instructions of RE2, of 16 bytes each.
    package var size: Int { Int(storekeeper_pattern_size(compiled)) }

    package func matches(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        text.withMemoryRebound(to: CChar.self) { storekeeper_pattern_matches(compiled, $0.baseAddress, $0.count) }
    }
}
