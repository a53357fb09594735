package import StateStore

/// The logged-in user, as a state machine: it rejects an action that does not fit the current phase.
///
/// The state must not hold passwords or tokens, because every client can read it.
package struct Session: Domain {
    package struct State: StateType, Codable, Equatable {
        var phase = Phase.loggedOut
        var user: String?
        /// Names the login's token by its ID, where there is one.
        var since: String?
        /// Why the login has failed.
        var reason: String?

        package init() {}

        /// A phase has its own members only, and all of them.
        package init(from decoder: any Decoder) throws {
            let fields = try decoder.container(keyedBy: CodingKeys.self)
            phase = try fields.decode(Phase.self, forKey: .phase)
            user = phase == .loggedOut ? nil : try fields.decode(String.self, forKey: .user)
            since = phase == .loggedIn ? try fields.decodeIfPresent(String.self, forKey: .since) : nil
            reason = phase == .failed ? try fields.decode(String.self, forKey: .reason) : nil
        }
    }

    enum Phase: String, Codable, CaseIterable { case loggedOut, loggingIn, loggedIn, failed }

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
            try state.require(.loggedOut, .failed, for: Login.type)
            state = State()
            state.phase = .loggingIn
            state.user = action.user
        }
        On(Succeed.self) { state, action throws(Rejection) in
            try state.require(.loggingIn, for: Succeed.type)
            state.phase = .loggedIn
            state.since = action.tokenID
        }
        On(Fail.self) { state, action throws(Rejection) in
            try state.require(.loggingIn, for: Fail.type)
            state.fail(action.reason)
        }
        On(Logout.self) { state, _ throws(Rejection) in
            try state.require(.loggingIn, .loggedIn, .failed, for: Logout.type)
            state = State()
        }
        On(StoreResume.self) { state, _ in
            if state.phase == .loggingIn { state.fail("interrupted by a restart") }
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
    fileprivate func require(_ phases: Session.Phase..., for type: String) throws(Rejection) {
        guard phases.contains(phase) else {
            throw Rejection("session.phase", "\(type) makes no sense while the session is \(phase.rawValue)")
        }
    }

    fileprivate mutating func fail(_ reason: String) {
        phase = .failed
        self.reason = reason
    }
}
