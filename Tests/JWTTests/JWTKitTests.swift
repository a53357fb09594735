#if JWT
    import Foundation
    import JWTKit
    import StateHTTP
    import Testing

    @testable import JWT

    @Suite("Signatures of JSON Web Tokens")
    struct JWTKitTests {
        struct Payload: JWTPayload {
            var sub = "ci"
            var exp = 2_000_000_000
            var storekeeper = ["read": ["/tasks"]]

            func verify(using algorithm: some JWTAlgorithm) {}
        }

        /// A key that signs, and the key of the server that verifies it.
        struct Pair: Sendable, CustomTestStringConvertible {
            let keys: JWTKeyCollection
            let verification: VerificationKey

            var testDescription: String { verification.algorithm.rawValue }

            func token() async throws -> String { try await keys.sign(Payload()) }
        }

        static func secret(_ byte: UInt8 = 7) async -> Pair {
            let bytes = [UInt8](repeating: byte, count: 32)
            return await Pair(
                keys: JWTKeyCollection().add(hmac: HMACKey(from: bytes), digestAlgorithm: .sha256),
                verification: VerificationKey(id: nil, material: .secret(bytes)))
        }

        static func p256() async throws -> Pair {
            let key = ES256PrivateKey()
            let parameters = try #require(key.parameters)
            return await Pair(
                keys: JWTKeyCollection().add(ecdsa: key),
                verification: VerificationKey(
                    id: nil, material: .p256(x: url(parameters.x), y: url(parameters.y))))
        }

        static func ed25519() async throws -> Pair {
            let key = try EdDSA.PrivateKey()
            let x = key.publicKey.rawRepresentation.base64EncodedString()
            return await Pair(
                keys: JWTKeyCollection().add(eddsa: key),
                verification: VerificationKey(id: nil, material: .ed25519(x: url(x))))
        }

        /// Base64 as base64url.
        static func url(_ text: String) -> String {
            text.replacing("+", with: "-").replacing("/", with: "_").filter { $0 != "=" }
        }

        static func pairs() async throws -> [Pair] {
            [await secret(), try await p256(), try await ed25519()]
        }

        var verifier: SignatureVerifier {
            get throws { try #require(SignatureVerifier.built) }
        }

        @Test("a token is good with the key that signed it, and with no other")
        func good() async throws {
            let pairs = try await Self.pairs()
            let others = [await Self.secret(8), try await Self.p256(), try await Self.ed25519()]
            for pair in pairs {
                let token = try #require(SignedToken(try await pair.token()))
                #expect(try verifier.fault(pair.verification) == nil)
                #expect(token.algorithm == pair.verification.algorithm)

                let claims = try #require(await verifier.claims(token, pair.verification))
                #expect(claims.sub == "ci")
                #expect(claims.storekeeper.read == ["/tasks"])
                for other in pairs + others where other.verification != pair.verification {
                    #expect(try await verifier.claims(token, other.verification) == nil)
                }
            }
        }

        @Test("a token with another byte, or without its end, is not good")
        func changed() async throws {
            for pair in try await Self.pairs() {
                let text = try await pair.token()
                for index in stride(from: 0, to: text.count, by: 7) {
                    var bytes = Array(text.utf8)
                    bytes[index] = bytes[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
                    guard let token = SignedToken(String(decoding: bytes, as: UTF8.self)) else { continue }
                    #expect(try await verifier.claims(token, pair.verification) == nil, "\(index)")
                }
                for count in [0, 1, 2, 10, 40] {
                    guard let token = SignedToken(String(text.dropLast(count + 1))) else { continue }
                    #expect(try await verifier.claims(token, pair.verification) == nil, "\(count)")
                }
            }
        }

        /// RFC 7515, A.2: the key, and a token that it has signed.
        static let modulus =
            "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"

        @Test("an RSA key below 2048 or above 8192 bits and a point off the curve are faults that do not quote the key")
        func faults() throws {
            let bad = [
                VerificationKey(id: nil, material: .rsa(modulus: String(Self.modulus.prefix(170)), exponent: "AQAB")),
                VerificationKey(
                    id: nil, material: .rsa(modulus: String(repeating: Self.modulus, count: 8), exponent: "AQAB")),
                VerificationKey(id: nil, material: .rsa(modulus: "***", exponent: "AQAB")),
                VerificationKey(id: nil, material: .p256(x: "AAAA", y: "AAAA")),
                VerificationKey(id: nil, material: .ed25519(x: "AAAA")),
            ]
            for key in bad {
                let fault = try verifier.fault(key)
                #expect(fault?.contains("it is not a key for \(key.algorithm.rawValue)") == true)
                #expect(fault?.contains("AAAA") == false)
                #expect(fault?.contains("8192") == (key.algorithm == .rs256))
            }
            let good = VerificationKey(id: nil, material: .rsa(modulus: Self.modulus, exponent: "AQAB"))
            #expect(try verifier.fault(good) == nil)
        }
    }
#endif
