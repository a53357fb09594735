import Foundation
import StateHTTP
import StateStore
import TestSupport
import Testing

@testable import StateServer

@Suite("JSON Web Tokens before their verification")
struct SignedTokenTests {
    /// A token with this header.
    func token(_ header: String) -> String { "\(base64URL(header)).\(base64URL("{}")).c2ln" }

    @Test(
        "a header that the server knows is read",
        arguments: [
            (#"{"alg":"RS256"}"#, VerificationKey.Algorithm.rs256, nil),
            (#"{"alg":"ES256","kid":"a","typ":"JWT"}"#, .es256, "a"),
            (#"{"alg":"EdDSA","typ":"at+jwt"}"#, .edDSA, nil),
            (#"{"alg":"HS256","typ":"application/AT+JWT","kid":"b"}"#, .hs256, "b" as String?),
        ])
    func read(header: String, algorithm: VerificationKey.Algorithm, keyID: String?) throws {
        let read = try SignedToken(token(header))

        #expect(read.algorithm == algorithm)
        #expect(read.keyID == keyID)
    }

    @Test(
        "any other header is refused",
        arguments: [
            #"{"alg":"none"}"#, #"{"alg":"None"}"#, #"{"alg":"hs256"}"#, #"{"alg":"HS512"}"#, #"{"alg":""}"#, "{}", "",
            "[]", #"{"alg":17}"#, #"{"alg":["RS256"]}"#, #"{"alg":"RS256","crit":["exp"]}"#,
            #"{"alg":"RS256","crit":[]}"#, #"{"alg":"RS256","typ":"logout+jwt"}"#, #"{"alg":"RS256","typ":"dpop+jwt"}"#,
            #"{"alg":"RS256","kid":1}"#, #"{"alg":"RS256"} x"#, #"{"alg":"RS256","alg":"RS256"}"#,
            #"{"alg":"RS256","kid":"a","kid":"b"}"#, #"{"alg":"none","alg":"RS256"}"#,
            #"{"alg":"RS256","typ":"secevent+jwt"}"#, #"{"alg":"RS256","crit":null}"#, #"{"alg":"RS256","crit":{}}"#,
            #"{"alg":"RS256","typ":null}"#, #"{"alg":"RS256","kid":null}"#, #"{"alg":null}"#,
        ])
    func refused(header: String) {
        #expect(throws: TokenRefusal.self) { try SignedToken(token(header)) }
    }

    @Test("a credential that is not three parts of base64url is none, nor is a longer one than 8192 bytes")
    func shapes() {
        let good = token(#"{"alg":"RS256"}"#)
        #expect(SignedToken.isLike(good))
        for text in [
            "", ".", "a.b", "\(good).", "\(good)=", good.replacing(".", with: "/"), "sk_abc", "é.b.c", "a.b. c",
        ] {
            #expect(!SignedToken.isLike(text), "\(text)")
        }
        let filler = String(repeating: "a", count: SignedToken.bytesMax - good.utf8.count)
        #expect(SignedToken.isLike(good + filler))
        #expect(!SignedToken.isLike(good + filler + "a"))
        #expect(throws: TokenRefusal.self) { try SignedToken("..") }
        #expect(throws: TokenRefusal.self) { try SignedToken(".\(good)") }
    }

    @Test("a token is tried with the keys of its algorithm, and of its name where both have one")
    func candidates() throws {
        let keys = [
            VerificationKey(id: "a", algorithm: .edDSA, first: [1]),
            VerificationKey(id: "b", algorithm: .edDSA, first: [2]),
            VerificationKey(id: nil, algorithm: .edDSA, first: [3]),
            VerificationKey(id: "a", algorithm: .rs256, first: [4], second: [5]),
        ]
        func tried(_ header: String) throws -> [VerificationKey] {
            try SignedToken(token(header)).candidates(among: keys)
        }

        #expect(try tried(#"{"alg":"EdDSA"}"#) == Array(keys[...2]))
        #expect(try tried(#"{"alg":"EdDSA","kid":"a"}"#) == [keys[0], keys[2]])
        #expect(try tried(#"{"alg":"EdDSA","kid":"c"}"#) == [keys[2]])
        #expect(try tried(#"{"alg":"RS256","kid":"a"}"#) == [keys[3]])
        #expect(try tried(#"{"alg":"HS256","kid":"a"}"#) == [])
    }
}

@Suite("The claims of a JSON Web Token")
struct ClaimsTests {
    static let now = Timestamp(milliseconds: 1_000_000_000)

    /// When claims end their access, by rules with a leeway of 60 seconds; nil where they give none.
    func end(_ json: String, issuer: String? = nil, audience: String? = nil) throws -> Timestamp? {
        try? ClaimRules(issuer: issuer, audience: audience, leeway: .seconds(60))
            .access(of: try Claims(Array(json.utf8)), at: Self.now).end
    }

    /// Why claims give no access, by rules that ask for an issuer and an audience.
    func refused(_ json: String, _ grant: Grant? = nil) -> TokenRefusal? {
        do throws(TokenRefusal) {
            _ = try ClaimRules(issuer: "i", audience: "x", leeway: .zero, grant: grant)
                .access(of: try Claims(Array(json.utf8)), at: Self.now)
            return nil
        } catch { return error }
    }

    /// The claims of a good token with these instead.
    func claims(_ members: String) -> String { "{\(members),\"storekeeper\":{\"read\":[\"/tasks\"]}}" }

    @Test("the access ends at exp and the leeway, also where that is over")
    func expiry() throws {
        #expect(try end(claims(#""sub":"a","exp":1000000"#)) == Timestamp(milliseconds: 1_000_060_000))
        #expect(try end(claims(#""sub":"a","exp":999940.001"#)) == Timestamp(milliseconds: 1_000_000_001))
        #expect(try end(claims(#""sub":"a","exp":0"#)) == Timestamp(milliseconds: 60_000))
        #expect(try end(claims(#""sub":"a","exp":-1e300"#)) == nil)
        #expect(try end(claims(#""sub":"a","exp":1e300"#)) == nil)
    }

    @Test("nbf counts with the leeway")
    func beginning() throws {
        #expect(try end(claims(#""sub":"a","exp":2000000,"nbf":1000060"#)) != nil)
        #expect(try end(claims(#""sub":"a","exp":2000000,"nbf":1000061"#)) == nil)
        #expect(try end(claims(#""sub":"a","exp":2000000,"nbf":1e300"#)) == nil)
    }

    @Test("a token that says nothing of the server has the grant of the rules, and one that does has its own")
    func withoutGrant() throws {
        let grant = Grant(read: ["view:mine", "/inbox/{subject}"], dispatch: ["tasks/*"])
        func granted(_ json: String, _ grant: Grant?) throws -> Grant? {
            try? ClaimRules(issuer: "i", audience: "x", leeway: .zero, grant: grant)
                .access(of: try Claims(Array(json.utf8)), at: Self.now).grant
        }
        let plain = #"{"sub":"a","exp":2000000,"iss":"i","aud":"x","scope":"openid"}"#

        #expect(try granted(plain, grant) == grant)
        #expect(try granted(plain, nil) == nil)
        #expect(try granted(claims(#""sub":"a","exp":2000000,"iss":"i","aud":"x""#), grant) == Grant(read: ["/tasks"]))
        #expect(try granted(#"{"sub":"a","exp":2000000,"iss":"j","aud":"x"}"#, grant) == nil)
        #expect(try granted(#"{"sub":"a","exp":2000000,"iss":"i"}"#, grant) == nil)
        #expect(try granted(#"{"sub":"a b","exp":2000000,"iss":"i","aud":"x"}"#, grant) == nil)
        #expect(try granted(#"{"sub":"a","exp":0,"iss":"i","aud":"x"}"#, grant) == grant)
        // A claim that cannot be read is not a missing one.
        #expect(try granted(#"{"sub":"a","exp":2000000,"iss":"i","aud":"x","storekeeper":"all"}"#, grant) == nil)
        #expect(try granted(#"{"sub":"a","exp":2000000,"iss":"i","aud":"x","storekeeper":null}"#, grant) == nil)
    }

    @Test("a member that is missing in the grant of a claim allows nothing, whatever the others allow")
    func missingMembers() throws {
        let members = [
            #""read":["*"]"#, #""dispatch":["*"]"#, #""others":true"#, #""operate":true"#, #""fork":true"#,
        ]
        func grant(_ members: [String]) throws -> Grant? {
            let grant = members.joined(separator: ",")
            return try Claims(Array("{\"sub\":\"a\",\"exp\":2000000,\"storekeeper\":{\(grant)}}".utf8)).storekeeper
        }

        #expect(try grant(members) == Grant.everything)
        #expect(try grant(Array(members[..<4]))?.fork == false)
        for index in members.indices {
            var fewer = members
            fewer.remove(at: index)
            #expect(try grant(fewer)?.isEverything == false)
        }
    }

    @Test("issuer and audience count where they are set")
    func names() throws {
        let one = claims(#""sub":"a","exp":2000000,"iss":"i","aud":"x""#)
        let two = claims(#""sub":"a","exp":2000000,"aud":["x","y"]"#)
        #expect(try end(one, issuer: "i", audience: "x") != nil)
        #expect(try end(one, issuer: "j") == nil)
        #expect(try end(one, audience: "y") == nil)
        #expect(try end(two, audience: "y") != nil)
        #expect(try end(two, issuer: "i") == nil)
        #expect(try end(claims(#""sub":"a","exp":2000000"#), audience: "x") == nil)
    }

    @Test("a subject and a grant must be spelled as in the token file")
    func spelling() throws {
        #expect(try end(claims(#""sub":"a b","exp":2000000"#)) == nil)
        #expect(try end(claims(#""sub":"","exp":2000000"#)) == nil)
        for escape in [#"\t"#, #"\u007f"#, #"\u0085"#, #"\u009b"#, #"\u00a0"#, #"\u2028"#, #"\u2029"#, #"\u3000"#] {
            #expect(try end(claims(#""sub":"a\#(escape)b","exp":2000000"#)) == nil, "\(escape)")
        }
        #expect(try end(claims(#""sub":"Jürgen-山田@例.jp","exp":2000000"#)) != nil)
        #expect(try end(#"{"sub":"a","exp":2000000,"storekeeper":{"read":["tasks"]}}"#) == nil)
        #expect(try end(#"{"sub":"a","exp":2000000,"storekeeper":{}}"#) != nil)
    }

    @Test(
        "claims that are missing or of another type are none",
        arguments: [
            #"{"exp":2000000,"storekeeper":{}}"#, #"{"sub":"a","storekeeper":{}}"#,
            #"{"sub":"a","exp":"2000000","storekeeper":{}}"#, #"{"sub":17,"exp":2000000,"storekeeper":{}}"#,
            #"{"sub":"a","exp":2000000,"storekeeper":{"read":"/"}}"#,
            #"{"sub":"a","exp":2000000,"storekeeper":{"operate":1}}"#, #"{"sub":"a","exp":2000000,"storekeeper":"*"}"#,
            #"{"sub":"a","exp":2000000,"aud":17,"storekeeper":{}}"#,
            #"{"sub":"a","exp":2000000,"aud":null,"storekeeper":{}}"#,
            #"{"sub":"a","exp":2000000,"iss":null,"storekeeper":{}}"#,
            #"{"sub":"a","exp":2000000,"nbf":null,"storekeeper":{}}"#, #"{"sub":"a","exp":2000000,"storekeeper":null}"#,
            #"{"sub":null,"exp":2000000,"storekeeper":{}}"#, #"{"sub":"a","exp":null,"storekeeper":{}}"#, "[]",
            "null", "", "Zm9v",
        ])
    func types(json: String) {
        #expect(throws: TokenRefusal.self) { try Claims(Array(json.utf8)) }
    }

    @Test(
        "a claim that comes twice is refused, at any depth",
        arguments: [
            #"{"sub":"a","sub":"b","exp":2000000,"storekeeper":{}}"#,
            #"{"sub":"a","exp":1,"exp":2000000,"storekeeper":{}}"#,
            #"{"sub":"a","s\u0075b":"b","exp":2000000,"storekeeper":{}}"#,
            #"{"sub":"a","exp":2000000,"storekeeper":{},"storekeeper":{"read":["*"]}}"#,
            #"{"sub":"a","exp":2000000,"storekeeper":{"read":[],"read":["*"]}}"#,
            #"{"sub":"a","exp":2000000,"storekeeper":{},"act":{"sub":"b","sub":"c"}}"#,
        ])
    func twice(json: String) {
        do throws(TokenRefusal) {
            _ = try Claims(Array(json.utf8))
            Issue.record("the claims are taken")
        } catch { #expect(error.expected.contains("twice")) }
    }

    @Test("a logout token is refused, and so is any other that tells of an event")
    func events() throws {
        let logout = #"{"http://schemas.openid.net/event/backchannel-logout":{}}"#
        #expect(try end(claims(#""sub":"a","exp":2000000,"events":\#(logout)"#)) == nil)
        #expect(try end(claims(#""sub":"a","exp":2000000,"events":{}"#)) == nil)
        #expect(try end(claims(#""sub":"a","exp":2000000,"events":[]"#)) == nil)
        #expect(try end(claims(#""sub":"a","exp":2000000,"events":null"#)) == nil)
        #expect(try end(claims(#""sub":"a","exp":2000000,"event":{}"#)) != nil)
    }

    @Test(
        "a refusal names the claim and what was expected, and quotes nothing of the token",
        arguments: [
            (#""sub":"a","exp":2e6,"iss":"s3cret","aud":"x""#, "iss", "i"),
            (#""sub":"a","exp":2e6,"iss":"i","aud":["s3cret"]"#, "aud", "x"),
            (#""sub":"s3cret s","exp":2e6,"iss":"i","aud":"x""#, "sub", "1 to 255 bytes"),
            (#""sub":"a","exp":"s3cret","iss":"i","aud":"x""#, "exp", "expected a number"),
            (#""sub":"a","exp":1e300,"iss":"i","aud":"x""#, "exp", "seconds since 1970"),
            (#""sub":"a","exp":2e6,"iss":"i","aud":"x","nbf":1500000"#, "nbf", "not later than now"),
            (#""sub":"a","iss":"i","aud":"x""#, "exp", "is missing"),
            (#""exp":2e6,"iss":"i","aud":"x""#, "sub", "is missing"),
            (#""sub":{"s3cret":1},"exp":2e6,"iss":"i","aud":"x""#, "sub", "expected a string"),
            (#""sub":"a","exp":2e6,"iss":"i","aud":"x","storekeeper":{"read":["s3cret"]}"#, "storekeeper", "a grant"),
            (
                #""sub":"a","exp":2e6,"iss":"i","aud":"x","storekeeper":{"read":"s3cret"}"#, "storekeeper",
                "expected an array"
            ),
            (#""sub":"a","exp":2e6,"iss":"i","aud":"x""#, "storekeeper", "jwt_grant has to be set"),
            (#""sub":"a","exp":2e6,"iss":"i","aud":"x","events":{"s3cret":{}}"#, "events", "none"),
        ])
    func reasons(members: String, claim: String, says: String) throws {
        let refusal = try #require(refused("{\(members)}"))

        #expect(refusal.claim == claim && refusal.expected.contains(says), "\(refusal)")
        #expect(!refusal.expected.contains("s3cret"))
    }
}
