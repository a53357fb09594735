internal import FoundationEssentials
internal import StateJSON

/// A key with which the server verifies the signatures of JSON Web Tokens, and the one algorithm that it is used with.
struct VerificationKey: Sendable, Hashable {
    /// The algorithms of RFC 7518 and RFC 8037 that the server knows.
    enum Algorithm: String, Sendable {
        case hs256 = "HS256"
        case rs256 = "RS256"
        case es256 = "ES256"
        case edDSA = "EdDSA"
    }

    /// The key itself; texts are base64url, as in the file.
    enum Material: Sendable, Hashable {
        case secret([UInt8])
        case rsa(modulus: String, exponent: String)
        case p256(x: String, y: String)
        case ed25519(x: String)

        /// The only algorithm of the key.
        var algorithm: Algorithm {
            switch self {
            case .secret: .hs256
            case .rsa: .rs256
            case .p256: .es256
            case .ed25519: .edDSA
            }
        }
    }

    /// The name by which a token picks the key; nil for a key that has none.
    var id: String?
    var material: Material

    var algorithm: Algorithm { material.algorithm }
}

/// The file of the keys that sign JSON Web Tokens: a JSON Web Key Set (RFC 7517).
struct KeyFile: Sendable {
    let file: SharedFile
    /// A token that names no key is tried with every key of its algorithm, so their number is bounded.
    static let keysMax = 16

    init(path: String) { file = SharedFile(path: path, name: "key file") }

    var path: String { file.path }

    /// The keys of the file, and how many of its keys are for something else; nil where there is no file.
    ///
    /// - Throws: ``SettingsFault`` for a file that cannot be read, and for a key whose algorithm the file leaves open.
    func read() throws(SettingsFault) -> (keys: [VerificationKey], skippedCount: Int)? {
        try keys(in: try file.bytes())
    }

    /// The same of the bytes of the file.
    func keys(in bytes: Data?) throws(SettingsFault) -> (keys: [VerificationKey], skippedCount: Int)? {
        guard let bytes else { return nil }
        let set: JSONWebKeySet
        do {
            set = try JSON.decode(from: [UInt8](bytes), unknownFields: .ignored)
        } catch {
            // The error of a decoder can quote the file, which may have secrets.
            throw SettingsFault(
                description: "the key file \(path) cannot be read: it must be a JSON Web Key Set, {\"keys\":[...]}")
        }
        var keys: [VerificationKey] = []
        for (index, key) in set.keys.enumerated() {
            do {
                if let key = try key.verificationKey { keys.append(key) }
            } catch {
                let name = key.kid.map { ", kid \($0)" } ?? ""
                throw SettingsFault(
                    description: "the key file \(path) has a fault in key \(index + 1)\(name): \(error)")
            }
        }
        guard keys.count <= Self.keysMax else {
            throw SettingsFault(description: "the key file \(path) has more than \(Self.keysMax) keys for signatures")
        }
        return (keys, set.keys.count - keys.count)
    }
}

private struct JSONWebKeySet: Decodable {
    var keys: [JSONWebKey]
}

/// A key as the file has it.
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
        get throws(SettingsFault) {
            if let use, use != "sig" { return nil }
            if let operations, !operations.contains("verify") { return nil }
            guard let alg else { return try material().map { VerificationKey(id: kid, material: $0) } }
            guard let algorithm = VerificationKey.Algorithm(rawValue: alg) else { return nil }
            guard let material = try material(), material.algorithm == algorithm else {
                throw SettingsFault(description: "a key of this type cannot be used with the algorithm in alg")
            }
            return VerificationKey(id: kid, material: material)
        }
    }

    /// The parts of the key; nil for a type or a curve that no algorithm of the server has.
    private func material() throws(SettingsFault) -> VerificationKey.Material? {
        switch (kty, crv) {
        case ("oct", _):
            // Each hash has an algorithm, and each padding of RSA.
            guard alg != nil else { throw Self.ambiguous }
            guard let k, let secret = Data(base64URL: k.utf8) else { throw Self.incomplete }
            guard secret.count >= 32 else {
                throw SettingsFault(description: "a secret for HS256 has at least 32 bytes")
            }
            return .secret(Array(secret))
        case ("RSA", _):
            guard alg != nil else { throw Self.ambiguous }
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

    private static let ambiguous = SettingsFault(
        description: "it has no alg, and a key of this type could be used with several: add alg")
    private static let incomplete = SettingsFault(
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
