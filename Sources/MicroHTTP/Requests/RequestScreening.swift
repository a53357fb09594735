import HTTPTypes

/// How the body of a request is delimited.
enum BodyFraming: Equatable {
    case none
    case declared(bytes: Int)
    case chunked
}

/// The checks against request smuggling: a proxy and this server must find the same requests in a connection.
///
/// A reader may use the first of several lengths or the last, a transfer coding or a length. Where a proxy decides otherwise
/// than this server, an attacker can hide a request in the body of another. The server refuses a head that allows two
/// readings, by RFC 9112, sections 3.2 and 6.
enum RequestScreening {
    /// Checks the lines of a head whose Content-Length, if it is a number, has been taken out.
    ///
    /// The head cache keeps lines that pass, for requests with any length: nothing passes because of its own.
    ///
    /// - Parameter declared: that number.
    /// - Throws: the ``TransportFault`` for which the server refuses the request.
    static func screen(
        _ fields: [HTTPField], declared: Int?, version: ProtocolVersion, bodyBytesMax: Int
    ) throws(TransportFault) {
        var hosts = 0
        var length: String?
        var coding: String?
        for field in fields {
            // The comparison of the lengths spares almost every field the comparison of strings.
            let name = field.name.canonicalName
            switch name.utf8.count {
            case 4 where name == "host":
                hosts += 1
            case 14 where name == "content-length":
                guard length == nil, declared == nil else {
                    throw .malformed("expected one Content-Length, found several")
                }
                length = field.value
            case 17 where name == "transfer-encoding":
                guard coding == nil else { throw .malformed("expected one Transfer-Encoding, found several") }
                coding = field.value
            default:
                break
            }
        }
        guard hosts <= 1 else { throw .malformed("expected one Host, found several") }
        guard hosts == 1 || version == .http10 else { throw .malformed("expected a Host, found none") }

        if let coding {
            guard version == .http11 else { throw .malformed("HTTP/1.0 has no Transfer-Encoding") }
            guard length == nil, declared == nil else { throw Self.lengthAndCoding }
            guard coding.lowercased() == "chunked" else { throw .unsupportedTransferCoding }
        }
        if let length { try refuse(length, bodyBytesMax: bodyBytesMax) }
    }

    /// Returns how the body is delimited.
    ///
    /// - Throws: the ``TransportFault`` for which the server refuses the request.
    static func framing(
        isChunked: Bool, declared: Int?, bodyBytesMax: Int
    ) throws(TransportFault) -> BodyFraming {
        if isChunked {
            guard declared == nil else { throw lengthAndCoding }
            return .chunked
        }
        guard let declared, declared > 0 else { return .none }
        guard declared <= bodyBytesMax else { throw .bodyTooLarge(bytesMax: bodyBytesMax) }
        return .declared(bytes: declared)
    }

    private static var lengthAndCoding: TransportFault {
        .malformed("expected Content-Length or Transfer-Encoding, found both")
    }

    /// Refuses a length that is no number, or one with too many digits.
    private static func refuse(_ length: String, bodyBytesMax: Int) throws(TransportFault) {
        let digits = length.utf8
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw .malformed("Content-Length is not a number")
        }
        throw .bodyTooLarge(bytesMax: bodyBytesMax)
    }
}
