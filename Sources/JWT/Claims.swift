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
    /// The grant, or nil for a token that says nothing of this server.
    package var storekeeper: Grant?
}

/// The rules for the claims of a token.
package struct ClaimRules: Sendable {
    /// The issuer; nil for any.
    package var issuer: String?
    /// A name that must be in the audience; nil for any audience.
    package var audience: String?
    /// How much the clocks of the issuer and the server may differ.
    package var leeway: Duration
    /// The grant of a token without the claim `storekeeper`; nil for a server that takes no such tokens.
    package var grant: Grant?

    package init(issuer: String? = nil, audience: String? = nil, leeway: Duration, grant: Grant? = nil) {
        (self.issuer, self.audience, self.leeway, self.grant) = (issuer, audience, leeway, grant)
    }

    private func has(_ audience: Claims.Audience?, _ name: String) -> Bool {
        audience?.names.contains { ExactText($0) == ExactText(name) } ?? false
    }

    /// The grant of a token, and the end of its access, also where that time is over; nil for a token that gives no access.
    package func access(of claims: Claims, at now: Timestamp) -> (grant: Grant, end: Timestamp)? {
        guard issuer == nil || ExactText(optional: issuer) == ExactText(optional: claims.iss),
            audience.map({ has(claims.aud, $0) }) ?? true,
            Access.fault(inSubject: claims.sub) == nil, let grant = claims.storekeeper ?? grant,
            grant.fault == nil, let end = Timestamp(seconds: claims.exp)?.advanced(by: leeway)
        else { return nil }
        if let begin = claims.nbf {
            guard let begin = Timestamp(seconds: begin), begin <= now.advanced(by: leeway) else { return nil }
        }
        return (grant, end)
    }
}

extension Timestamp {
    /// A time in seconds since 1970; nil beyond some ten thousand years.
    fileprivate init?(seconds: Double) {
        guard abs(seconds) < 1e12 else { return nil }
        self.init(milliseconds: Int64(seconds * 1000))
    }
}
