package import StateJSON

/// The maker of an action from a payload: a Swift type, or a declaration with a name.
package enum ActionType: Sendable {
    case typed(any Action.Type)
    case declared(DeclaredAction.Declaration)

    /// The name under which clients dispatch it.
    package var name: String {
        switch self {
        case .typed(let type): type.type
        case .declared(let declaration): declaration.type
        }
    }

    /// Whether only the domain dispatches the action: see ``Action/isInternal``.
    package var isInternal: Bool {
        switch self {
        case .typed(let type): type.isInternal
        case .declared(let declaration): declaration.isInternal
        }
    }

    /// Whether a payload may be any JSON value, and not only an object.
    package var takesAnyValue: Bool {
        switch self {
        case .typed: false
        case .declared(let declaration): declaration.payload != nil
        }
    }

    /// Makes an action of its payload; one without fields may come without a payload.
    ///
    /// - Throws: ``PayloadFaults`` with the pointers into the payload's document.
    package func decode(payload: JSONNode?) throws(PayloadFaults) -> any Action {
        switch self {
        case .typed(let type):
            do throws(JSONFault) {
                return try type.decode(payload: payload)
            } catch { throw PayloadFaults([error]) }
        case .declared(let declaration): return try declaration.action(payload?.text, at: payload?.pointer ?? .root)
        }
    }

    var identity: ObjectIdentifier {
        switch self {
        case .typed(let type): ObjectIdentifier(type)
        case .declared(let declaration): ObjectIdentifier(declaration)
        }
    }
}

/// The faults of a payload, of which there is at least one.
package struct PayloadFaults: Error, Sendable {
    package let faults: [JSONFault]

    /// - Precondition: there is a fault.
    package init(_ faults: [JSONFault]) {
        precondition(!faults.isEmpty, "a refused payload has a fault")
        self.faults = faults
    }

    package var first: JSONFault { faults[0] }
}

/// An action that has a declaration instead of a Swift type.
package struct DeclaredAction: Action {
    /// The name and the form of such actions.
    package final class Declaration: Sendable {
        package let type: String
        /// The JSON Schema of the payload, or nil for any object or no payload.
        package let payload: JSONValue?
        /// Whether only the domain dispatches the action: see ``Action/isInternal``.
        package let isInternal: Bool
        private let faults: @Sendable ([UInt8]) -> [JSONFault]

        /// - Parameter faults: why a payload, as UTF-8 JSON, does not fit the schema.
        package init(
            _ type: String, payload: JSONValue? = nil, isInternal: Bool = false,
            faults: @escaping @Sendable ([UInt8]) -> [JSONFault] = { _ in [] }
        ) {
            (self.type, self.payload, self.isInternal, self.faults) = (type, payload, isInternal, faults)
        }

        func action(_ payload: [UInt8]?, at place: JSONPointer) throws(PayloadFaults) -> DeclaredAction {
            let payload = payload ?? Array("{}".utf8)
            let found = faults(payload)
            guard found.isEmpty else {
                throw PayloadFaults(
                    found.map {
                        JSONFault($0.kind, at: JSONPointer(place.tokens + $0.pointer.tokens), $0.detail)
                    })
            }
            return DeclaredAction(declaration: self, payload: payload)
        }
    }

    package let declaration: Declaration
    /// Compact UTF-8 JSON; the empty object where the client has sent no payload, because a record does not tell the two apart.
    package let payload: [UInt8]

    fileprivate init(declaration: Declaration, payload: [UInt8]) {
        (self.declaration, self.payload) = (declaration, payload)
    }

    /// Never succeeds: a declared action is made by its declaration.
    package init(from decoder: any Decoder) throws {
        throw DecodingError.dataCorrupted(
            .init(codingPath: decoder.codingPath, debugDescription: "a declared action is made by its declaration"))
    }

    /// Encodes the payload.
    package func encode(to encoder: any Encoder) throws {
        try JSONValue(parsing: payload, depthMax: 1000).encode(to: encoder)
    }
}

extension Action {
    /// The name of this action's type.
    package var typeName: String { declared?.declaration.type ?? Self.type }

    /// Whether its type is internal.
    package var isOfInternalType: Bool { declared?.declaration.isInternal ?? Self.isInternal }

    var declared: DeclaredAction? {
        // A cast would look for what the two types have in common.
        Self.self == DeclaredAction.self ? unsafeBitCast(self, to: DeclaredAction.self) : nil
    }

    var typeIdentity: ObjectIdentifier {
        declared.map { ObjectIdentifier($0.declaration) } ?? ObjectIdentifier(Self.self)
    }
}

extension ActionType {
    var description: String {
        switch self {
        case .typed(let type): "\(type)"
        case .declared(let declaration): "the action \(declaration.type)"
        }
    }
}
