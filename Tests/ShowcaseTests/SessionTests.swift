import Testing

@testable import Showcase
@testable import StateStore

extension Session.State {
    fileprivate init(_ phase: Session.Phase, since: String? = nil, reason: String? = nil) {
        self.init()
        (self.phase, user, self.since, self.reason) = (phase, "ada", since, reason)
    }
}

@Suite("Session")
struct SessionTests {
    @Test("each phase is one flat object")
    func flat() throws {
        let store = try Store(Session())
        #expect(try store.json() == #"{"phase":"loggedOut"}"#)
        try store.dispatch(Session.Login(user: "ada"))
        #expect(try store.json() == #"{"phase":"loggingIn","user":"ada"}"#)
        try store.dispatch(Session.Succeed())
        #expect(try store.json() == #"{"phase":"loggedIn","user":"ada"}"#)
        try store.dispatch(Session.Logout())
        try store.dispatch(Session.Login(user: "ada"))
        try store.dispatch(Session.Succeed(tokenID: "t1"))
        #expect(store.state == .init(.loggedIn, since: "t1"))
        try store.dispatch(Session.Logout())
        try store.dispatch(Session.Login(user: "ada"))
        try store.dispatch(Session.Fail(reason: "no"))
        #expect(store.state == .init(.failed, reason: "no"))
    }

    @Test("an action that makes no sense in a phase is a conflict and changes nothing")
    func conflicts() throws {
        let states: [(Session.State, [any Action])] = [
            (.init(), [Session.Succeed(), Session.Fail(reason: "no"), Session.Logout()]),
            (.init(.loggingIn), [Session.Login(user: "eve")]),
            (.init(.loggedIn), [Session.Login(user: "eve"), Session.Succeed(), Session.Fail(reason: "no")]),
            (.init(.failed, reason: "no"), [Session.Succeed(), Session.Fail(reason: "no")]),
        ]
        for (state, actions) in states {
            let store = try Store(Session(), state: state)
            for action in actions {
                let rejection = try store.rejection(of: action)
                #expect(rejection?.code == "session.phase" && rejection?.kind == .conflict)
                #expect(store.state == state)
            }
        }
    }

    @Test("a restart interrupts a login, and nothing else")
    func restart() throws {
        let loggedIn = Session.State(.loggedIn)

        #expect(try Session().resumed(.init(.loggingIn)) == .init(.failed, reason: "interrupted by a restart"))
        #expect(try Session().resumed(loggedIn) == loggedIn)
    }

    @Test("a user has 1 to 200 bytes", arguments: [(0, false), (1, true), (200, true), (201, false)])
    func users(count: Int, isTaken: Bool) throws {
        let store = try Store(Session())

        let rejection = try store.rejection(of: Session.Login(user: String(repeating: "a", count: count)))

        #expect((rejection == nil) == isTaken)
    }
}
