import HTTPMessages
import Testing

@Suite("Preferences")
struct PreferencesTests {
    @Test(
        "wait is a number of seconds, or the default time",
        arguments: [
            ("wait=25", .seconds(25)),
            ("wait=0", .seconds(0)),
            ("wait", .usual),
            ("Wait = 25", .seconds(25)),
            (#"wait="25""#, .seconds(25)),
            ("wait=25; foo=bar", .seconds(25)),
            ("respond-async, wait=25", .seconds(25)),
            ("return=minimal,wait=25", .seconds(25)),
            ("wait=10, wait=20", .seconds(10)),
            ("wait, wait=20", .usual),
            ("wait=99999999999999999999", .seconds(.max)),
        ] as [(String, Preferences.Wait)])
    func wait(value: String, expected: Preferences.Wait) {
        #expect(Preferences([value]).wait == expected)
    }

    @Test(
        "an unknown or invalid preference is ignored",
        arguments: [
            "", ",", ";", "=", "wait=", "wait=-1", "wait=soon", "wait=1.5", "wait=+5", "wait=1e2", "waiting=5",
            "return",
            "return=", "return=all", #"note="return=minimal, wait=5""#, #"note="a\", wait=5""#,
        ])
    func ignored(value: String) {
        let preferences = Preferences([value])

        #expect(preferences.wait == nil)
        #expect(preferences.returning == nil)
    }

    @Test(
        "return is minimal or representation, in any case of letters",
        arguments: [
            ("return=minimal", .minimal),
            ("return=representation", .representation),
            ("RETURN=Minimal", .minimal),
            (#"return="minimal""#, .minimal),
            ("return=minimal; x=y", .minimal),
            ("return=minimal, return=representation", .minimal),
        ] as [(String, Preferences.Return)])
    func returning(value: String, expected: Preferences.Return) {
        #expect(Preferences([value]).returning == expected)
    }

    @Test("several fields count as one, and the first preference of a name counts")
    func fields() {
        let preferences = Preferences(["return=minimal", "wait=5", "wait=9", "return=representation"])

        #expect(preferences.returning == .minimal)
        #expect(preferences.wait == .seconds(5))
    }
}
