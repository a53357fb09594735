import Dispatch
import Glibc
import Synchronization
import Testing

@testable import StateStore

@Suite("The landing thread")
struct LandingThreadTests {
    @Test("the thread ends with its owner, behind what was enqueued")
    func end() async throws {
        final class Held: Sendable {}
        weak var held: Held?
        let count = Mutex(0)
        do {
            let thread = LandingThread()
            let value = Held()
            held = value
            for _ in 0..<10 {
                thread.run { [value] in
                    withExtendedLifetime(value) { count.withLock { $0 += 1 } }
                }
            }
        }
        for _ in 0..<500 where held != nil { try await Task.sleep(for: .milliseconds(10)) }
        #expect(held == nil)
        #expect(count.withLock(\.self) == 10)
    }
}
