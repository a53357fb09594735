/// A key with which the server verifies the signatures of JSON Web Tokens, and the one algorithm that it is used with.
package struct VerificationKey: Sendable, Hashable {
    /// The algorithms of RFC 7518 and RFC 8037 that the server knows.
    package enum Algorithm: String, Sendable {
        case hs256 = "HS256"
        case rs256 = "RS256"
        case es256 = "ES256"
        case edDSA = "EdDSA"
    }

    /// The key itself; texts are base64url, as in the file.
    package enum Material: Sendable, Hashable {
        case secret([UInt8])
        case rsa(modulus: String, exponent: String)
        case p256(x: String, y: String)
        case ed25519(x: String)

        /// The only algorithm of the key.
        package var algorithm: Algorithm {
            switch self {
            case .secret: .hs256
            case .rsa: .rs256
            case .p256: .es256
            case .ed25519: .edDSA
            }
        }
    }

    /// The name by which a token picks the key; nil for a key that has none.
    package var id: String?
    package var material: Material

    package init(id: String?, material: Material) { (self.id, self.material) = (id, material) }

    package var algorithm: Algorithm { material.algorithm }
}
