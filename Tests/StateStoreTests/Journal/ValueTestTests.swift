import StateJSON
import StateStore
import Testing

@Suite("Tests of a value")
struct ValueTestTests {
    @Test(
        "a bound holds for numbers of every spelling, and for nothing else",
        arguments: [
            ("5", "5", true, true), ("6", "5", true, false), ("4", "5", false, true), ("5.0", "5", true, true),
            ("5.5", "5", true, false), ("-1", "0", false, true), ("1e300", "5", true, false),
            ("18446744073709551615", "9223372036854775807", true, false),
            ("-9223372036854775808", "18446744073709551615", false, true),
            ("9007199254740993", "9007199254740992", true, false),
            ("0.1000000000000000055511151231257827", "0.2", false, true),
            (#""5""#, "5", false, false), ("null", "5", false, false), ("[5]", "5", false, false),
            ("true", "0", false, false),
        ] as [(String, String, Bool, Bool)])
    func bounds(value: String, bound: String, isAtLeast: Bool, isAtMost: Bool) throws {
        let (value, bound) = (
            try JSONValue(parsing: Array(value.utf8)), try JSONValue(parsing: Array(bound.utf8))
        )
        #expect(ValueTest(.root, .atLeast(bound)).holds(for: value) == isAtLeast)
        #expect(ValueTest(.root, .atMost(bound)).holds(for: value) == isAtMost)
    }

    @Test("a value that is not there is within no bound")
    func absent() {
        #expect(!ValueTest(.root, .atLeast(0)).holds(for: nil))
        #expect(!ValueTest(.root, .atMost(0)).holds(for: nil))
    }
}
