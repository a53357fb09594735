#if JWT
    internal import JWTKit

    extension SignatureVerifier {
        /// The verifier of this build.
        package static let built: SignatureVerifier? = SignatureVerifier(
            fault: { key in
                do {
                    _ = try PreparedKey(key.material)
                    return nil
                } catch {
                    // The words of the error could hold parts of the key.
                    let sizes = key.algorithm == .rs256 ? "; an RSA key has at least 2048 bits, and at most 8192" : ""
                    return "it is not a key for \(key.algorithm.rawValue)\(sizes)"
                }
            },
            claims: { token, key in
                // An error says that the token is not one of this key; the answer is the same for all of them.
                guard let prepared = try? PreparedKey(key.material) else { return nil }
                let keys = JWTKeyCollection()
                switch prepared {
                case .secret(let key): await keys.add(hmac: key, digestAlgorithm: .sha256)
                case .rsa(let key): await keys.add(rsa: key, digestAlgorithm: .sha256)
                case .p256(let key): await keys.add(ecdsa: key)
                case .ed25519(let key): await keys.add(eddsa: key)
                }
                // The collection has one key, so that neither the algorithm nor the name in the token picks another.
                return try? await keys.verify(token.text, as: Verified.self).claims
            })
    }

    private enum PreparedKey {
        case secret(HMACKey)
        case rsa(Insecure.RSA.PublicKey)
        case p256(ES256PublicKey)
        case ed25519(EdDSA.PublicKey)

        init(_ material: VerificationKey.Material) throws {
            switch material {
            case .secret(let bytes): self = .secret(HMACKey(from: bytes))
            case .rsa(let modulus, let exponent):
                self = try .rsa(Insecure.RSA.PublicKey(modulus: modulus, exponent: exponent))
            case .p256(let x, let y): self = try .p256(ES256PublicKey(parameters: (x, y)))
            case .ed25519(let x): self = try .ed25519(EdDSA.PublicKey(x: x, curve: .ed25519))
            }
        }
    }

    /// The claims of a token; no other target has to know JWTKit.
    private struct Verified: JWTPayload {
        let claims: Claims

        init(from decoder: any Decoder) throws { claims = try Claims(from: decoder) }

        func encode(to encoder: any Encoder) throws { try claims.encode(to: encoder) }

        /// The server checks the claims by itself, with a leeway that JWTKit has not.
        func verify(using algorithm: some JWTAlgorithm) {}
    }
#else
    extension SignatureVerifier {
        /// This build has no verifier.
        package static let built: SignatureVerifier? = nil
    }
#endif
