import CMicroHTTPD
import HTTPMessages

/// The head of a request as it was on the wire, in memory that the next head takes.
struct ReceivedHead: ~Copyable {
    private static let bytesMax = 32 << 10

    /// The result of the walk over the fields of libmicrohttpd.
    let head = UnsafeMutablePointer<MicroHTTPDHead>.allocate(capacity: 1)

    init() {
        head.initialize(to: MicroHTTPDHead())
        head.pointee.bytes = .allocate(capacity: Self.bytesMax)
        head.pointee.capacity = Self.bytesMax
    }

    deinit {
        head.pointee.bytes.deallocate()
        head.deallocate()
    }

    /// The request line, and a line for each field that is not the request's own.
    var lines: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: head.pointee.bytes, count: head.pointee.count)
    }

    /// How many bytes and fields the whole head has.
    var size: Int { head.pointee.size }
    var fieldsCount: Int { head.pointee.fields_count }

    /// The value of Content-Length; nil without one, and for one that the lines have, because it is none.
    var declaredBytes: Int? { head.pointee.length < 0 ? nil : Int(head.pointee.length) }

    /// The fields that are the request's own; nil without one.
    var own: OwnFields? {
        let count = head.pointee.own_count
        guard count > 0 else { return nil }
        return withUnsafeBytes(of: &head.pointee.own) { bytes in
            OwnFields(
                bytes.bindMemory(to: MicroHTTPDOwnValue.self).prefix(count).map { value in
                    let bytes = UnsafeRawBufferPointer(start: value.value, count: value.count)
                    return (Self.name(of: value.field), String(decoding: bytes, as: UTF8.self))
                })
        }
    }

    private static func name(of field: MicroHTTPDOwnField) -> RequestField {
        switch field {
        case MICROHTTPD_IDEMPOTENCY_KEY: .idempotencyKey
        case MICROHTTPD_IF_MATCH: .ifMatch
        case MICROHTTPD_IF_NONE_MATCH: .ifNoneMatch
        case MICROHTTPD_LAST_EVENT_ID: .lastEventID
        case MICROHTTPD_TRACEPARENT: .traceParent
        case MICROHTTPD_X_REQUEST_ID: .requestID
        default: preconditionFailure("a length and what nobody reads are not kept")
        }
    }
}
