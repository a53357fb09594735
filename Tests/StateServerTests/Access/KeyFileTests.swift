import Foundation
import Testing

@testable import JWT
@testable import StateServer

@Suite("The key file")
struct KeyFileTests {
    static let secret = #"{"kty":"oct","alg":"HS256","kid":"s","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#
    static let rsa = #"{"kty":"RSA","alg":"RS256","kid":"r","n":"AQ","e":"AQAB"}"#

    /// Reads a file with these keys.
    func read(_ keys: String...) throws -> JSONWebKeySet? {
        try read(text: "{\"keys\":[\(keys.joined(separator: ","))]}")
    }

    func read(text: String) throws -> JSONWebKeySet? {
        let file = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID().uuidString).json")
        try Data(text.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        return try KeyFile(path: file.path).read()
    }

    func fault(_ keys: String...) -> String? {
        do {
            _ = try read(text: "{\"keys\":[\(keys.joined(separator: ","))]}")
            return nil
        } catch { return "\(error)" }
    }

    @Test("each type of key has one algorithm, stated or the only one")
    func algorithms() throws {
        let read = try #require(
            try read(
                Self.secret, Self.rsa, #"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#,
                #"{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","x":"AA","y":"AA"}"#,
                #"{"kty":"OKP","crv":"Ed25519","x":"AA","key_ops":["verify"]}"#,
                #"{"kty":"RSA","use":"sig","kid":"a","n":"AQ","e":"AQAB"}"#))

        #expect(read.keys.map(\.algorithm) == [.hs256, .rs256, .es256, .es256, .edDSA, .rs256])
        #expect(read.keys.map(\.id) == ["s", "r", nil, nil, nil, "a"])
        #expect(read.keys.first?.material == .secret([UInt8](repeating: 0, count: 32)))
        #expect(read.skippedCount == 0)
    }

    @Test(
        "keys for something else are left out",
        arguments: [
            #"{"kty":"RSA","use":"enc","n":"AQ","e":"AQAB"}"#, #"{"kty":"RSA","alg":"RSA-OAEP","n":"AQ","e":"AQAB"}"#,
            #"{"kty":"RSA","alg":"RS512","n":"AQ","e":"AQAB"}"#, #"{"kty":"EC","crv":"P-384","x":"AA","y":"AA"}"#,
            #"{"kty":"EC","crv":"P-384","alg":"ES384","x":"AA","y":"AA"}"#, #"{"kty":"OKP","crv":"X25519","x":"AA"}"#,
            #"{"kty":"RSA","alg":"RS256","key_ops":["sign"],"n":"AQ","e":"AQAB"}"#, #"{"kty":"AKP","alg":"ML-DSA-44"}"#,
            #"{"kty":"oct","alg":"none","k":"AA"}"#,
        ])
    func skipped(key: String) throws {
        let read = try #require(try read(key, Self.rsa))

        #expect(read.keys.count == 1)
        #expect(read.skippedCount == 1)
    }

    @Test(
        "a key whose algorithm is open, or is not one of its type, is a fault",
        arguments: [
            (#"{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#, "add alg"),
            (#"{"kty":"RSA","alg":"HS256","n":"AQ","e":"AQAB"}"#, "cannot be used with the algorithm"),
            (#"{"kty":"oct","alg":"RS256","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#, "cannot be used"),
            (#"{"kty":"EC","crv":"P-384","alg":"ES256","x":"AA","y":"AA"}"#, "cannot be used"),
            (#"{"kty":"OKP","crv":"Ed448","alg":"EdDSA","x":"AA"}"#, "cannot be used"),
            (#"{"kty":"oct","alg":"HS256","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#, "at least 32 bytes"),
            (#"{"kty":"oct","alg":"HS256","k":"AAAA+AAA"}"#, "lacks a part"),
            (#"{"kty":"RSA","alg":"RS256","e":"AQAB"}"#, "lacks a part"),
        ])
    func faults(key: String, says: String) {
        let fault = fault(Self.secret, key)

        #expect(fault?.contains("key 2") == true && fault?.contains(says) == true, "\(fault ?? "none")")
        #expect(fault?.contains("AAAA") != true)
    }

    @Test("a file that is no key set is a fault that does not quote it, and one that is missing is none")
    func files() throws {
        for text in ["", "[]", "{}", #"{"keys":[{"kty":"oct","k":17}]}"#, #"{"keys":["s3cret"]}"#] {
            #expect(throws: SettingsFault.self) { _ = try read(text: text) }
        }
        do { _ = try read(text: #"{"keys":["s3cret"]}"#) } catch { #expect(!"\(error)".contains("s3cret")) }
        #expect(try KeyFile(path: "/nowhere/at/all.json").read() == nil)
    }

    @Test("16 keys are taken, 17 are not")
    func bound() throws {
        let keys = (1...17).map { #"{"kty":"OKP","crv":"Ed25519","x":"AA","kid":"\#($0)"}"# }

        #expect(try read(text: "{\"keys\":[\(keys.dropLast().joined(separator: ","))]}")?.keys.count == 16)
        #expect(throws: SettingsFault.self) { _ = try read(text: "{\"keys\":[\(keys.joined(separator: ","))]}") }
    }
}
