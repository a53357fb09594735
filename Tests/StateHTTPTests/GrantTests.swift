import Testing

@testable import StateHTTP

@Suite("A grant")
struct GrantTests {
    @Test(
        "a dispatch is refused where it can be no action type, and one with a place says what names places",
        arguments: [
            ("document/set:/customers", "a read names a place"), ("/customers", "a read names a place"),
            ("document/*:/a", "a read names a place"),
            ("", "such as tasks/add"), ("a*b", "such as tasks/add"),
        ])
    func refused(entry: String, says: String) {
        let fault = Grant(dispatch: ["tasks/add", entry]).newFault

        #expect(fault?.hasPrefix("\"\(entry)\" is not an action type") == true)
        #expect(fault?.contains(says) == true)
    }

    @Test(
        "a dispatch names a type, or a beginning of types",
        arguments: ["*", "tasks/*", "document/set", "a:b", "tasks/a:b/c"])
    func taken(entry: String) { #expect(Grant(dispatch: [entry]).newFault == nil) }

    @Test("a token of before that has such an entry is read, and allows nothing by it")
    func read() { #expect(Grant(dispatch: ["document/set:/customers"]).fault == nil) }
}
