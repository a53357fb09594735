import Testing

@testable import StateHTTP

@Suite("Allowed origins")
struct AllowedOriginsTests {
    @Test(
        "an origin as a browser writes it is taken",
        arguments: [
            "https://app.example", "http://localhost:5173", "http://127.0.0.1:3000", "http://[::1]:8080",
            "https://xn--bcher-kva.example", "https://a_b.example:8443", "http://app.example:443",
            "https://app.example:80",
            "capacitor://localhost", "ionic://localhost", "tauri://localhost",
            "chrome-extension://aapbdbdomjkkjkaonfhkkikfgjllcleb", "http://app.example:65535",
        ])
    func taken(origin: String) {
        #expect(AllowedOrigins.fault(in: origin) == nil)
    }

    @Test(
        "what no browser sends is refused with the words to write",
        arguments: [
            ("https://app.example:443", "without the usual port, https://app.example"),
            ("http://[::1]:80", "without the usual port, http://[::1]"),
            ("https://bücher.example", "xn--"), ("https://app.example/", "such as"),
            ("https://App.example", "small letters"),
            ("HTTPS://app.example", "small letters"), ("https://app.example:0443", "such as"),
            ("https://app.example:65536", "such as"), ("https://app.example:", "such as"), ("https://", "such as"),
            ("https://*.example", "such as"), ("https://kim@app.example", "such as"), ("https://[::1", "such as"),
            ("https://a b", "such as"), ("null", "such as"), ("*", "such as"), ("app.example", "such as"),
            ("file://", "such as"), ("://app.example", "such as"), ("https://app.example?x", "such as"),
            ("https://[::1]x:80", "such as"), ("https://app.example:+80", "such as"), ("", "such as"),
        ])
    func refused(origin: String, words: String) throws {
        let fault = try #require(AllowedOrigins.fault(in: origin))
        #expect(fault.contains(words))
    }
}
