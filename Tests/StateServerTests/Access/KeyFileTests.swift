import Foundation
import Testing

@testable import StateServer

@Suite("The key file")
struct KeyFileTests {
    static let secret = #"{"kty":"oct","alg":"HS256","kid":"s","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#
    static let n =
        "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
    static let rsa = #"{"kty":"RSA","alg":"RS256","kid":"r","n":"\#(n)","e":"AQAB"}"#
    static let point =
        #""x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0""#
    static let x = #""x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo""#

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

    @Test("each type of key has one algorithm, stated or the only one")
    func algorithms() throws {
        let read = try #require(
            try read(
                Self.secret, Self.rsa, "{\"kty\":\"EC\",\"crv\":\"P-256\",\(Self.point)}",
                "{\"kty\":\"EC\",\"crv\":\"P-256\",\"alg\":\"ES256\",\"use\":\"sig\",\(Self.point)}",
                "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\(Self.x),\"key_ops\":[\"verify\"]}",
                "{\"kty\":\"RSA\",\"use\":\"sig\",\"kid\":\"a\",\"n\":\"\(Self.n)\",\"e\":\"AQAB\"}"))

        #expect(read.keys.map(\.algorithm) == [.hs256, .rs256, .es256, .es256, .edDSA, .rs256])
        #expect(read.keys.map(\.id) == ["s", "r", nil, nil, nil, "a"])
        #expect(read.keys.first?.first == [UInt8](repeating: 0, count: 32))
        #expect(read.skippedCount == 0 && read.faults == [])
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
        #expect(read.skippedCount == 1 && read.faults == [])
    }

    @Test(
        "a key that cannot be used is left out with its reason, and spoils no other",
        arguments: [
            (#"{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#, "add alg"),
            (#"{"kty":"RSA","alg":"HS256","n":"\#(n)","e":"AQAB"}"#, "cannot be used with the algorithm"),
            (#"{"kty":"RSA","alg":"ES256","n":"\#(n)","e":"AQAB"}"#, "cannot be used with the algorithm"),
            (#"{"kty":"oct","alg":"RS256","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#, "cannot be used"),
            (#"{"kty":"EC","crv":"P-384","alg":"ES256","x":"AA","y":"AA"}"#, "cannot be used"),
            (#"{"kty":"OKP","crv":"Ed448","alg":"EdDSA","x":"AA"}"#, "cannot be used"),
            (#"{"kty":"OKP","crv":"Ed448","alg":"Ed25519","x":"AA"}"#, "cannot be used"),
            (#"{"kty":"oct","alg":"HS256","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#, "at least 32 bytes"),
            (#"{"kty":"oct","alg":"HS256","k":"AAAA+AAA"}"#, "lacks a part"),
            (#"{"kty":"oct","alg":"HS256","k":17}"#, "another type"),
            (#"{"kty":"RSA","alg":"RS256","e":"AQAB"}"#, "lacks a part"),
            (#"{"kty":"RSA","alg":"RS256","use":"sig","x5c":["MIIB"]}"#, "reads no certificate"),
            (#"{"kty":"EC","crv":"P-256","x5c":"MIIB"}"#, "reads no certificate"),
            (#"{"kty":"RSA","n":"A+","e":"AQAB","x5c":["MIIB"]}"#, "lacks a part"),
            (#"{"kty":"RSA","alg":"RS256","n":"\#(n.prefix(168))","e":"AQAB"}"#, "at least 2048 bits"),
            (#"{"kty":"RSA","n":"\#(n)\#(n)\#(n)\#(n)\#(n)\#(n)\#(n)\#(n)","e":"AQAB"}"#, "at most 8192"),
            (#"{"kty":"EC","crv":"P-256","x":"AA"}"#, "lacks a part"),
            (#"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#, "it is not a key for ES256"),
            (#"{"alg":"RS256"}"#, "no kty"), (#"{"kty":"RSA","kid":7,"n":"AQ","e":"AQAB"}"#, "another type"),
            (#"{"kty":"RSA","alg":7,"n":"AQ","e":"AQAB"}"#, "another type"),
            (#"{"kty":"RSA","key_ops":"verify","n":"AQ","e":"AQAB"}"#, "another type"),
            (#""s3cret""#, "no kty"), ("null", "no kty"), ("[[]]", "no kty"),
        ])
    func odd(key: String, says: String) throws {
        for read in [try read(Self.secret, key), try read(key, Self.secret)].compactMap(\.self) {
            let fault = try #require(read.faults.first)

            #expect(read.keys.count == 1 && read.skippedCount == 1 && read.faults.count == 1)
            #expect(fault.hasPrefix("key ") && fault.contains(says), "\(fault)")
            #expect(!fault.contains("AAAA") && !fault.contains("s3cret"))
        }
        #expect(try read(key, Self.secret)?.faults.first?.hasPrefix("key 1: ") == true)
    }

    @Test("a file that is no key set is a fault that does not quote it, and one that is missing is none")
    func files() throws {
        for text in ["", "[]", "{}", "<html>", #"{"keys":"s3cret"}"#, #"{"keys":null}"#] {
            #expect(throws: SettingsFault.self) { _ = try read(text: text) }
        }
        do { _ = try read(text: #"{"keys":"s3cret"}"#) } catch { #expect(!"\(error)".contains("s3cret")) }
        #expect(try KeyFile(path: "/nowhere/at/all.json").read() == nil)
        #expect(throws: SettingsFault.self) { try KeyFile(path: "/nowhere/at/all.json").readAtStart() }
    }

    @Test("16 keys are taken, and a 17th is left out")
    func bound() throws {
        let keys = (1...17).map { "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\(Self.x),\"kid\":\"\($0)\"}" }

        #expect(try read(text: "{\"keys\":[\(keys.dropLast().joined(separator: ","))]}")?.faults == [])
        let read = try #require(try read(text: "{\"keys\":[\(keys.joined(separator: ","))]}"))
        #expect(read.keys.map(\.id) == (1...16).map { "\($0)" })
        #expect(read.faults == ["key 17, kid 17: the server takes no more than 16 keys"])
    }
}
