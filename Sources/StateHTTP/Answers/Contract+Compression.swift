package import HTTPMessages
internal import HTTPTypes
package import StateStore

/// Answers in a content coding.
///
/// A compressed value has an entity tag of its own: the tag of the value and the name of the coding. A condition takes any of
/// a value's tags, because they all name the same content.
extension Contract {
    /// The content coding of the answer to a request; nil for none.
    package func coding(of request: Request) -> ContentCoding? {
        guard limits.compressedBytesMin > 0, let field = request[.acceptEncoding] else { return nil }
        return .preferred(field)
    }

    func isCompressed(_ request: ReadRequest, _ encoded: Encoded) -> Bool {
        request.coding != nil && request.style == .compact && encoded.json.count >= limits.compressedBytesMin
    }

    /// Whether the answer with a value has to compress it first.
    package func mustCompress(_ request: ReadRequest, _ reading: Reading) -> Bool {
        guard let encoded = reading.encoded, let coding = request.coding, isCompressed(request, encoded) else {
            return false
        }
        return !encoded.has(coding.rawValue)
    }

    func compressed(_ response: Response, _ coding: ContentCoding?) -> Response {
        guard let coding, response.body.count >= limits.compressedBytesMin, let body = coding.compressed(response.body)
        else { return response }
        var response = response
        response.body = body
        response.fields[.contentEncoding] = coding.rawValue
        response.fields[.vary] = "Accept-Encoding"
        return response
    }
}
