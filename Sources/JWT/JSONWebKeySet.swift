internal import FoundationEssentials
internal import StateJSON

/// A JSON Web Key Set (RFC 7517): the keys that sign.
package struct JSONWebKeySet: Sendable {
    /// Why a set or one of its keys cannot be used, in words without the keys.
    package struct Fault: Error, Sendable, CustomStringConvertible {
        package var description: String
    }

    package let keys: [VerificationKey]
    /// How many of its keys are for something else.
    package let skippedCount: Int
    /// A token that names no key is tried with every key of its algorithm, so their number is bounded.
    package static let keysMax = 16

    /// Reads a set, UTF-8 JSON.
    package init(_ bytes: [UInt8]) throws(Fault) {
        let set: Content
        do {
            set = try JSON.decode(from: bytes, unknownFields: .ignored)
        } catch {
            // The error of a decoder can quote the set, which may have secrets.
            throw Fault(description: "cannot be read: it must be a JSON Web Key Set, {\"keys\":[...]}")
        }
        var keys: [VerificationKey] = []
        for (index, key) in set.keys.enumerated() {
            do throws(Fault) {
                if let key = try key.verificationKey { keys.append(key) }
            } catch {
                let name = key.kid.map { ", kid \($0)" } ?? ""
                throw Fault(description: "has a fault in key \(index + 1)\(name): \(error)")
            }
        }
        guard keys.count <= Self.keysMax else {
            throw Fault(description: "has more than \(Self.keysMax) keys for signatures")
        }
        self.keys = keys
        skippedCount = set.keys.count - keys.count
    }

    private struct Content: Decodable {
        var keys: [JSONWebKey]
    }
}

private struct JSONWebKey: Decodable {
    var kty: String
    var alg: String?
    var use: String?
    var operations: [String]?
    var kid: String?
    var crv: String?
    var n: String?
    var e: String?
    var x: String?
    var y: String?
    var k: String?

    private enum CodingKeys: String, CodingKey {
        case kty, alg, use, kid, crv, n, e, x, y, k
        case operations = "key_ops"
    }

    /// The key, with the parts that a verification needs; nil for one of another use or algorithm.
    var verificationKey: VerificationKey? {
        get throws(JSONWebKeySet.Fault) {
            if let use, use != "sig" { return nil }
            if let operations, !operations.contains("verify") { return nil }
            guard let alg else { return try material().map { VerificationKey(id: kid, material: $0) } }
            guard let algorithm = VerificationKey.Algorithm(rawValue: alg) else { return nil }
            guard let material = try material(), material.algorithm == algorithm else {
                throw JSONWebKeySet.Fault(description: "a key of this type cannot be used with the algorithm in alg")
            }
            return VerificationKey(id: kid, material: material)
        }
    }

    /// The parts of the key; nil for a type or a curve that no algorithm of the server has.
    private func material() throws(JSONWebKeySet.Fault) -> VerificationKey.Material? {
        switch (kty, crv) {
        case ("oct", _):
            // Each hash has an algorithm, and a cipher has such keys, too.
            guard alg != nil else { throw Self.ambiguous }
            guard let k, let secret = Data(base64URL: k.utf8) else { throw Self.incomplete }
            guard secret.count >= 32 else {
                throw JSONWebKeySet.Fault(description: "a secret for HS256 has at least 32 bytes")
            }
            return .secret(Array(secret))
        case ("RSA", _):
            // Providers leave alg out (RFC 7517, section 4.4); the key then verifies RS256 and nothing else.
            guard let n, let e else { throw Self.incomplete }
            return .rsa(modulus: n, exponent: e)
        case ("EC", "P-256"):
            guard let x, let y else { throw Self.incomplete }
            return .p256(x: x, y: y)
        case ("OKP", "Ed25519"):
            guard let x else { throw Self.incomplete }
            return .ed25519(x: x)
        default: return nil
        }
    }

    private static let ambiguous = JSONWebKeySet.Fault(
        description: "it has no alg, and several algorithms can use a key of this type: add alg")
    private static let incomplete = JSONWebKeySet.Fault(
        description: "it lacks a part of the key, or has one that is not base64url")
}

extension Data {
    /// The bytes of base64url without padding (RFC 7515); nil for anything else.
    init?(base64URL text: some Collection<UInt8>) {
        guard !text.contains(where: { "+/=".utf8.contains($0) }) else { return nil }
        var base64 = text.map { byte in
            byte == UInt8(ascii: "-") ? UInt8(ascii: "+") : byte == UInt8(ascii: "_") ? UInt8(ascii: "/") : byte
        }
        base64 += repeatElement(UInt8(ascii: "="), count: (4 - base64.count % 4) % 4)
        self.init(base64Encoded: Data(base64))
    }
}
