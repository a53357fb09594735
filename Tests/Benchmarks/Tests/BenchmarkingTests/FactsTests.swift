import Benchmarking
import Testing

@Suite("Facts")
struct FactsTests {
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
