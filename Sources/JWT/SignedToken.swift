internal import FoundationEssentials
internal import StateJSON

/// A JSON Web Token whose signature has not been verified (RFC 7519), in the compact form of RFC 7515.
package struct SignedToken: Sendable {
    /// The token as the client has sent it.
    package let text: String
    package let algorithm: VerificationKey.Algorithm
    /// The name of the key.
    package let keyID: String?

    package static let bytesMax = 8192

    /// Whether a credential could be a token of this kind; another one needs no verification.
    ///
    /// O(n) in the length of the credential, up to ``bytesMax``.
    package static func isLike(_ text: String) -> Bool {
        guard text.utf8.count <= bytesMax else { return false }
        var dotsCount = 0
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "."): dotsCount += 1
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                break
            default: return false
            }
        }
        return dotsCount == 2
    }

    /// Reads the header; nil for a token that no key of the server can have signed, and for one of another kind.
    package init?(_ text: String) {
        guard Self.isLike(text), let bytes = Data(base64URL: text.utf8.prefix { $0 != UInt8(ascii: ".") }),
            let fields = try? JSON.decode(Header.self, from: [UInt8](bytes), unknownFields: .ignored),
            let algorithm = VerificationKey.Algorithm(rawValue: fields.alg),
            // A server that does not know an extension must refuse it.
            fields.crit == nil, Self.isOfKind(fields.typ)
        else { return nil }
        self.text = text
        self.algorithm = algorithm
        keyID = fields.kid
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
        var crit: [String]?
    }

    /// The keys that may have signed the token.
    package func candidates(among keys: [VerificationKey]) -> [VerificationKey] {
        keys.filter { key in
            guard key.algorithm == algorithm else { return false }
            guard let keyID, let id = key.id else { return true }
            return ExactText(id) == ExactText(keyID)
        }
    }
}
