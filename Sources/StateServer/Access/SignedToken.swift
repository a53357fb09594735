internal import FoundationEssentials
internal import StateHTTP
internal import StateJSON
internal import StateStore

/// A JSON Web Token whose signature has not been verified (RFC 7519), in the compact form of RFC 7515.
struct SignedToken: Sendable {
    /// The token as the client has sent it.
    let text: String
    let algorithm: VerificationKey.Algorithm
    /// The name of the key.
    let keyID: String?

    static let bytesMax = 8192

    /// Whether a credential could be a token of this kind; another one needs no verification.
    ///
    /// O(n) in the length of the credential, up to ``bytesMax``.
    static func isLike(_ text: String) -> Bool {
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
    init?(_ text: String) {
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
    func candidates(among keys: [VerificationKey]) -> [VerificationKey] {
        keys.filter { key in
            guard key.algorithm == algorithm else { return false }
            guard let keyID, let id = key.id else { return true }
            return ExactText(id) == ExactText(keyID)
        }
    }
}

/// What the server reads of a token whose signature is good.
struct Claims: Sendable, Codable {
    /// One name or several.
    struct Audience: Sendable, Codable {
        var names: [String]

        init(_ names: [String]) { self.names = names }

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let name = try? container.decode(String.self) {
                names = [name]
            } else {
                names = try container.decode([String].self)
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(names)
        }
    }

    var sub: String
    /// Seconds since 1970, as is `nbf`.
    var exp: Double
    var nbf: Double?
    var iss: String?
    var aud: Audience?
    var storekeeper: Grant
}

/// What the claims of a token must be.
struct ClaimRules: Sendable {
    /// The issuer; nil for any.
    var issuer: String?
    /// A name that must be in the audience; nil for any audience.
    var audience: String?
    /// How much the clocks of the issuer and the server may differ.
    var leeway: Duration

    private func has(_ audience: Claims.Audience?, _ name: String) -> Bool {
        audience?.names.contains { ExactText($0) == ExactText(name) } ?? false
    }

    /// When the access of a token ends, also where that time is over; nil for a token that gives none.
    func end(of claims: Claims, at now: Timestamp) -> Timestamp? {
        guard issuer == nil || ExactText(optional: issuer) == ExactText(optional: claims.iss),
            audience.map({ has(claims.aud, $0) }) ?? true,
            TokenFile.fault(inSubject: claims.sub) == nil, claims.storekeeper.fault == nil,
            let end = Timestamp(seconds: claims.exp)?.advanced(by: leeway)
        else { return nil }
        if let begin = claims.nbf {
            guard let begin = Timestamp(seconds: begin), begin <= now.advanced(by: leeway) else { return nil }
        }
        return end
    }
}

extension Timestamp {
    /// A time in seconds since 1970; nil beyond some ten thousand years.
    fileprivate init?(seconds: Double) {
        guard abs(seconds) < 1e12 else { return nil }
        self.init(milliseconds: Int64(seconds * 1000))
    }
}

/// The verification of signatures; a value, because a build without the trait JWT has none.
struct SignatureVerifier: Sendable {
    /// What is wrong with a key, in words without the key; nil for a good one.
    var fault: @Sendable (VerificationKey) -> String?
    /// The claims of a token; nil where this key has not signed it, or it has not the claims that the server needs.
    var claims: @Sendable (SignedToken, VerificationKey) async -> Claims?
}
