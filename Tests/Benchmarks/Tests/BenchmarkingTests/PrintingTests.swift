import Benchmarking
import Testing

@Suite("Tables")
struct PrintingTests {
    @Test("columns are as wide as they need to be, and those without values are left out")
    func table() {
        var table = Table(["who", "CPU", "last", "RSS"])
        table.add(["C", "8.10", nil, "4 MiB"])
        table.add(["storekeeper", "10.2", nil, nil])

        #expect(
            table.text == """
                  who           CPU    RSS
                  C            8.10  4 MiB
                  storekeeper  10.2      -
                """)
    }

    @Test("a finding shows each server beside the baseline, then the aims, then the remarks")
    func finding() {
        var reading = Reading()
        reading.cpuMicroseconds = 8
        var finding = Finding(scenario: "get", summary: "GET of a small state")
        finding.series = [Series(who: "C", runs: [reading])]
        reading.cpuMicroseconds = 10
        finding.series.append(Series(who: "storekeeper", runs: [reading]))
        finding.judgements = [Judgement("CPU of C / of storekeeper", 0.8, .atLeast, 0.95)]
        finding.remarks = ["no other server ran"]

        #expect(
            finding.text == """
                get: GET of a small state
                  who          CPU us/request  C's CPU / its
                  C                         8           1.00
                  storekeeper              10           0.80
                  aim                        found          wanted
                  CPU of C / of storekeeper  0.800  at least 0.950  missed by 16 %
                note: no other server ran

                """)
    }

    @Test("a report ends with the number of aims that hold, and those that do not")
    func aims() {
        var one = Finding(scenario: "get", summary: "")
        one.judgements = [Judgement("CPU", 0.96, .atLeast, 0.95), Judgement("time", 1.4, .atMost, 1.3)]
        var report = Report(facts: [])
        report.findings = [one, Finding(scenario: "soak", summary: "")]

        #expect(report.aims == "1 of 2 aims hold\nmissed: get: time: 1.40, wanted at most 1.30")
    }

    @Test("a page of documentation has the facts, the medians and the aims")
    func page() {
        var reading = Reading()
        reading.cpuMicroseconds = 8
        var finding = Finding(scenario: "get", summary: "GET of a small state")
        finding.series = [Series(who: "C", runs: [reading])]
        finding.judgements = [Judgement("CPU of C / of storekeeper", 0.8, .atLeast, 0.95)]
        var report = Report(facts: [.init("CPU", "a fast one"), .init("cores", "2")])
        report.findings = [finding]

        #expect(
            report.markdown == """
                CPU: a fast one; cores: 2.

                | scenario | who | CPU us | C's CPU / its |
                | --- | --- | --- | --- |
                | get | C | 8 | 1.00 |

                | scenario | aim | found | wanted |  |
                | --- | --- | --- | --- | --- |
                | get | CPU of C / of storekeeper | 0.800 | at least 0.950 | missed by 16 % |

                """)
    }

    @Test("facts are read from the files of /proc and /etc")
    func facts() {
        #expect(Facts.kibibytes("VmRSS", in: "VmHWM:\t  9000 kB\nVmRSS:\t   1234 kB\n") == 1234)
        #expect(Facts.value("PRETTY_NAME", in: "ID=debian\nPRETTY_NAME=\"Debian 12\"\n") == "Debian 12")
        #expect(Facts.value("model name", in: "model name\t: Some CPU @ 2.5GHz\n") == "Some CPU @ 2.5GHz")
        #expect(
            Facts.metric("storekeeper_waiters", in: "# TYPE storekeeper_waiters gauge\nstorekeeper_waiters 12\n") == 12)
        #expect(Facts.kibibytes("VmSwap", in: "") == nil)
    }
}
