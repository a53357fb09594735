public import StateJSON

/// An action as plain data: what is recorded of a typed one, or what a tool makes that knows no Swift types.
///
/// As JSON it is `{"type": ..., "payload": {...}, "isTypedAction": true}`; a POST to `/v1/actions` takes the first two.
public struct StandardAction: Codable, Sendable, Equatable {
    /// The type under which reducers handle it.
    public var type: String
    /// The fields; nil where there are none.
    public var payload: [String: JSONValue]?
    /// Whether it was made from a typed action.
    public var isTypedAction: Bool

    /// Makes an action.
    public init(type: String, payload: [String: JSONValue]? = nil, isTypedAction: Bool = false) {
        self.type = type
        self.payload = payload
        self.isTypedAction = isTypedAction
    }

    /// The plain data of a typed action.
    ///
    /// - Throws: `EncodingError` for values that JSON has no number for.
    public init(_ action: any Action) throws {
        let value = try JSONValue(parsing: JSON.encode(action), depthMax: 1000)
        guard case .object(let object) = value else {
            throw EncodingError.invalidValue(
                action, .init(codingPath: [], debugDescription: "an action encodes as an object"))
        }
        let members = object.members.map { ($0.key, $0.value) }
        self.init(
            type: Swift.type(of: action).type,
            payload: members.isEmpty ? nil : Dictionary(members) { $1 }, isTypedAction: true)
    }

    /// The typed action that this is the plain data of.
    ///
    /// - Throws: ``Rejection`` of kind ``Rejection/Kind/invalid`` when the payload does not fit.
    public func typed<Typed: Action>(as type: Typed.Type = Typed.self) throws(Rejection) -> Typed {
        guard self.type == Typed.type else {
            throw Rejection(
                "invalid-action", "\"\(self.type)\" is not \"\(Typed.type)\"", kind: .invalid, pointer: "/type")
        }
        let bytes = JSONValue.object(JSONObject(payload ?? [:])).text
        do throws(JSONFault) {
            return try JSON.decode(type, from: bytes)
        } catch {
            throw Rejection(
                "invalid-action", "\(error.pointer): \(error.detail)", kind: .invalid,
                pointer: "/payload\(error.pointer)"
            )
        }
    }

    /// The typed action among those of a catalogue.
    func typed(in catalogue: Catalogue) throws(Rejection) -> any Action {
        guard let found = catalogue.actions[type] else {
            throw Rejection("unknown-action", "no reducer handles \"\(type)\"", kind: .invalid, pointer: "/type")
        }
        return try typed(as: found)
    }
}

extension JSONObject {
    /// Members sorted by key.
    fileprivate init(_ members: [String: JSONValue]) {
        self.init()
        for (key, value) in members.sorted(by: { $0.key < $1.key }) { self[key] = value }
    }
}

extension Store {
    /// Dispatches an action that is plain data: the reducers of its type get the typed one.
    ///
    /// - Throws: ``DispatchError``: nothing has happened.
    @discardableResult
    public func dispatch(_ action: StandardAction) throws(DispatchError) -> Dispatched {
        try dispatch(typed(action))
    }

    /// Dispatches an action that is plain data: the reducers of its type get the typed one.
    ///
    /// - Throws: ``DispatchError``: nothing has happened.
    @discardableResult
    public func dispatch(_ action: StandardAction) async throws(DispatchError) -> Dispatched {
        try await dispatch(typed(action))
    }

    private func typed(_ action: StandardAction) throws(DispatchError) -> any Action {
        do throws(Rejection) {
            return try action.typed(in: model.catalogue)
        } catch {
            throw .rejected(error, index: 0)
        }
    }
}
