import Testing

@testable import StateStore

@Suite("Mailbox")
struct MailboxTests {
    private func pending() -> PendingTransaction { PendingTransaction(.of(Sample.Add(amount: 1))) { _ in } }

    @Test("a mailbox takes as many as its capacity, refuses the next, and has room again when a turn has landed")
    func capacity() {
        var mailbox = Mailbox(capacity: 2)
        var refusals: [Bool] = []
        for _ in 0..<3 { refusals.append(mailbox.enqueue(pending()) != nil) }

        let taken = mailbox.takeTurn().transactions
        let inFlight = mailbox.enqueue(pending())
        mailbox.release(taken.count)
        let landed = mailbox.enqueue(pending())

        #expect(refusals == [false, false, true])
        #expect(taken.count == 2)
        #expect(inFlight != nil)
        #expect(landed == nil)
        #expect(mailbox.count == 1)
    }

    @Test("one caller claims the turn until everything is taken")
    func claim() {
        var mailbox = Mailbox(capacity: 9)
        let none = mailbox.claimTurn(onLoop: true)

        _ = mailbox.enqueue(pending())
        let first = mailbox.claimTurn(onLoop: true)
        _ = mailbox.enqueue(pending())
        let second = mailbox.claimTurn(onLoop: true)
        _ = mailbox.takeTurn().transactions
        let empty = mailbox.claimTurn(onLoop: true)
        _ = mailbox.enqueue(pending())
        let next = mailbox.claimTurn(onLoop: true)

        #expect(none == nil)
        #expect(first == .here)
        #expect(second == nil)
        #expect(empty == nil)
        #expect(next == .here)
    }

    @Test("a loop runs a turn of at most 1,024 actions, while none is scheduled on the queue")
    func place() {
        var mailbox = Mailbox(capacity: 9)
        func place(ofTurnOf count: Int, bytes: Int = 0, onLoop: Bool = true) -> Mailbox.Place? {
            let item = Transaction.Item(Sample.Add(amount: 1), sent: Array(repeating: 0, count: bytes))
            _ = mailbox.enqueue(PendingTransaction(Transaction(Array(repeating: item, count: count))) { _ in })
            let place = mailbox.claimTurn(onLoop: onLoop)
            mailbox.release(mailbox.takeTurn().transactions.count)
            return place
        }

        #expect(place(ofTurnOf: 1024) == .here)
        #expect(place(ofTurnOf: 1, onLoop: false) == .queue)
        #expect(place(ofTurnOf: 1) == .queue)
        mailbox.endScheduledTurn()
        #expect(place(ofTurnOf: 1) == .queue)
        for _ in 0..<2 { mailbox.endScheduledTurn() }
        #expect(place(ofTurnOf: 1) == .here)
        #expect(place(ofTurnOf: 1025) == .queue)
        mailbox.endScheduledTurn()
        #expect(place(ofTurnOf: 1, bytes: 65_537) == .queue)
    }

    @Test("a closed mailbox refuses new transactions and still returns the waiting ones")
    func closed() {
        var mailbox = Mailbox(capacity: 9)
        _ = mailbox.enqueue(pending())

        mailbox.close()
        let refusal = mailbox.enqueue(pending())
        let taken = mailbox.takeTurn().transactions

        guard case .draining? = refusal else { Issue.record("\(String(describing: refusal))"); return }
        #expect(taken.count == 1)
    }
}
