internal import StateJSON

/// A JSON Web Token whose signature has not been verified (RFC 7519), in the compact form of RFC 7515.
struct SignedToken: Sendable {
    let algorithm: VerificationKey.Algorithm
    let keyID: String?
    /// The signed bytes: the header and the claims, as they were sent.
    let message: [UInt8]
    let signature: [UInt8]
    /// The claims, which count only after the signature is verified.
    let payload: [UInt8]

    static let bytesMax = 8192
    private static let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.".utf8)

    /// Whether a credential could be a token of this kind, in O(n) up to ``bytesMax``.
    static func isLike(_ text: String) -> Bool {
        text.utf8.count <= bytesMax && text.utf8.allSatisfy(alphabet.contains)
            && text.utf8.count { $0 == UInt8(ascii: ".") } == 2
    }

    init(_ text: String) throws(TokenRefusal) {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let decoded = parts.compactMap { Base64URL.bytes(Array($0)) }
        guard Self.isLike(text), decoded.count == 3,
            // Its error can quote the header.
            let fields = try? JSON.decode(Header.self, from: decoded[0], ignoresUnknown: true)
        else { throw TokenRefusal("header", "JSON with alg in which no name comes twice") }
        guard let algorithm = VerificationKey.Algorithm(name: fields.alg) else {
            throw TokenRefusal("alg", VerificationKey.Algorithm.names)
        }
        // A server that does not know an extension must refuse it.
        guard !fields.hasCrit else { throw TokenRefusal("crit", "none") }
        guard Self.isOfKind(fields.typ) else { throw TokenRefusal("typ", "none, JWT or at+jwt") }
        self.algorithm = algorithm
        keyID = fields.kid
        message = Array(text.utf8.prefix(parts[0].count + 1 + parts[1].count))
        (payload, signature) = (decoded[1], decoded[2])
    }

    /// Whether a token of this media type is one for access: a logout token, for example, has the same issuer and subject.
    private static func isOfKind(_ type: String?) -> Bool {
        guard let type = type?.lowercased() else { return true }
        return ["jwt", "at+jwt", "application/jwt", "application/at+jwt"].contains(type)
    }

    private struct Header: Decodable {
        var alg: String
        var kid: String?
        var typ: String?
        var hasCrit: Bool

        private enum CodingKeys: String, CodingKey { case alg, kid, typ, crit }

        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            alg = try members.decode(String.self, forKey: .alg)
            kid = try members.decodeMember(String.self, .kid)
            typ = try members.decodeMember(String.self, .typ)
            hasCrit = members.contains(.crit)
        }
    }

    func candidates(among keys: [VerificationKey]) -> [VerificationKey] {
        keys.filter { key in
            guard key.algorithm == algorithm else { return false }
            guard let keyID, let id = key.id else { return true }
            return ExactText(id) == ExactText(keyID)
        }
    }
}

struct TokenRefusal: Error, Sendable, Equatable {
    var claim: String
    var expected: String

    init(_ claim: String, _ expected: String) { (self.claim, self.expected) = (claim, expected) }
}
