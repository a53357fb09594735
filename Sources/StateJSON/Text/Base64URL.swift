internal import FoundationEssentials

/// RFC 4648, section 5, without padding.
package enum Base64URL {
    package static func text(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").filter { $0 != "=" }
    }

    package static func bytes(_ text: [UInt8]) -> [UInt8]? {
        guard !text.contains(where: { "+/=".utf8.contains($0) }) else { return nil }
        var base64 = text.map { byte in
            byte == UInt8(ascii: "-") ? UInt8(ascii: "+") : byte == UInt8(ascii: "_") ? UInt8(ascii: "/") : byte
        }
        base64 += repeatElement(UInt8(ascii: "="), count: (4 - base64.count % 4) % 4)
        // Bits that do not count are zero, so that no two texts have the same bytes.
        guard let bytes = Data(base64Encoded: Data(base64)), bytes.base64EncodedData() == Data(base64) else {
            return nil
        }
        return [UInt8](bytes)
    }
}
