public import StateJSON

/// An action as plain data: what the store records of a typed action, or what a tool without the Swift types makes.
///
/// As JSON it is `{"type": ..., "payload": {...}, "isTypedAction": true}`; a POST to `/v1/actions` takes the first two.
public struct StandardAction: Codable, Sendable, Equatable {
    /// The type under which reducers handle it.
    public var type: String
    /// The fields, if any.
    public var payload: [String: JSONValue]?
    /// Whether a typed action was its source.
    public var isTypedAction: Bool

    /// Makes an action from its type and its fields.
    public init(type: String, payload: [String: JSONValue]? = nil, isTypedAction: Bool = false) {
        self.type = type
        self.payload = payload
        self.isTypedAction = isTypedAction
    }

    /// Makes the plain data of a typed action.
    ///
    /// - Throws: `EncodingError` for a number that JSON does not have, such as infinity.
    public init(_ action: any Action) throws {
        let value = try JSONValue(parsing: JSON.encode(action), depthMax: 1000)
        guard case .object(let object) = value else {
            throw EncodingError.invalidValue(
                action, .init(codingPath: [], debugDescription: "an action encodes as an object"))
        }
        let members = object.members.map { ($0.key, $0.value) }
        self.init(
            type: action.typeName,
            payload: members.isEmpty ? nil : Dictionary(members) { $1 }, isTypedAction: true)
    }

    /// Makes the typed action of this plain data.
    ///
    /// - Throws: ``Rejection`` of kind ``Rejection/Kind/invalid`` when the type or the payload does not fit.
    public func typed<Typed: Action>(as type: Typed.Type = Typed.self) throws(Rejection) -> Typed {
        guard self.type == Typed.type else {
            throw Rejection(
                "invalid-action", "\"\(self.type)\" is not \"\(Typed.type)\"", kind: .invalid, pointer: "/type")
        }
        let bytes = JSONValue.object(JSONObject(payload ?? [:])).text
        do throws(JSONFault) {
            return try JSON.decode(type, from: bytes)
        } catch {
            throw Self.misfit(error)
        }
    }

    private static func misfit(_ fault: JSONFault) -> Rejection {
        Rejection(
            "invalid-action", "\(fault.pointer): \(fault.detail)", kind: .invalid, pointer: "/payload\(fault.pointer)")
    }

    func typed(in catalogue: Catalogue) throws(Rejection) -> any Action {
        guard let found = catalogue.whole.entries[type] else {
            throw Rejection("unknown-action", "no reducer handles \"\(type)\"", kind: .invalid, pointer: "/type")
        }
        guard let declaration = found.actionType.declaration else { return try typed(as: found.actionType.type) }
        do throws(PayloadFaults) {
            return try declaration.action(payload.map { JSONValue.object(JSONObject($0)).text }, at: .root)
        } catch { throw Self.misfit(error.first) }
    }
}

extension JSONObject {
    fileprivate init(_ members: [String: JSONValue]) {
        self.init()
        for (key, value) in members.sorted(by: { $0.key < $1.key }) { self[key] = value }
    }
}

extension Store {
    /// Dispatches the typed action of plain data and returns after its turn.
    ///
    /// - Throws: ``DispatchError``; the state is then unchanged.
    @discardableResult
    public func dispatch(_ action: StandardAction) throws(DispatchError) -> Dispatched {
        try dispatch(typed(action))
    }

    /// Dispatches the typed action of plain data and returns after its turn.
    ///
    /// - Throws: ``DispatchError``; the state is then unchanged.
    @discardableResult
    public func dispatch(_ action: StandardAction) async throws(DispatchError) -> Dispatched {
        try await dispatch(typed(action))
    }

    private func typed(_ action: StandardAction) throws(DispatchError) -> any Action {
        do throws(Rejection) {
            return try action.typed(in: untyped.domain.catalogue)
        } catch {
            throw .rejected(error, index: 0)
        }
    }
}
