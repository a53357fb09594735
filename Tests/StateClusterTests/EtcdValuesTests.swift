import Testing

@testable import StateCluster

@Suite("What is read from etcd")
struct EtcdValuesTests {
    @Test(
        "a watch goes on behind the last event that it has sent, however far etcd is",
        arguments: [
            (
                #""header":{"revision":"90"},"events":[{"kv":{"key":"YQ==","mod_revision":"7"}},{"kv":{"key":"YQ==","mod_revision":"9"}}]"#,
                10
            ),
            (#""header":{"revision":"90"},"events":[]"#, nil), (#""header":{"revision":"90"}"#, nil),
            (#""header":{"revision":"90"},"created":true"#, nil),
            (#""header":{},"events":[{"kv":{"key":"YQ==","mod_revision":"18446744073709551615"}}]"#, nil),
            (#""header":{},"events":[{"kv":{"key":"YQ==","mod_revision":"x"}}]"#, nil),
        ] as [(String, UInt64?)])
    func watch(result: String, next: UInt64?) throws {
        let line = try Etcd.decode(Etcd.WatchLine.self, from: Array("{\"result\":{\(result)}}".utf8))

        #expect(try #require(line.result).nextRevision == next)
    }
}
