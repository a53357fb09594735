internal import CPage
internal import CXXHash
package import HTTPMessages
internal import HTTPTypes

/// The page by which a server shows itself: files inside the program, which use nothing but the public contract.
package enum Page {
    private struct File {
        var name: String
        var type: String
        var tag: String
        var bytes: [UInt8]
        var coded: [ContentCoding: [UInt8]]
    }

    private static let files: [File] = {
        var count = 0
        let first = storekeeper_page_files(&count)
        return UnsafeBufferPointer(start: first, count: count).map { file in
            let bytes = [UInt8](UnsafeRawBufferPointer(start: file.bytes, count: file.length))
            return Page.file(String(cString: file.name), bytes, in: ContentCoding.allCases)
        }
    }()

    private static func file(_ name: String, _ bytes: [UInt8], in codings: [ContentCoding]) -> File {
        let hash = String(storekeeper_short_hash(bytes, bytes.count), radix: 36)
        let coded = codings.compactMap { coding in coding.compressed(bytes).map { (coding, $0) } }
        return File(
            name: name, type: type(of: name), tag: hash, bytes: bytes, coded: Dictionary(uniqueKeysWithValues: coded))
    }

    private static func file(_ name: String) -> File? { files.first { $0.name.utf8.elementsEqual(name.utf8) } }

    /// A page of the documentation, compressed for each answer: most servers are never asked for most pages.
    private static func document(_ name: Substring, in coding: ContentCoding?) -> File? {
        var count = 0
        let documents = UnsafeBufferPointer(start: storekeeper_documents(&count), count: count)
        return documents.first { String(cString: $0.name).utf8.elementsEqual(name.utf8) }.map { document in
            file(String(name), Array(String(cString: document.text).utf8), in: coding.map { [$0] } ?? [])
        }
    }

    private static func type(of name: String) -> String {
        let type =
            switch name.split(separator: ".").last {
            case "css": "text/css"
            case "html": "text/html"
            case "js": "text/javascript"
            case "md": "text/markdown"
            case "py": "text/x-python"
            case "svg": "image/svg+xml"
            default: "text/plain"
            }
        return type + "; charset=utf-8"
    }

    /// The rights of the page in a browser: to load and ask this server only, and to run no code but its files.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        + "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

    package static var names: [String] { files.map(\.name) }

    package static func bytes(of name: String) -> [UInt8] { file(name)?.bytes ?? [] }

    /// The answer to a GET of a file, or of a page of the documentation below `docs/`; nil for an unknown name.
    package static func response(to request: Request, file name: String, in coding: ContentCoding?) -> Response? {
        let isDocument = name.hasPrefix("docs/")
        guard let file = isDocument ? document(name.dropFirst(5), in: coding) : file(name) else { return nil }
        var (bytes, tag) = (file.bytes, file.tag)
        var fields: HTTPFields = [
            .contentType: file.type, .cacheControl: "no-cache", .xContentTypeOptions: "nosniff",
            .vary: "Accept-Encoding",
        ]
        if let coding, let coded = file.coded[coding] {
            (bytes, tag) = (coded, tag + coding.tagSuffix)
            fields[.contentEncoding] = coding.rawValue
        }
        fields[.eTag] = "\"\(tag)\""
        if name.hasSuffix(".html") {
            fields[.contentSecurityPolicy] = policy
            for (name, value) in [("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin")] {
                HTTPField.Name(name).map { fields[$0] = value }
            }
        }
        let isKnown =
            switch request[.ifNoneMatch].flatMap({ EntityTagCondition($0) }) {
            case .any?: true
            case .tags(let tags)?: tags.contains { ContentCoding.plainTag($0.opaque) == file.tag }
            case nil: false
            }
        guard !isKnown else { return Response(status: .notModified, fields: fields) }
        return Response(status: .ok, fields: fields, body: bytes)
    }
}
