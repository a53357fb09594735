import Foundation
import StateJSON
import Testing

@testable import StateServer

/// A key in the form of a key file.
func key(_ json: String) throws -> VerificationKey {
    let set = try JSONWebKeySet(Array("{\"keys\":[\(json)]}".utf8))
    return try #require(set.keys.first, "\(set.faults)")
}

@Suite("Signatures of JSON Web Tokens")
struct SignatureTests {
    /// A key and a token that it has signed.
    struct Vector: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let key: String
        let token: String
    }

    private static let claims =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    static let modulus =
        "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
    static let vectors = [
        Vector(
            testDescription: "RFC 7515, A.1",
            key:
                #"{"kty":"oct","alg":"HS256","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}"#,
            token: "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\(claims).dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        Vector(
            testDescription: "RFC 7515, A.2", key: #"{"kty":"RSA","n":"\#(modulus)","e":"AQAB"}"#,
            token:
                "eyJhbGciOiJSUzI1NiJ9.\(claims).cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
        ),
        Vector(
            testDescription: "RFC 7515, A.3",
            key:
                #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#,
            token:
                "eyJhbGciOiJFUzI1NiJ9.\(claims).DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
        ),
        Vector(
            testDescription: "RFC 8037, A.4",
            key: #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
            token:
                "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
        ),
    ]

    /// Whether a token is good with a key, whatever its claims are.
    static func isGood(_ text: String, _ key: VerificationKey) -> Bool {
        guard let token = try? SignedToken(text), !token.candidates(among: [key]).isEmpty else { return false }
        return key.verifies(token.message, token.signature)
    }

    @Test("the tokens of the RFCs are good with their keys, and with no other", arguments: vectors)
    func good(vector: Vector) throws {
        for other in Self.vectors {
            let key = try key(other.key)
            #expect(Self.isGood(vector.token, key) == (other.token == vector.token))
            // Nor where the key is tried although its algorithm is another.
            let token = try SignedToken(vector.token)
            #expect(key.verifies(token.message, token.signature) == (other.token == vector.token))
        }
    }

    @Test("a token with another byte, without its end, or with a longer one is not good", arguments: vectors)
    func changed(vector: Vector) throws {
        let key = try key(vector.key)
        let bytes = Array(vector.token.utf8)
        for index in bytes.indices where bytes[index] != UInt8(ascii: ".") {
            var changed = bytes
            changed[index] = bytes[index] == UInt8(ascii: "A") ? UInt8(ascii: "g") : UInt8(ascii: "A")
            #expect(!Self.isGood(String(decoding: changed, as: UTF8.self), key), "\(index)")
        }
        for count in [1, 2, 10, 40] { #expect(!Self.isGood(String(vector.token.dropLast(count)), key)) }
        for end in ["A", "AA", "AAAA", ".", "="] { #expect(!Self.isGood(vector.token + end, key), "\(end)") }
        let token = try SignedToken(vector.token)
        #expect(!key.verifies(token.message, []) && !key.verifies([], token.signature))
        #expect(!key.verifies(token.message, token.signature + token.signature))
        #expect(!key.verifies(token.message, [UInt8](repeating: 0, count: token.signature.count)))
    }

    @Test("a signature of ES256 in DER is not one of a token")
    func der() throws {
        let token = try SignedToken(Self.vectors[2].token)
        let half = { (bytes: ArraySlice<UInt8>) in
            let number = bytes.first.map { $0 >= 0x80 } == true ? [0] + Array(bytes) : Array(bytes)
            return [0x02, UInt8(number.count)] + number
        }
        let numbers = half(token.signature[..<32]) + half(token.signature[32...])

        #expect(!(try key(Self.vectors[2].key)).verifies(token.message, [0x30, UInt8(numbers.count)] + numbers))
    }

    @Test("Ed25519 is another name of EdDSA, in a token and in a key")
    func edwards() throws {
        let (plain, vector) = (try key(Self.vectors[3].key), Self.vectors[3])
        for name in ["EdDSA", "Ed25519"] {
            let named = try key(vector.key.replacing("{", with: #"{"alg":"\#(name)","#))
            #expect(named == plain && Self.isGood(vector.token, named))
            let header = Data(#"{"alg":"\#(name)"}"#.utf8).base64EncodedString().filter { $0 != "=" }
            #expect(try SignedToken("\(header).e30.AAAA").algorithm == .edDSA)
        }
        for name in ["Ed448", "ed25519", "EDDSA"] {
            let header = Data(#"{"alg":"\#(name)"}"#.utf8).base64EncodedString().filter { $0 != "=" }
            #expect(throws: TokenRefusal("alg", VerificationKey.Algorithm.names)) {
                try SignedToken("\(header).e30.AAAA")
            }
        }
    }

    @Test("a key that is too short, too long, or off its curve has a fault that does not quote it")
    func faults() throws {
        let rsa = { (modulus: String, exponent: String) in #"{"kty":"RSA","n":"\#(modulus)","e":"\#(exponent)"}"# }
        let point = { (x: String, y: String) in #"{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"}"# }
        let x = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
        for bad in [
            rsa(String(Self.modulus.prefix(168)), "AQAB"), rsa(String(repeating: Self.modulus, count: 8), "AQAB"),
            rsa("AAAA", "AQAB"), rsa("", "AQAB"),
            // The exponents 0, 1 and 2, and one of 40 bits; an even modulus.
            rsa(Self.modulus, ""), rsa(Self.modulus, "AQ"), rsa(Self.modulus, "Ag"), rsa(Self.modulus, "AQAAAAAB"),
            rsa(Self.modulus.dropLast() + "g", "AQAB"), rsa(String(Self.modulus.dropLast(2)) + "oA", "AQAB"),
            point("AAAA", "AAAA"), point(x, x), point(x, String(repeating: "A", count: 43)),
            point(String(repeating: "A", count: 44), x),
            point(String(repeating: "_", count: 42) + "8", x), #"{"kty":"OKP","crv":"Ed25519","x":"AAAA"}"#,
        ] {
            let set = try JSONWebKeySet(Array("{\"keys\":[\(bad)]}".utf8))
            let fault = try #require(set.faults.first, "\(bad)")
            #expect(set.keys.isEmpty && fault.hasPrefix("key 1: it is not a key for "), "\(fault)")
            #expect(!fault.contains("AAAA") && fault.contains("8192") == bad.contains("RSA"))
        }
        // A zero in front, as Java writes it, is no fault.
        let text = Base64URL.text([0] + (try #require(Base64URL.bytes(Array(Self.modulus.utf8)))))
        #expect(Self.isGood(Self.vectors[1].token, try key(rsa(text, "AQAB"))))
    }
}

/// A selection of C2SP's vectors (Apache License 2.0), which implementations of these algorithms have failed.
@Suite("Wycheproof")
struct WycheproofTests {
    struct Content: Decodable {
        struct Signatures: Decodable {
            struct Vector: Decodable {
                var id: Int
                var message: String
                var signature: String
                var isGood: Bool
            }

            var from: String
            var key: [String: String]
            var vectors: [Vector]
        }

        struct Tokens: Decodable {
            struct Token: Decodable {
                var id: Int
                var jws: String
                var isGood: Bool
            }

            var tokens: [Token]
        }

        var signatures: [Signatures]
        var tokens: [Tokens]
    }

    static let bytes = Bundle.module.url(forResource: "wycheproof", withExtension: "json").flatMap {
        try? Data(contentsOf: $0)
    }

    @Test("a signature is good where Wycheproof says so")
    func signatures() throws {
        let content = try JSONDecoder().decode(Content.self, from: try #require(Self.bytes))
        var goodCount = 0
        for group in content.signatures {
            let key = try key(String(decoding: try JSONEncoder().encode(group.key), as: UTF8.self))
            for vector in group.vectors {
                let message = try #require(Base64URL.bytes(Array(vector.message.utf8)))
                let signature = try #require(Base64URL.bytes(Array(vector.signature.utf8)))
                #expect(key.verifies(message, signature) == vector.isGood, "\(group.from) \(vector.id)")
                goodCount += vector.isGood ? 1 : 0
            }
        }
        #expect(goodCount > 30)
    }

    @Test("a token is good where Wycheproof says so and its algorithm is known")
    func tokens() throws {
        let bytes = try #require(Self.bytes)
        let content = try JSONDecoder().decode(Content.self, from: bytes)
        let whole = try #require(try JSONSerialization.jsonObject(with: bytes) as? [String: Any])
        let groups = try #require(whole["tokens"] as? [[String: Any]])
        var goodCount = 0
        for (group, raw) in zip(content.tokens, groups) {
            let set = try JSONSerialization.data(withJSONObject: ["keys": [try #require(raw["key"])]])
            let keys = try JSONWebKeySet([UInt8](set)).keys
            for token in group.tokens {
                let isGood = keys.contains { SignatureTests.isGood(token.jws, $0) }
                #expect(isGood == (token.isGood && !keys.isEmpty), "\(token.id)")
                goodCount += isGood ? 1 : 0
            }
        }
        #expect(goodCount > 5)
    }
}
