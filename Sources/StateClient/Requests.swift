internal import Foundation
internal import StateJSON

struct Call: Sendable {
    /// Path and query below the base URL, percent-encoded.
    var target: String
    /// The body of a POST; nil for a GET.
    var body: [UInt8]?
    var key: String?
    var tag: String?

    init(_ target: String, body: [UInt8]? = nil, key: String? = nil, tag: String? = nil) {
        (self.target, self.body, self.key, self.tag) = (target, body, key, tag)
    }
}

/// A whole answer, with the header fields that a client reads.
struct Answer: Sendable {
    var status: Int
    var tag: String?
    var cursor: String?
    /// In seconds.
    var retryAfter = 0
    var body: [UInt8]
}

/// The requests of a client: each is sent until it has an answer.
struct Requests: Sendable {
    /// Sends a request once, to a base URL and with a token; it throws where there is no answer, or not all of it.
    typealias Exchange = @Sendable (_ call: Call, _ base: String, _ token: String?) async throws -> Answer

    let base: String
    let tokens: @Sendable () async throws -> String?
    let report: @Sendable (StateClient.Problem) -> Void
    let exchange: Exchange

    /// Sends a request until it has an answer that is not to be asked for again.
    func send(_ call: Call, within limit: Duration?) async throws -> Answer {
        var patience = Patience(limit: limit)
        let start = ContinuousClock.now
        while true {
            let (answer, problem) = try await attempt(call)
            guard let problem else { return answer }
            let passed = ContinuousClock.now - start
            guard let pause = patience.pause(after: problem, passed, random: .random(in: 0..<1)) else { throw problem }
            report(problem)
            try await Task.sleep(for: pause)
        }
    }

    private func attempt(_ call: Call) async throws -> (Answer, StateClient.Problem?) {
        let token = try await tokens()
        guard [token, call.key].allSatisfy({ $0?.utf8.allSatisfy { (0x20...0x7E).contains($0) } != false }) else {
            throw StateClient.Problem.malformed("a token or a key has characters that a header field cannot have")
        }
        do {
            let answer = try await exchange(call, base, token)
            return (answer, StateClient.Problem(answer))
        } catch let problem as StateClient.Problem {
            throw problem
        } catch {
            try Task.checkCancellation()
            let detail = "\(base) does not answer: \(error.localizedDescription)"
            return (Answer(status: 0, body: []), StateClient.Problem(status: 0, code: "no-answer", detail: detail))
        }
    }
}

/// For how long a request is sent again, and when.
struct Patience {
    /// Nil for ever.
    let limit: Duration?
    private var failures = 0

    init(limit: Duration?) { self.limit = limit }

    /// The time to wait after an attempt, or nil if the request is not to be sent again.
    ///
    /// It is the time that the server asks for, and at random up to ten seconds more: the clients of a server do not
    /// come back at once.
    mutating func pause(after problem: StateClient.Problem, _ passed: Duration, random: Double) -> Duration? {
        guard problem.isPassing else { return nil }
        let backoff = min(10, 0.5 * Double(1 << min(failures, 5)))
        failures += 1
        let pause = Duration.seconds(problem.retryAfter) + .seconds(random * backoff)
        guard let limit else { return pause }
        return passed + pause <= limit ? pause : nil
    }
}
