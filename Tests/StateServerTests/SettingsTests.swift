import Foundation
import MicroHTTP
import Testing

@testable import StateServer

@Suite("Settings")
struct SettingsTests {
    /// Reads settings from a file with this content; nil for no file.
    func read(
        _ json: String? = nil, environment: [String: String] = [:], flags: [String: String] = [:]
    ) async throws -> SettingsReading {
        guard let json else { return try await SettingsReading(file: nil, environment: environment, flags: flags) }
        let file = FileManager.default.temporaryDirectory.appending(path: "settings-\(UUID().uuidString).json")
        try Data(json.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        return try await SettingsReading(file: file.path, environment: environment, flags: flags)
    }

    func fault(_ json: String? = nil, environment: [String: String] = [:], flags: [String: String] = [:]) async
        -> String?
    {
        do {
            _ = try await read(json, environment: environment, flags: flags)
            return nil
        } catch { return "\(error)" }
    }

    @Test("flags beat the environment, the environment beats the file, the file beats the defaults")
    func order() async throws {
        let json = #"{"listen":"file:1","data":"file","grace_seconds":3,"depth_max":7}"#

        let reading = try await read(
            json,
            environment: ["STOREKEEPER_LISTEN": "environment:2", "STOREKEEPER_GRACE_SECONDS": "4", "PATH": "/bin"],
            flags: ["listen": "flag:3"])

        #expect(reading.settings.text("listen") == "flag:3")
        #expect(reading.settings.integer("grace_seconds") == 4)
        #expect(reading.settings.text("data") == "file")
        #expect(reading.settings.integer("depth_max") == 7)
        #expect(reading.settings.integer("body_bytes_max") == 8 << 20)
        #expect(reading.origins["listen"] == "flag")
        #expect(reading.origins["grace_seconds"] == "STOREKEEPER_GRACE_SECONDS")
        #expect(reading.origins["data"]?.hasSuffix(".json") == true)
        #expect(reading.origins["body_bytes_max"] == "default")
    }

    @Test("the shipped file has every setting at its default, in order, and nothing else")
    func shipped() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: "config/storekeeper.json"), encoding: .utf8)

        let expected = Setting.all.map { "  \"\($0.key)\": \($0.initial)" }.joined(separator: ",\n")

        #expect(text == "{\n\(expected)\n}\n")
    }

    @Test("the README names every setting")
    func readme() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: "README.md"), encoding: .utf8)
        for setting in Setting.all { #expect(text.contains("`\(setting.key)`"), "\(setting.key)") }
    }

    @Test("an unknown key is refused with the most similar key")
    func unknown() async {
        #expect(
            await fault(#"{"grace_second":1}"#)?.hasSuffix(
                "has grace_second, which is not a setting; did you mean grace_seconds?") == true)
        #expect(
            await fault(environment: ["STOREKEEPER_LISTN": "x"])
                == "the environment has STOREKEEPER_LISTN, which is not a setting; did you mean STOREKEEPER_LISTEN?")
        #expect(await fault(#"{"DEPTH_MAX":12}"#)?.hasSuffix("did you mean depth_max?") == true)
    }

    @Test(
        "a number out of its range or of another kind is refused, in each source",
        arguments: [
            ("3", true), ("4", false), ("512", false), ("513", true), ("\"64\"", true), ("true", true), ("4.5", true),
            ("64.0", true), ("null", true), ("[64]", true), ("{\"a\":64}", true),
        ])
    func range(value: String, isRefused: Bool) async {
        let fault = await fault("{\"depth_max\":\(value)}")

        #expect((fault != nil) == isRefused, "\(fault ?? "taken")")
        if let fault { #expect(fault.hasSuffix("must be a whole number from 4 to 512")) }
    }

    @Test("a text of another kind, an address that is none and an unknown level are refused")
    func texts() async {
        for value in ["null", "1", "true", "[]", "\"\""] {
            #expect(await fault("{\"data\":\(value)}")?.hasSuffix("must be a text") == true, "\(value)")
        }
        #expect(await fault(#"{"listen":"foo"}"#)?.contains("listen must be an address and a port") == true)
        #expect(await fault(#"{"trusted_proxies":"10.0.0.1/8"}"#)?.contains("trusted_proxies must be none, or") == true)
        #expect(await fault(#"{"trusted_proxies":"127.0.0.1, 10.0.0.0/8,::1"}"#) == nil)
        #expect(await fault(#"{"log_level":"loud"}"#)?.contains("log_level must be one of trace, debug") == true)
    }

    @Test(
        "a name in allowed_hosts is a host, with a port or without one",
        arguments: [
            ("state.example", true), ("state.example:8080, other.example", true), ("[2001:db8::1]:80", true),
            ("192.0.2.1", true), ("*", false), ("*.example", false), ("http://state.example/", false), (",,", false),
            ("a.example,", false), ("state.example:", false), ("state.example:x", false), ("a b", false),
            ("2001:db8::1", false), ("state.example/", false), ("listened,a.example", false),
        ])
    func allowedHosts(text: String, isTaken: Bool) async {
        let fault = await fault("{\"allowed_hosts\":\"\(text)\"}")

        #expect((fault == nil) == isTaken, "\(fault ?? "taken")")
        if let fault { #expect(fault.hasPrefix("allowed_hosts must be")) }
    }

    @Test("a variable that must be a number and is none is refused")
    func environmentNumber() async {
        #expect(
            await fault(environment: ["STOREKEEPER_DEPTH_MAX": "many"])
                == "depth_max (environment) must be a whole number from 4 to 512")
    }

    @Test("a file that is missing or no JSON is refused with its name")
    func file() async {
        #expect(await fault("{")?.contains("is not JSON") == true)
        #expect(await fault("[]")?.hasSuffix("must hold one JSON object") == true)
        await #expect(throws: SettingsFault.self) {
            try await SettingsReading(file: "/nowhere/at/all.json", environment: [:], flags: [:])
        }
    }

    @Test("waiters that leave no connection for actions are refused")
    func waiters() async {
        #expect(
            await fault(#"{"connections_max":100,"waiters_max":100}"#)?.contains("waiters_max must be below") == true)
        #expect(await fault(#"{"connections_max":100,"waiters_max":99}"#) == nil)
    }

    @Test(
        "an address to listen on is an address and a port",
        arguments: [
            ("127.0.0.1:80", "127.0.0.1", 80), ("[::1]:0", "::1", 0), ("0.0.0.0:8080", "0.0.0.0", 8080),
            ("8080", nil, 0), (":8080", nil, 0), ("::1:80", nil, 0), ("host:99999", nil, 0),
        ] as [(String, String?, UInt16)])
    func listen(text: String, host: String?, port: UInt16) {
        var settings = Settings()
        settings["listen"] = .text(text)
        let places = try? settings.listeningPlaces()

        #expect(places == host.map { [.address(host: $0, port: port)] })
    }

    @Test(
        "a place to listen on is also unix: and a path, and permissions go with it",
        arguments: [
            ("unix:/run/a.sock", "0600", 0o600), ("unix:a", "0660", 0o660), ("unix:a", "777", 0o777),
            ("unix:\(String(repeating: "a", count: 107))", "0600", 0o600),
            ("unix:\(String(repeating: "a", count: 108))", "0600", nil), ("unix:", "0600", nil),
            ("unix:a", "0800", nil), ("unix:a", "60", nil), ("unix:a", "0060", nil), ("unix:a", "1777", nil),
            ("unix:a", "+600", nil), ("unix:a", "rw", nil),
        ] as [(String, String, UInt32?)])
    func sockets(text: String, mode: String, expected: UInt32?) {
        var settings = Settings()
        settings["listen_also"] = .text(text)
        settings["socket_mode"] = .text(mode)

        let places = try? settings.listeningPlaces()

        #expect(
            places
                == expected.map {
                    [.address(host: "127.0.0.1", port: 8080), .socket(path: String(text.dropFirst(5)), mode: $0)]
                })
    }
}
