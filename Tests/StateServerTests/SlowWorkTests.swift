import Dispatch
import Glibc
import Synchronization
import Testing

@testable import StateServer
@testable import StateStore

@Suite("Slow work", .timeLimit(.minutes(5)))
struct SlowWorkTests {
    @Test("each client has its turn, however much another has asked for before")
    func fair() {
        let work = SlowWork(width: 1)
        let order = Mutex<[String]>([])
        let (begun, go, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        work.run(for: "a") {
            begun.signal()
            go.wait()
        }
        begun.wait()
        for client in ["a", "a", "a", "a", "b", "b", "c"] {
            work.run(for: client) {
                order.withLock { $0.append(client) }
                done.signal()
            }
        }
        go.signal()
        for _ in 0..<7 { done.wait() }

        #expect(order.withLock { $0 } == ["a", "b", "c", "a", "b", "a", "a"])
    }

    @Test("no more works run at once than there is width, and later work runs after a pause")
    func width() {
        let work = SlowWork(width: 2)
        let running = Mutex((now: 0, most: 0))
        for _ in 0..<3 {
            let done = DispatchSemaphore(value: 0)
            for number in 0..<20 {
                work.run(for: "\(number % 3)") {
                    running.withLock {
                        $0.now += 1
                        $0.most = max($0.most, $0.now)
                    }
                    usleep(1000)
                    running.withLock { $0.now -= 1 }
                    done.signal()
                }
            }
            for _ in 0..<20 { done.wait() }
        }

        #expect(running.withLock { $0.now } == 0)
        #expect(running.withLock { $0.most } == 2)
    }
}
