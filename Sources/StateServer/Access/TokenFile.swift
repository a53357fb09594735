internal import CCrypto
internal import FoundationEssentials
internal import Glibc
internal import StateHTTP

/// A bearer token: 256 random bits in text.
struct Token: Sendable {
    /// The text that a client sends.
    let text: String

    /// Makes a token of the system's random numbers.
    init() {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        let base64 = Data(bytes).base64EncodedString()
        text = "sk_" + base64.replacing("+", with: "-").replacing("/", with: "_").filter { $0 != "=" }
    }

    /// The SHA-256 of a token, which the server keeps in place of the token.
    ///
    /// A token has as much entropy as the hash, so the hash needs neither salt nor rounds.
    static func digest(_ text: String) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        let bytes = Array(text.utf8)
        guard EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha256(), nil) == 1 else {
            preconditionFailure("libcrypto has no SHA-256")
        }
        return digest
    }
}

/// The file of the tokens that a server knows, with the grant of each; it holds hashes only.
struct TokenFile: Sendable {
    /// A token in the file.
    struct Entry: Sendable, Codable, Equatable {
        /// The name by which an operator lists and revokes it.
        var id: String
        /// Who holds it.
        var subject: String
        /// The SHA-256 of the token, in hexadecimal behind `sha256:`.
        var hash: String
        /// When it was made, in RFC 3339.
        var created: String
        var grant: Grant
    }

    private struct Content: Codable {
        var tokens: [Entry]
    }

    let path: String

    /// The entries; nil where there is no file.
    ///
    /// - Throws: ``SettingsFault`` for a file that cannot be read.
    func read() throws(SettingsFault) -> [Entry]? {
        guard access(path, F_OK) == 0 else { return nil }
        let content: Content
        do {
            content = try JSONDecoder().decode(Content.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        } catch let error as DecodingError {
            throw SettingsFault(description: "the token file \(path) cannot be read as JSON: \(error)")
        } catch {
            throw SettingsFault(description: "the token file \(path) cannot be read: \(error)")
        }
        for entry in content.tokens {
            if let fault = entry.grant.fault ?? Self.fault(inSubject: entry.subject) {
                throw SettingsFault(description: "the token file \(path) has a fault in \(entry.id): \(fault)")
            }
        }
        return content.tokens
    }

    /// Writes the file whole or not at all, for the user of this process alone.
    ///
    /// - Throws: ``SettingsFault`` where the file cannot be written.
    func write(_ entries: [Entry]) throws(SettingsFault) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let trial = path + ".new"
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
        mkdir(directory, 0o700)
        do {
            let bytes = try encoder.encode(Content(tokens: entries)) + Data("\n".utf8)
            let file = open(trial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            guard file >= 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
            defer { close(file) }
            let written = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            guard written == bytes.count, fsync(file) == 0, rename(trial, path) == 0 else {
                throw POSIXError(.init(rawValue: errno) ?? .EIO)
            }
        } catch {
            throw SettingsFault(description: "the token file \(path) cannot be written: \(error)")
        }
    }

    /// What identifies a version of the file; nil where there is none.
    var stamp: [Int]? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return [
            Int(status.st_ino), Int(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
        ]
    }

    /// What is wrong with the name of a subject; nil for a good one.
    static func fault(inSubject subject: String) -> String? {
        (1...255).contains(subject.utf8.count)
            && subject.unicodeScalars.allSatisfy { scalar in
                switch scalar.properties.generalCategory {
                case .control, .spaceSeparator, .lineSeparator, .paragraphSeparator: false
                default: true
                }
            }
            ? nil : "a subject has 1 to 255 bytes, without spaces and control characters"
    }
}

extension TokenFile.Entry {
    /// Makes an entry for a token.
    init(_ token: Token, subject: String, _ grant: Grant) {
        let digest = Token.digest(token.text)
        self.init(
            id: "t" + digest.prefix(5).map(TokenFile.hexadecimal).joined(), subject: subject,
            hash: "sha256:" + digest.map(TokenFile.hexadecimal).joined(), created: Date().formatted(.iso8601),
            grant: grant)
    }

    /// The bytes of the hash; nil where it is not spelled as one.
    var digest: [UInt8]? {
        guard hash.hasPrefix("sha256:") else { return nil }
        let digits = Array(hash.utf8.dropFirst(7))
        guard digits.count == 64 else { return nil }
        let bytes = stride(from: 0, to: 64, by: 2).map {
            UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
        }
        return bytes.contains(nil) ? nil : bytes.compactMap(\.self)
    }
}

extension TokenFile {
    static func hexadecimal(_ byte: UInt8) -> String {
        let text = String(byte, radix: 16)
        return text.count == 2 ? text : "0" + text
    }
}
