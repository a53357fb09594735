import Testing

@testable import StateHTTP

@Suite("The names of the server")
struct AllowedHostsTests {
    @Test(
        "a server on loopback is known by the names of loopback only",
        arguments: ["127.0.0.1", "::1", "localhost", "127.0.0.9"])
    func loopback(host: String) {
        let hosts = AllowedHosts(listening: [host], further: [])

        for name in ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8080"] {
            #expect(hosts.allows(name), "\(name)")
        }
        for name in [
            "", ":", "evil.example", "evil.example:8080", "localhost.evil.example", "localhost:8080.evil.example",
            "127.0.0.1, evil.example", "evil@127.0.0.1", "127.0.0.1/", "::1", "[::1", "localhost:x", "192.0.2.1",
        ] { #expect(!hosts.allows(name), "\(name)") }
    }

    @Test("a name is judged alike, whichever name was allowed before")
    func remembered() {
        let names = [
            "", "localhost", "evil.example", "localhost:1", "LOCALHOST", "127.0.0.1", "localhost.evil.example",
        ]
        let allowed = Set(["localhost", "localhost:1", "LOCALHOST", "127.0.0.1"])
        for first in names {
            let hosts = AllowedHosts(listening: ["127.0.0.1"], further: [])
            for name in [first] + names { #expect(hosts.allows(name) == allowed.contains(name), "\(first), \(name)") }
        }
    }

    @Test("a server on an address is known by it and by further names, one with a port on that port only")
    func further() {
        let hosts = AllowedHosts(listening: ["192.0.2.1"], further: ["State.example", "other.example:8080"])

        for name in ["192.0.2.1:1", "state.example", "STATE.example:9", "other.example:8080"] {
            #expect(hosts.allows(name), "\(name)")
        }
        for name in ["localhost", "other.example", "other.example:80", "sub.state.example"] {
            #expect(!hosts.allows(name), "\(name)")
        }
    }

    @Test("on a wildcard address every name is allowed until there are further ones", arguments: ["0.0.0.0", "::"])
    func wildcard(host: String) {
        #expect(AllowedHosts(listening: [host], further: []).allows("anything"))
        let hosts = AllowedHosts(listening: [host], further: ["state.example"])
        #expect(hosts.allows("state.example") && hosts.allows("localhost:8080"))
        #expect(!hosts.allows("anything"))
    }

    @Test("the names of several listened addresses are allowed, and without any address only further ones")
    func several() {
        let hosts = AllowedHosts(listening: ["192.0.2.1", "127.0.0.1"], further: [])
        for name in ["192.0.2.1:1", "localhost", "127.0.0.1:80"] { #expect(hosts.allows(name), "\(name)") }
        #expect(!hosts.allows("evil.example"))
        #expect(AllowedHosts(listening: ["192.0.2.1", "::"], further: []).allows("anything"))
        #expect(!AllowedHosts(listening: [], further: []).allows("anything"))
    }
}
