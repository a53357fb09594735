import Testing

@testable import MicroHTTP

@Suite("Alarms")
struct AlarmsTests {
    @Test("due alarms are taken once each, the earliest first, and one that is set again is due in the next call")
    func due() {
        let start = LoopInstant.now
        var alarms = Alarms()
        alarms.set(.receiving, at: start + .seconds(2))
        alarms.set(.idleConnections, at: start + .seconds(1))
        alarms.set(.listening, at: start + .seconds(9))
        var handled: [Alarms.Subject] = []

        for subject in alarms.takeDue(now: start + .seconds(3)) {
            handled.append(subject)
            // The time of the iteration is that of its beginning, long before a pause.
            alarms.set(subject, at: start)
        }

        #expect(handled == [.idleConnections, .receiving])
        #expect(alarms.next == start)
        #expect(alarms.takeDue(now: start).count == 2)
        #expect(alarms.takeDue(now: start + .seconds(9)) == [.listening])
    }
}
