package import StateHTTP
internal import StateJSON
package import StateStore

/// The claims that the server reads of a token whose signature is good.
package struct Claims: Sendable, Codable {
    /// One name or several.
    package struct Audience: Sendable, Codable {
        package var names: [String]

        package init(_ names: [String]) { self.names = names }

        package init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let name = try? container.decode(String.self) {
                names = [name]
            } else {
                names = try container.decode([String].self)
            }
        }

        package func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(names)
        }
    }

    package var sub: String
    /// Seconds since 1970, as is `nbf`.
    package var exp: Double
    package var nbf: Double?
    package var iss: String?
    package var aud: Audience?
    package var storekeeper: Grant
}

/// The rules for the claims of a token.
package struct ClaimRules: Sendable {
    /// The issuer; nil for any.
    package var issuer: String?
    /// A name that must be in the audience; nil for any audience.
    package var audience: String?
    /// How much the clocks of the issuer and the server may differ.
    package var leeway: Duration

    package init(issuer: String? = nil, audience: String? = nil, leeway: Duration) {
        (self.issuer, self.audience, self.leeway) = (issuer, audience, leeway)
    }

    private func has(_ audience: Claims.Audience?, _ name: String) -> Bool {
        audience?.names.contains { ExactText($0) == ExactText(name) } ?? false
    }

    /// When the access of a token ends, also where that time is over; nil for a token that gives none.
    package func end(of claims: Claims, at now: Timestamp) -> Timestamp? {
        guard issuer == nil || ExactText(optional: issuer) == ExactText(optional: claims.iss),
            audience.map({ has(claims.aud, $0) }) ?? true,
            Access.fault(inSubject: claims.sub) == nil, claims.storekeeper.fault == nil,
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
