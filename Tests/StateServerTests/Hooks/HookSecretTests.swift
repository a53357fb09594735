import Testing

@testable import StateServer

@Suite("The secret of a hook")
struct HookSecretTests {
    @Test("a signature is that of the specification's example")
    func example() throws {
        let secret = try #require(HookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))

        let signature = secret.signature(
            of: Array(#"{"test": 2432232314}"#.utf8), id: "msg_p5jXN8AQM9LWM0D4loKWxJek", at: 1_614_265_330)

        #expect(signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test("a new secret can be read again, and no two are the same")
    func made() throws {
        let (first, second) = (HookSecret(), HookSecret())

        #expect(first.text != second.text)
        #expect(try #require(HookSecret(first.text)).text == first.text)
    }

    @Test(
        "a text that is no secret of 24 to 64 bytes is refused",
        arguments: [
            "", "whsec_", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=",
        ])
    func refused(text: String) {
        #expect(HookSecret(text) == nil)
    }
}
