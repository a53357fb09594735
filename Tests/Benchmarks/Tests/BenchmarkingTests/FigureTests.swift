import Benchmarking
import Testing

@Suite("Figures")
struct FigureTests {
    @Test("the median of an even number of values is the mean of the middle two")
    func median() {
        #expect([3.0, 1, 2].median == 2)
        #expect([4.0, 1, 2, 3].median == 2.5)
        #expect([Double]().median == nil)
    }

    @Test("a percentile is the value at the nearest rank")
    func percentile() {
        let values = (1...100).map(Double.init)

        #expect(values.percentile(0.5) == 50)
        #expect(values.percentile(0.99) == 99)
        #expect(values.percentile(1) == 100)
        #expect([7.0].percentile(0) == 7)
    }

    @Test(
        "numbers are written with the digits that mean something",
        arguments: [
            (0.1234, "0.123"), (1.005, "1.00"), (9.996, "10.00"), (12.34, "12.3"), (123.4, "123"),
            (1_234_567, "1,234,567"), (2, "2"), (-0.5, "-0.500"), (.nan, "-"),
        ])
    func readable(number: Double, text: String) {
        #expect(number.readable == text)
    }

    @Test("a ratio is the median of the quotients of neighbouring runs")
    func ratio() {
        let ours = Series(who: "ours", runs: [.costing(10), .costing(40), .costing(12)])
        let limit = Series(who: "C", runs: [.costing(8), .costing(30), .costing(9)])

        #expect(limit.ratio(of: \.cpuMicroseconds, to: ours) == 0.75)
        #expect(limit.ratio(of: \.perSecond, to: ours) == nil)
    }

    @Test("the median of runs leaves out what a run has not measured")
    func medianOfRuns() {
        let median = Reading.median(of: [.costing(1), Reading(), .costing(3)])

        #expect(median.cpuMicroseconds == 2)
        #expect(median.perSecond == nil)
    }

    @Test(
        "an aim is met at the limit itself",
        arguments: [
            (Judgement("", 0.95, .atLeast, 0.95), "met"), (Judgement("", 0.76, .atLeast, 0.95), "missed by 20 %"),
            (Judgement("", 2, .atMost, 2), "met"), (Judgement("", 3, .atMost, 2), "missed by 50 %"),
        ])
    func judgement(judgement: Judgement, verdict: String) {
        #expect(judgement.verdict == verdict)
    }
}

extension Reading {
    fileprivate static func costing(_ microseconds: Double) -> Reading {
        var reading = Reading()
        reading.cpuMicroseconds = microseconds
        return reading
    }
}
