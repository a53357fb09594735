internal import CSignatures
internal import StateJSON

struct JSONWebKeySet: Sendable {
    let keys: [VerificationKey]
    /// The number of keys that are left out: those for something else, and those with faults.
    let skippedCount: Int
    let faults: [String]
    /// A token that names no key is tried with every key of its algorithm, so their number is bounded.
    static let keysMax = 16

    /// The fault of the set, and those of its keys, are words without the keys.
    init(_ bytes: [UInt8]) throws(SettingsFault) {
        let entries: [Entry]
        do {
            entries = try JSON.decode(Content.self, from: bytes, ignoresUnknown: true).keys
        } catch {
            // The error of a decoder can quote the set, which may have secrets.
            throw SettingsFault("cannot be read: it must be a JSON Web Key Set, {\"keys\":[...]}")
        }
        var (keys, faults): ([VerificationKey], [String]) = ([], [])
        for (index, entry) in entries.enumerated() {
            do throws(SettingsFault) {
                guard let key = entry.key else {
                    throw SettingsFault("it has no kty, or a member of another type than RFC 7517 says")
                }
                guard let key = try key.verificationKey else { continue }
                guard keys.count < Self.keysMax else {
                    throw SettingsFault("the server takes no more than \(Self.keysMax) keys")
                }
                keys.append(key)
            } catch {
                let name = entry.key?.kid.map { ", kid \($0)" } ?? ""
                faults.append("key \(index + 1)\(name): \(error)")
            }
        }
        (self.keys, self.faults) = (keys, faults)
        skippedCount = entries.count - keys.count
    }

    private struct Content: Decodable {
        var keys: [Entry]
    }

    private struct Entry: Decodable {
        /// The key; nil where a member has another type: it spoils no other key.
        var key: JSONWebKey?

        init(from decoder: any Decoder) { key = try? JSONWebKey(from: decoder) }
    }
}

private struct JSONWebKey: Decodable {
    var kty: String
    var alg: String?
    var use: String?
    var key_ops: [String]?
    var kid: String?
    var crv: String?
    var n: String?
    var e: String?
    var x: String?
    var y: String?
    var k: String?
    var x5c: JSONValue?

    /// Nil for a key of another use or algorithm.
    var verificationKey: VerificationKey? {
        get throws(SettingsFault) {
            if let use, use != "sig" { return nil }
            if let key_ops, !key_ops.contains("verify") { return nil }
            let stated = alg.map { VerificationKey.Algorithm(name: $0) }
            if case .some(nil) = stated { return nil }
            let key = try ofType()
            if let stated, key?.algorithm != stated {
                throw SettingsFault("a key of this type cannot be used with the algorithm in alg")
            }
            guard let key else { return nil }
            guard key.isGood else {
                let sizes = key.algorithm == .rs256 ? "; an RSA key has at least 2048 bits, and at most 8192" : ""
                throw SettingsFault("it is not a key for \(key.algorithm.rawValue)\(sizes)")
            }
            return key
        }
    }

    /// Nil for a type or a curve that no algorithm of the server has; the key may be a bad one.
    private func ofType() throws(SettingsFault) -> VerificationKey? {
        switch (kty, crv) {
        case ("oct", _):
            // Each hash has an algorithm, and a cipher has such keys, too.
            guard alg != nil else {
                throw SettingsFault("it has no alg, and several algorithms can use a key of this type: add alg")
            }
            let secret = try bytes(k)
            guard secret.count >= 32 else {
                throw SettingsFault("a secret for HS256 has at least 32 bytes")
            }
            return VerificationKey(id: kid, algorithm: .hs256, first: secret)
        case ("RSA", _):
            // Providers leave alg out (RFC 7517, section 4.4); the key then verifies RS256 and nothing else.
            return VerificationKey(id: kid, algorithm: .rs256, first: try bytes(n), second: try bytes(e))
        case ("EC", "P-256"):
            return VerificationKey(id: kid, algorithm: .es256, first: try bytes(x), second: try bytes(y))
        case ("OKP", "Ed25519"): return VerificationKey(id: kid, algorithm: .edDSA, first: try bytes(x))
        default: return nil
        }
    }

    private func bytes(_ text: String?) throws(SettingsFault) -> [UInt8] {
        if text == nil, x5c != nil {
            throw SettingsFault("it has x5c without the members of the key, and the server reads no certificate")
        }
        guard let text, let bytes = Base64URL.bytes(Array(text.utf8)) else {
            throw SettingsFault("it lacks a part of the key, or has one that is not base64url")
        }
        return bytes
    }
}

struct VerificationKey: Sendable, Hashable {
    enum Algorithm: String, Sendable {
        case hs256 = "HS256"
        case rs256 = "RS256"
        case es256 = "ES256"
        /// With Ed25519 only, which is its other name (RFC 9864).
        case edDSA = "EdDSA"

        static let names = "HS256, RS256, ES256, EdDSA or Ed25519"

        init?(name: String) { self.init(rawValue: name == "Ed25519" ? "EdDSA" : name) }

        fileprivate var ofShim: storekeeper_algorithm {
            switch self {
            case .hs256: STOREKEEPER_HS256
            case .rs256: STOREKEEPER_RS256
            case .es256: STOREKEEPER_ES256
            case .edDSA: STOREKEEPER_ED25519
            }
        }
    }

    var id: String?
    var algorithm: Algorithm
    /// The secret, the modulus, or `x`.
    var first: [UInt8]
    /// The exponent, or `y`; empty for the other algorithms.
    var second: [UInt8] = []

    var isGood: Bool { storekeeper_key_is_good(algorithm.ofShim, first, first.count, second, second.count) }

    /// Whether the key has signed a message; some 50 microseconds.
    func verifies(_ message: [UInt8], _ signature: [UInt8]) -> Bool {
        storekeeper_signature_is_good(
            algorithm.ofShim, first, first.count, second, second.count, message, message.count, signature,
            signature.count)
    }
}
