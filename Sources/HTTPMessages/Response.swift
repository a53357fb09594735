package import HTTPTypes

package struct Response: Sendable {
    package var status: HTTPResponse.Status
    /// The bytes of the body, which the transport does not send with 204 and 304 and in answer to HEAD.
    package var body: [UInt8]
    package var endsConnection = false
    package var problems: [String: Int] = [:]
    private var head: Head

    private enum Head {
        case own(HTTPFields)
        case filled(ResponseTemplate, ShortText, ShortText?)
    }

    package init(status: HTTPResponse.Status, fields: HTTPFields = [:], body: [UInt8] = []) {
        self.status = status
        self.body = body
        head = .own(fields)
    }

    /// The texts are the values of the fields that vary, in order.
    package init(_ template: ResponseTemplate, _ first: ShortText, _ second: ShortText? = nil, body: [UInt8]) {
        status = .ok
        self.body = body
        head = .filled(template, first, second)
    }

    /// The header fields, to which the transport adds `Content-Length`, `Date` and `Connection`.
    package var fields: HTTPFields {
        get {
            switch head {
            case .own(let fields): fields
            case .filled(let template, let first, let second): template.fields(varying: first, second)
            }
        }
        set { head = .own(newValue) }
    }

    /// Calls a function with each field as texts of C; an empty field and a missing one mean the same.
    package func visitFields(_ body: (UnsafePointer<CChar>, UnsafePointer<CChar>) -> Void) {
        switch head {
        case .own(let fields):
            for field in fields where !field.value.isEmpty {
                field.name.rawName.withCString { name in field.value.withCString { body(name, $0) } }
            }
        case .filled(let template, let first, let second):
            var varying = first
            for (name, value) in template.texts {
                if let value {
                    body(name, value)
                } else {
                    varying.withCString { body(name, $0) }
                    varying = second ?? varying
                }
            }
        }
    }
}

/// The header fields of responses that differ in the values of one or two fields only: the others are texts of C once.
package final class ResponseTemplate: Sendable {
    package enum Part: Sendable {
        case fixed(HTTPField)
        case varying(HTTPField.Name)
    }

    private let parts: [Part]
    /// The names and the fixed values as texts of C, which live as long as the template.
    ///
    /// unsafe: nobody changes them.
    fileprivate nonisolated(unsafe) let texts: [(name: UnsafePointer<CChar>, value: UnsafePointer<CChar>?)]

    /// The fields keep their order; one or two of them vary.
    package init(_ parts: [Part]) {
        self.parts = parts
        texts = parts.map { part in
            switch part {
            case .fixed(let field): (Self.copy(field.name.rawName), Self.copy(field.value))
            case .varying(let name): (Self.copy(name.rawName), nil)
            }
        }
        precondition((1...2).contains(texts.count { $0.value == nil }), "one or two fields of a template vary")
    }

    deinit {
        for text in texts {
            text.name.deallocate()
            text.value?.deallocate()
        }
    }

    private static func copy(_ text: String) -> UnsafePointer<CChar> {
        let bytes = text.utf8CString
        let copy = UnsafeMutableBufferPointer<CChar>.allocate(capacity: bytes.count)
        _ = copy.initialize(from: bytes)
        return UnsafePointer(copy.baseAddress.unsafelyUnwrapped)
    }

    fileprivate func fields(varying first: ShortText, _ second: ShortText?) -> HTTPFields {
        var rest = [first.string, second?.string ?? ""][...]
        return HTTPFields(
            parts.map { part in
                switch part {
                case .fixed(let field): field
                case .varying(let name): HTTPField(name: name, value: rest.removeFirst())
                }
            })
    }
}

/// A text of at most 39 bytes of ASCII, which lies in the value itself: copies count no references.
package struct ShortText: Sendable {
    package static let countMax = 39

    /// The bytes, with a zero behind them.
    private var storage: (UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0)
    package let count: Int

    /// Takes a function that writes ASCII to a buffer of ``countMax`` bytes, and returns how many.
    package init(_ write: (UnsafeMutableBufferPointer<UInt8>) -> Int) {
        count = withUnsafeMutableBytes(of: &storage) { write($0.assumingMemoryBound(to: UInt8.self)) }
        precondition((0...Self.countMax).contains(count), "a short text has at most 39 bytes")
    }

    package func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        withUnsafeBytes(of: storage) { body(UnsafeBufferPointer(rebasing: $0.bindMemory(to: UInt8.self)[..<count])) }
    }

    package func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
        // A value has an address.
        withUnsafeBytes(of: storage) { body($0.assumingMemoryBound(to: CChar.self).baseAddress.unsafelyUnwrapped) }
    }

    package var string: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}
