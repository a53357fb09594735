import HTTPMessages
import HTTPTypes
import Testing

@Suite("Trace contexts")
struct TraceContextTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let parent = "00f067aa0ba902b7"

    @Test("a traceparent of version 00 names a trace, with any flags", arguments: ["00", "01", "ff"])
    func valid(flags: String) throws {
        let text = "00-\(Self.trace)-\(Self.parent)-\(flags)"

        let context = try #require(TraceContext(text))

        #expect(context.traceID == Self.trace)
        #expect(context.text == text)
    }

    @Test(
        "an invalid traceparent names none",
        arguments: [
            "", "00", "00-\(trace)-\(parent)", "00-\(trace)-\(parent)-01-", "00-\(trace)-\(parent)-01-x",
            // Another version, which may mean something else by its fields, and the one that is invalid for ever.
            "01-\(trace)-\(parent)-01", "ff-\(trace)-\(parent)-01",
            // IDs of zeros.
            "00-00000000000000000000000000000000-\(parent)-01", "00-\(trace)-0000000000000000-01",
            // Digits that are none.
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-\(parent)-01", "00-4bf92f3577b34da6a3ce929d0e0e473g-\(parent)-01",
            "00-\(trace)-00f067aa0ba902bü-01", "00-\(trace)-\(parent)-0G",
            // Lengths.
            "00-\(trace)0-\(parent)-01", "00-\(trace.dropLast())-\(parent)-01", "00-\(trace)-\(parent)0-01",
            "00-\(trace)-\(parent)-1", " 00-\(trace)-\(parent)-01", "00_\(trace)_\(parent)_01",
            // Two fields, which HTTP joins.
            "00-\(trace)-\(parent)-01, 00-\(trace)-\(parent)-01",
        ])
    func invalid(text: String) {
        #expect(TraceContext(text) == nil)
    }

    @Test("a request knows the trace of its head")
    func ofRequest() {
        let text = "00-\(Self.trace)-\(Self.parent)-01"

        #expect(Request(target: "/", fields: [.traceParent: text]).trace?.text == text)
        #expect(Request(target: "/", fields: [.traceParent: "none"]).trace == nil)
        #expect(Request(target: "/").trace == nil)
        let field = HTTPField(name: .traceParent, value: text)
        for second in [field, HTTPField(name: .traceParent, value: ""), HTTPField(name: .traceParent, value: "none")] {
            #expect(Request(target: "/", fields: HTTPFields([field, second])).trace == nil)
        }
    }
}
