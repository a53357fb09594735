internal import CCrypto
internal import FoundationEssentials

/// A secret with which deliveries are signed, as the specification Standard Webhooks has it.
struct HookSecret: Sendable {
    let text: String
    private let key: [UInt8]

    private static let prefix = "whsec_"

    init() {
        key = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
        text = Self.prefix + Data(key).base64EncodedString()
    }

    init?(_ text: String) {
        guard text.hasPrefix(Self.prefix), let data = Data(base64Encoded: String(text.dropFirst(Self.prefix.count))),
            (24...64).contains(data.count)
        else { return nil }
        (self.text, key) = (text, Array(data))
    }

    /// The signature of a delivery: `v1,` and the base64 of the HMAC-SHA256; `seconds` count since 1970.
    func signature(of body: [UInt8], id: String, at seconds: Int64) -> String {
        let signed = Array("\(id).\(seconds).".utf8) + body
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        guard HMAC(EVP_sha256(), key, Int32(key.count), signed, signed.count, &digest, &count) != nil, count == 32
        else {
            preconditionFailure("libcrypto has no HMAC-SHA256")
        }
        return "v1," + Data(digest).base64EncodedString()
    }
}
