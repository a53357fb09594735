import HTTPMessages
import HTTPTypes
import StateHTTP
import Testing

@testable import StateStore
@testable import TestSupport

@Suite("Forks of a history that the retention shortens")
struct ForkTests {
    @Test("a fork whose commits are dropped while it is made is refused, and not made of what is left")
    func dropped() throws {
        let domain = try CompiledDomain(Demo())
        var setting = Stage.Setting()
        setting.version = 5
        // The state at version 0 is there, and no commit behind it any more.
        let stage = try Stage(setting, journal: MemoryJournal(domain.bytes(of: domain.initial)))

        let answer = stage.receive(
            Request(
                method: .post, target: "/v1/forks", fields: [.contentType: "application/json"],
                body: Array(#"{"from":"storekeeperdemoa.0"}"#.utf8))
        ).answer

        #expect(answer?.status == .gone)
    }
}
