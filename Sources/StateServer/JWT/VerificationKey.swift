internal import CSignatures

struct VerificationKey: Sendable, Hashable {
    enum Algorithm: String, Sendable {
        case hs256 = "HS256"
        case rs256 = "RS256"
        case es256 = "ES256"
        /// With Ed25519 only, which is its other name (RFC 9864).
        case edDSA = "EdDSA"

        static let names = "HS256, RS256, ES256, EdDSA or Ed25519"

        init?(name: String) { self.init(rawValue: name == "Ed25519" ? "EdDSA" : name) }

        fileprivate var ofShim: storekeeper_algorithm {
            switch self {
            case .hs256: STOREKEEPER_HS256
            case .rs256: STOREKEEPER_RS256
            case .es256: STOREKEEPER_ES256
            case .edDSA: STOREKEEPER_ED25519
            }
        }
    }

    var id: String?
    var algorithm: Algorithm
    /// The secret, the modulus, or `x`.
    var first: [UInt8]
    /// The exponent, or `y`; empty for the other algorithms.
    var second: [UInt8] = []

    var isGood: Bool { storekeeper_key_is_good(algorithm.ofShim, first, first.count, second, second.count) }

    /// Whether the key has signed a message; some 50 microseconds.
    func verifies(_ message: [UInt8], _ signature: [UInt8]) -> Bool {
        storekeeper_signature_is_good(
            algorithm.ofShim, first, first.count, second, second.count, message, message.count, signature,
            signature.count)
    }
}
