package import StateStore

/// The logged-in user, as a state machine: it rejects an action that does not fit the current phase.
///
/// The state must not hold passwords or tokens, because every client can read it.
package struct Session: Domain {
    package enum State: StateType, Equatable {
        case loggedOut
        case loggingIn(user: String)
        /// `since` names the login's token by its ID, where there is one.
        case loggedIn(user: String, since: String?)
        case failed(user: String, reason: String)

        package init() { self = .loggedOut }
    }

    struct Login: ValidatedAction {
        static let type = "session/login"
        var user: String

        func validate() throws(Rejection) { try Session.check(user, "user", bytesMax: userBytesMax) }
    }

    /// Completes the login; `tokenID` is the ID of the token, never the token.
    struct Succeed: ValidatedAction {
        static let type = "session/succeed"
        var tokenID: String?

        func validate() throws(Rejection) {
            if let tokenID { try Session.check(tokenID, "tokenID", bytesMax: userBytesMax) }
        }
    }

    struct Fail: ValidatedAction {
        static let type = "session/fail"
        var reason: String

        func validate() throws(Rejection) { try Session.check(reason, "reason", bytesMax: reasonBytesMax) }
    }

    struct Logout: Action {
        static let type = "session/logout"
    }

    package init() {}

    package var reducer: some Reducer<State> {
        On(Login.self) { state, action throws(Rejection) in
            switch state {
            case .loggedOut, .failed: state = .loggingIn(user: action.user)
            case .loggingIn, .loggedIn: throw state.refusal(of: Login.type)
            }
        }
        On(Succeed.self) { state, action throws(Rejection) in
            guard case .loggingIn(let user) = state else { throw state.refusal(of: Succeed.type) }
            state = .loggedIn(user: user, since: action.tokenID)
        }
        On(Fail.self) { state, action throws(Rejection) in
            guard case .loggingIn(let user) = state else { throw state.refusal(of: Fail.type) }
            state = .failed(user: user, reason: action.reason)
        }
        On(Logout.self) { state, _ throws(Rejection) in
            guard state != .loggedOut else { throw state.refusal(of: Logout.type) }
            state = .loggedOut
        }
        On(StoreResume.self) { state, _ in
            if case .loggingIn(let user) = state { state = .failed(user: user, reason: "interrupted by a restart") }
        }
    }

    private static func check(_ text: String, _ field: String, bytesMax: Int) throws(Rejection) {
        guard (1...bytesMax).contains(text.utf8.count) else {
            throw Rejection(
                "session.\(field)", "\(field) has 1 to \(bytesMax) bytes", kind: .invalid, pointer: "/\(field)")
        }
    }
}

private let userBytesMax = 200
private let reasonBytesMax = 1000

extension Session.State {
    fileprivate enum Phase: String, Codable, CaseIterable {
        case loggedOut, loggingIn, loggedIn, failed
    }

    fileprivate var phase: Phase {
        switch self {
        case .loggedOut: .loggedOut
        case .loggingIn: .loggingIn
        case .loggedIn: .loggedIn
        case .failed: .failed
        }
    }

    fileprivate func refusal(of type: String) -> Rejection {
        Rejection("session.phase", "\(type) makes no sense while the session is \(phase.rawValue)")
    }
}

/// The JSON is one flat object, such as `{"phase":"failed","user":"ada","reason":"no such user"}`.
extension Session.State: Codable {
    private enum Key: String, CodingKey { case phase, user, since, reason }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: Key.self)
        try fields.encode(phase, forKey: .phase)
        switch self {
        case .loggedOut: break
        case .loggingIn(let user): try fields.encode(user, forKey: .user)
        case .loggedIn(let user, let since):
            try fields.encode(user, forKey: .user)
            try fields.encodeIfPresent(since, forKey: .since)
        case .failed(let user, let reason):
            try fields.encode(user, forKey: .user)
            try fields.encode(reason, forKey: .reason)
        }
    }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Key.self)
        self =
            switch try fields.decode(Phase.self, forKey: .phase) {
            case .loggedOut: .loggedOut
            case .loggingIn: .loggingIn(user: try fields.decode(String.self, forKey: .user))
            case .loggedIn:
                .loggedIn(
                    user: try fields.decode(String.self, forKey: .user),
                    since: try fields.decodeIfPresent(String.self, forKey: .since))
            case .failed:
                .failed(
                    user: try fields.decode(String.self, forKey: .user),
                    reason: try fields.decode(String.self, forKey: .reason))
            }
    }
}
