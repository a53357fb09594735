import Dispatch
import Glibc
import Synchronization
import Testing

@testable import StateStore

@Suite("The landing thread")
struct LandingThreadTests {
    @Test("functions run in order, on one thread that is not the caller's, also behind one that enqueues another")
    func order() {
        let thread = LandingThread()
        let seen = Mutex<[(number: Int, thread: UInt)]>([])
        let isDone = DispatchSemaphore(value: 0)
        let note = { @Sendable (number: Int) in
            seen.withLock { $0.append((number, UInt(pthread_self()))) }
            if number == 100 { isDone.signal() }
        }
        for number in 0..<100 {
            thread.run {
                note(number)
                if number == 99 { thread.run { note(100) } }
            }
        }
        isDone.wait()

        let found = seen.withLock { $0 }
        #expect(found.map(\.number) == Array(0...100))
        #expect(Set(found.map(\.thread)).count == 1)
        #expect(found.first?.thread != UInt(pthread_self()))
    }

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
