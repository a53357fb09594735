internal import StateHTTP
internal import StateJSON
internal import StateStore

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

struct Claims: Sendable, Decodable {
    var sub: String
    /// Seconds since 1970, as is `nbf`.
    var exp: Double
    var nbf: Double?
    var iss: String?
    var aud: [String]?
    /// The grant, or nil for a token that says nothing of this server.
    var storekeeper: Grant?
    /// Whether it is a security event token (RFC 8417), such as a logout, which has the same issuer, audience and subject.
    var hasEvents: Bool

    private enum CodingKeys: String, CodingKey { case sub, exp, nbf, iss, aud, storekeeper, events }

    /// Reads the claims; one that is null has a wrong value, and is not missing.
    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        sub = try members.decode(String.self, forKey: .sub)
        exp = try members.decode(Double.self, forKey: .exp)
        nbf = try members.decodeMember(Double.self, .nbf)
        iss = try members.decodeMember(String.self, .iss)
        // One that is not a text is an array of them.
        let audience = try? members.decodeMember(String.self, .aud)
        aud = try audience.map { [$0] } ?? members.decodeMember([String].self, .aud)
        storekeeper = try members.decodeMember(Grant.self, .storekeeper)
        hasEvents = members.contains(.events)
    }

    init(_ payload: [UInt8]) throws(TokenRefusal) {
        do throws(JSONFault) {
            self = try JSON.decode(from: payload, ignoresUnknown: true)
        } catch { throw TokenRefusal(error.pointer.tokens.first ?? "claims", error.detail) }
    }
}

extension KeyedDecodingContainer {
    /// Decodes a member that may be missing, and may not be null, as `decodeIfPresent` allows.
    func decodeMember<Value: Decodable>(_ type: Value.Type, _ key: Key) throws -> Value? {
        try contains(key) ? decode(type, forKey: key) : nil
    }
}

struct ClaimRules: Sendable {
    var issuer: String?
    var audience: String?
    var leeway: Duration
    /// The grant of a token without the claim `storekeeper`; nil for a server that takes no such tokens.
    var grant: Grant?

    /// The end may be over already, which the caller looks at.
    func access(of claims: Claims, at now: Timestamp) throws(TokenRefusal) -> (grant: Grant, end: Timestamp) {
        func require(_ isGood: Bool, _ claim: String, _ expected: String) throws(TokenRefusal) {
            if !isGood { throw TokenRefusal(claim, expected) }
        }
        try require(!claims.hasEvents, "events", "none: the token tells of an event, such as a logout")
        try require(
            issuer == nil || ExactText(optional: issuer) == ExactText(optional: claims.iss), "iss", issuer ?? "any")
        let isFor = { (name: String) in claims.aud?.contains { ExactText($0) == ExactText(name) } ?? false }
        try require(audience.map(isFor) ?? true, "aud", audience ?? "any")
        if let fault = Access.fault(inSubject: claims.sub) { throw TokenRefusal("sub", fault) }
        let begin = claims.nbf.map { Timestamp(seconds: $0) } ?? now
        try require(begin.map { $0 <= now.advanced(by: leeway) } ?? false, "nbf", "not later than now, with the leeway")
        guard let end = Timestamp(seconds: claims.exp)?.advanced(by: leeway) else {
            throw TokenRefusal("exp", "seconds since 1970")
        }
        // The sentence of a fault quotes an entry.
        guard let grant = claims.storekeeper ?? grant, grant.fault == nil else {
            throw TokenRefusal("storekeeper", "a grant as in the token file; without one jwt_grant has to be set")
        }
        return (grant, end)
    }
}

extension Timestamp {
    fileprivate init?(seconds: Double) {
        guard abs(seconds) < 1e12 else { return nil }
        self.init(milliseconds: Int64(seconds * 1000))
    }
}
