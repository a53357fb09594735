import Testing

@testable import MicroHTTP

@Suite("The check of the socket calls")
struct SocketCallsCheckTests {
    @Test("it passes where libmicrohttpd calls the functions of this program")
    func inForce() throws { try SocketCallsCheck.run() }

    @Test("it fails where the calls go elsewhere")
    func elsewhere() {
        let error = #expect(throws: ServerError.self) { try SocketCallsCheck.run(observe: { _ in }) }
        #expect(error?.description.contains("does not make its socket calls through this program") == true)
    }

    @Test(
        "a version is tested between the first and the last one that the tests run with",
        arguments: [
            ("0.9.74", false), ("0.9.75", true), ("0.9.77", true), ("1.0.0", true), ("1.0.1", true), ("1.0.2", false),
            ("1.0.10", false), ("1.1.0", false), ("0.10.0", true), ("2", false),
        ])
    func versions(text: String, isTested: Bool) { #expect(LibraryVersion(text).isTested == isTested) }
}
