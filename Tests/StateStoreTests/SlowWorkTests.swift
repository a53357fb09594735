import Dispatch
import Glibc
import Synchronization
import Testing
import Threads

@testable import StateStore

@Suite("Turns of clients")
struct ClientTurnsTests {
    private func drained(_ turns: ClientTurns<String>) -> [String] {
        var (turns, order) = (turns, [String]())
        while let next = turns.next() { order.append(next) }
        return order
    }

    private func turns(_ works: [(client: String, size: Int)]) -> ClientTurns<String> {
        var turns = ClientTurns<String>()
        for (index, work) in works.enumerated() {
            turns.append("\(work.client)\(index)", of: work.client, size: work.size)
        }
        return turns
    }

    @Test("each client has its turn, however much another has asked for before")
    func clients() {
        let turns = turns(["a", "a", "a", "b", "b", "c"].map { ($0, 0) })

        #expect(drained(turns) == ["a0", "b3", "c5", "a1", "b4", "a2"])
    }

    @Test("of one client the small works come first, and a large one is overtaken by so many only")
    func sizes() {
        #expect(drained(turns([("a", 800), ("a", 30), ("a", 0), ("a", 0)])) == ["a2", "a3", "a1", "a0"])
        #expect(drained(turns([("a", 2)] + Array(repeating: ("a", 0), count: 4))) == ["a1", "a0", "a2", "a3", "a4"])
    }

    @Test("a size of any number is no trap", arguments: [Int.max, .min, -1])
    func extremes(size: Int) {
        #expect(drained(turns([("a", 0), ("a", size), ("a", size)])).count == 3)
    }

    @Test("a client that is favoured has the next turn, every second one at most")
    func favour() {
        var turns = turns((0..<12).map { (["a", "b", "c", "d"][$0 / 3], 0) })
        var order: [String] = []
        while turns.count > 6 {
            turns.favour("d")
            if let next = turns.next() { order.append(next) }
        }

        #expect(order == ["d9", "a0", "d10", "b3", "d11", "c6"])
    }

    @Test("a client that may have no turn is passed over, and keeps its place")
    func passedOver() {
        var turns = turns([("a", 0), ("b", 0), ("a", 0), ("c", 0)])

        #expect(turns.next { $0 != "a" }?.work == "b1")
        #expect(turns.next { $0 == "x" } == nil)
        #expect(turns.hasNext { $0 == "c" } && !turns.hasNext { $0 == "b" })
        #expect(drained(turns) == ["a0", "c3", "a2"])
    }
}

@Suite("Slow work", .timeLimit(.minutes(5)))
struct SlowWorkTests {
    @Test("work of one client that takes for ever holds none of another's")
    func beside() {
        let (work, gate, done) = (SlowWork(width: 1), Gate(), DispatchSemaphore(value: 0))
        for _ in 0..<3 { work.run(for: "a", gate.hold) }
        gate.waitForBegin()

        work.run(for: "b") { done.signal() }

        #expect(done.wait(timeout: .now() + .seconds(60)) == .success)
        for _ in 0..<3 { gate.open() }
    }

    @Test("where all threads are busy, the next one takes turns by client, small works first")
    func fair() {
        let (work, done) = (SlowWork(width: 1), DispatchSemaphore(value: 0))
        let order = Mutex<[String]>([])
        let gates = ["x": Gate(), "y": Gate()]
        for (client, gate) in gates {
            work.run(for: client, gate.hold)
            gate.waitForBegin()
        }
        let works: [(String, Int, String)] = [
            ("a", 900, "large"), ("a", 1, "small"), ("b", 1, "b"), ("a", 2, "middle"), ("c", 1, "c"),
        ]
        for (client, milliseconds, name) in works {
            work.run(for: client, taking: .milliseconds(milliseconds), isFirst: client == "c") {
                order.withLock { $0.append(name) }
                done.signal()
            }
        }
        // The client has work that waits: it has the next turn.
        gates["x"]?.open()
        for _ in works { done.wait() }
        gates["y"]?.open()

        #expect(order.withLock { $0 } == ["c", "small", "b", "middle", "large"])
    }

    @Test("no more works run at once than there may, and of one client half as many; later work runs after a pause")
    func width() {
        let work = SlowWork(width: 2)
        let running = Mutex((now: [String: Int](), most: 0, mostOfOne: 0))
        for _ in 0..<3 {
            let done = DispatchSemaphore(value: 0)
            for number in 0..<30 {
                let client = "\(number % 3)"
                work.run(for: client) {
                    running.withLock {
                        $0.now[client, default: 0] += 1
                        $0.most = max($0.most, $0.now.values.reduce(0, +))
                        $0.mostOfOne = max($0.mostOfOne, $0.now[client] ?? 0)
                    }
                    usleep(1000)
                    running.withLock { $0.now[client, default: 0] -= 1 }
                    done.signal()
                }
            }
            for _ in 0..<30 { done.wait() }
        }

        running.withLock {
            #expect($0.now.values.allSatisfy { $0 == 0 })
            #expect($0.most == 4)
            #expect($0.mostOfOne == 2)
        }
    }
}
