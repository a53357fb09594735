internal import CSignatures

/// A key with which the server verifies the signatures of JSON Web Tokens, and the one algorithm that it is used with.
struct VerificationKey: Sendable, Hashable {
    /// The algorithms of RFC 7518 and RFC 8037 that the server knows.
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

    /// The name by which a token picks the key; nil for a key that has none.
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
