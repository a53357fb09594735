import CMicroHTTPD
import Glibc
import HTTPMessages
import HTTPTypes

/// The response of one connection to requests of which each is answered with the same template: libmicrohttpd's object
/// stays, and the transport writes the next body and the next value of the varying field over the ones before.
///
/// That spares the allocation of the object, of its body, and of a name and a value for each field. The transport may
/// write while it has a request of the connection to answer: libmicrohttpd then has sent the former response, and has
/// given up its reference to it before it began to read this request (Libmicrohttpd page, 24). Only the loop thread uses
/// it.
final class RenewableResponse {
    let prepared: PreparedResponse
    private let template: ResponseTemplate
    private let body: UnsafeMutableRawBufferPointer
    private let value: UnsafeMutableRawBufferPointer

    /// Makes a response of a template, or returns nil where libmicrohttpd has no memory or refuses a field.
    init?(_ response: Response) {
        guard let (template, text) = response.filled, !text.isEmpty, !response.body.isEmpty,
            let memory = malloc(response.body.count)
        else { return nil }
        body = UnsafeMutableRawBufferPointer(start: memory, count: response.body.count)
        body.copyBytes(from: response.body)
        // The response owns the memory, so that the body stays as long as libmicrohttpd refers to it.
        guard let handle = MHD_create_response_from_buffer(body.count, memory, .RESPMEM_MUST_FREE) else {
            free(memory)
            return nil
        }
        prepared = PreparedResponse(owning: handle, status: response.status)
        guard prepared.addFields(of: response),
            let found = MHD_get_response_header(handle, template.varyingName.rawName)
        else { return nil }
        self.template = template
        value = UnsafeMutableRawBufferPointer(start: UnsafeMutableRawPointer(mutating: found), count: text.utf8.count)
    }

    /// Writes another response over this one; returns false where it has another template, status or length.
    func renew(with response: Response) -> Bool {
        guard let (template, text) = response.filled, template === self.template, response.body.count == body.count,
            text.utf8.count == value.count, prepared.has(response.status)
        else { return false }
        body.copyBytes(from: response.body)
        value.copyBytes(from: text.utf8)
        return true
    }
}
