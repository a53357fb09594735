import HTTPTypes
import Synchronization

package struct Statistics: Sendable, Equatable {
    /// Open connections, parked ones included.
    package var connections = 0
    /// Exchanges that wait, streams included.
    package var waiting = 0
    package var working = 0
    package var requests = 0
    package var refused = 0
}

/// Any thread may read them; the caller makes them before the server, so that a handler can report them.
package final class ServerGauges: Sendable {
    let loops: [LoopGauges]
    package let memory: MemoryBudget

    package init(loops: Int, memoryBytesMax: Int = ServerConfiguration().memoryBytesMax) {
        memory = MemoryBudget(bytesMax: memoryBytesMax)
        self.loops = (0..<max(1, loops)).map { _ in LoopGauges() }
    }

    package var statistics: Statistics {
        Statistics(
            connections: sum(\.connections), waiting: sum(\.waiting), working: sum(\.working),
            requests: sum(\.requests), refused: sum(\.refused))
    }

    private func sum(_ count: KeyPath<LoopGauges, Count>) -> Int { loops.reduce(0) { $0 + $1[keyPath: count].value } }

    package var answers: Answers { loops.reduce(into: Answers()) { $0.add($1.answers.total) } }
}

/// Takes no lock, no memory and no atomic addition; one loop thread counts, and any thread reads.
final class Count: Sendable {
    private let number = Atomic(0)

    var value: Int { number.load(ordering: .relaxed) }

    // Only the loop thread writes, so nothing comes between the two.
    func add(_ more: Int) { number.store(value &+ more, ordering: .relaxed) }
}

final class LoopGauges: Sendable {
    let connections = Count()
    let waiting = Count()
    let working = Count()
    let requests = Count()
    let refused = Count()
    let answers = AnswerCounts()
}

final class AnswerCounts: Sendable {
    private let answers = (0..<Answers.methods.count * Answers.statuses.count).map { _ in Count() }
    private let times = (0...Answers.boundsNanoseconds.count).map { _ in (count: Count(), nanoseconds: Count()) }

    /// The time counts unless the request waits.
    func count(_ request: CountedRequest, _ status: Int, isTimed: Bool = true) {
        let kind = min(max(status / 100, 1), Answers.statuses.count) - 1
        answers[Int(request.method) * Answers.statuses.count + kind].add(1)
        guard isTimed else { return }
        let time = request.since.nanoseconds(to: .now)
        var index = 0
        while index < Answers.boundsNanoseconds.count, time > Answers.boundsNanoseconds[index] { index += 1 }
        times[index].count.add(1)
        times[index].nanoseconds.add(time)
    }

    var total: Answers {
        var total = Answers()
        total.counts = answers.map(\.value)
        total.times = times.map { .init(count: $0.count.value, nanoseconds: $0.nanoseconds.value) }
        return total
    }
}

package struct Answers: Sendable, Equatable {
    package static let methods = ["GET", "HEAD", "POST", "OPTIONS", "other"]
    package static let statuses = ["1xx", "2xx", "3xx", "4xx", "5xx"]
    /// The upper bounds of the buckets of ``times``, before the last one.
    package static let boundsNanoseconds = [
        10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000, 300_000_000,
        1_000_000_000, 3_000_000_000,
    ]

    package var counts = [Int](repeating: 0, count: methods.count * statuses.count)
    /// Counts those that were not to wait by their upper bound; the last count is of the longer ones.
    package var times = [Times](repeating: Times(), count: boundsNanoseconds.count + 1)

    package struct Times: Sendable, Equatable {
        package var count = 0
        package var nanoseconds = 0
    }

    package init() {}

    static func index(of method: HTTPRequest.Method) -> UInt8 {
        switch method {
        case .get: 0
        case .head: 1
        case .post: 2
        case .options: 3
        default: 4
        }
    }

    mutating func add(_ other: Answers) { combine(other, &+) }

    package func risen(since other: Answers) -> Answers {
        var risen = self
        risen.combine(other, &-)
        return risen
    }

    private mutating func combine(_ other: Answers, _ sum: (Int, Int) -> Int) {
        counts = zip(counts, other.counts).map { sum($0, $1) }
        times = zip(times, other.times).map {
            Times(count: sum($0.count, $1.count), nanoseconds: sum($0.nanoseconds, $1.nanoseconds))
        }
    }
}

struct CountedRequest {
    let method: UInt8
    let since: LoopInstant
}
