import CMicroHTTPD
import Glibc
import HTTPMessages
import HTTPTypes

/// The response of one connection to requests of which each is answered with the same template: libmicrohttpd's object
/// stays, and the transport writes the next body and the next values of the varying fields over the ones before.
///
/// That spares the allocation of the object, of its body, and of a name and a value for each field. The transport may
/// write while it has a request of the connection to answer: libmicrohttpd then has sent the former response, and has
/// given up its reference to it before it began to read this request (Libmicrohttpd page, 24). Only the loop thread uses
/// it.
final class RenewableResponse {
    let prepared: PreparedResponse
    /// The longest body: a connection keeps its response as long as it lives.
    static let bytesMax = 1024
    private let template: ResponseTemplate
    private let body: UnsafeMutableRawBufferPointer
    private let first: UnsafeMutableRawBufferPointer
    /// Nil for a template with one varying field.
    private let second: UnsafeMutableRawBufferPointer?

    /// Makes a response of a template, or returns nil where libmicrohttpd has no memory or refuses a field.
    init?(_ response: Response, _ filled: Response.Filled) {
        guard !response.body.isEmpty, let memory = malloc(response.body.count) else { return nil }
        let (template, values) = (filled.template, filled.values)
        body = UnsafeMutableRawBufferPointer(start: memory, count: response.body.count)
        body.copyBytes(from: response.body)
        // The response owns the memory, so that the body stays as long as libmicrohttpd refers to it.
        guard let handle = MHD_create_response_from_buffer(body.count, memory, .RESPMEM_MUST_FREE) else {
            free(memory)
            return nil
        }
        prepared = PreparedResponse(owning: handle, status: response.status)
        guard prepared.addFields(of: response), let first = Self.value(template.firstName, values.first, in: handle)
        else { return nil }
        self.template = template
        self.first = first
        if let name = template.secondName, let text = values.second {
            guard let second = Self.value(name, text, in: handle) else { return nil }
            self.second = second
        } else {
            second = nil
        }
    }

    /// Where libmicrohttpd has the value of a field; nil where it has none.
    private static func value(
        _ name: HTTPField.Name, _ text: ShortText, in handle: OpaquePointer
    ) -> UnsafeMutableRawBufferPointer? {
        guard let found = MHD_get_response_header(handle, name.rawName) else { return nil }
        return UnsafeMutableRawBufferPointer(start: UnsafeMutableRawPointer(mutating: found), count: text.count)
    }

    /// Writes another response over this one; returns false where it has another template, status or length.
    func renew(with response: Response, _ filled: Response.Filled) -> Bool {
        guard filled.template === template, response.body.count == body.count,
            filled.values.first.count == first.count, filled.values.second?.count == second?.count,
            prepared.has(response.status)
        else { return false }
        body.copyBytes(from: response.body)
        filled.values.first.withBytes { first.copyBytes(from: $0) }
        filled.values.second?.withBytes { second?.copyBytes(from: $0) }
        return true
    }
}
