import Foundation
import Logging
import MicroHTTP
import Testing

@testable import StateServer

enum Pace: String, CaseIterable { case slow, fast }

/// The settings of a program beside those of the package.
extension SettingKeys {
    var warehouse: Setting<String> { Setting("warehouse", default: "main", "the warehouse to serve") }
    var pickersMax: Setting<Int> { Setting("pickers_max", default: 4, in: 1...9, "most pickers at once") }
    var isStrict: Setting<Bool> { Setting("is_strict", default: false, "whether each item is counted") }
    var pace: Setting<Pace> { Setting("pace", default: .slow, "how fast the pickers are") }
    var second: Setting<Int> { Setting("data", default: 1, in: 1...9, "a key that is taken") }
    var misspelled: Setting<Int> { Setting("Pickers", default: 1, in: 1...9, "a key with a capital") }
    var unfit: Setting<Int> { Setting("unfit", default: 10, in: 1...9, "a default out of the range") }
}

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

        #expect(reading.settings.listen == "flag:3")
        #expect(reading.settings.graceSeconds == 4)
        #expect(reading.settings.data == "file")
        #expect(reading.settings.depthMax == 7)
        #expect(reading.settings.bodyBytesMax == 8 << 20)
        #expect(reading.origins["listen"] == "flag")
        #expect(reading.origins["grace_seconds"] == "STOREKEEPER_GRACE_SECONDS")
        #expect(reading.origins["data"]?.hasSuffix(".json") == true)
        #expect(reading.origins["body_bytes_max"] == "default")
    }

    @Test("the shipped file begins with every setting of the package at its default, in order")
    func shipped() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: "config/storekeeper.json"), encoding: .utf8)

        let expected = SettingKeys.all.map { "  \"\($0.key)\": \($0.json($0.initial))" }.joined(separator: ",\n")

        #expect(text.hasPrefix("{\n\(expected),\n  \"domain\": \"document\",\n"))
    }

    @Test("the page of the settings has every setting of the package at its default, and no other")
    func page() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = try String(
            contentsOf: root.appending(path: "Sources/StateServer/StateServer.docc/Reference/Settings.md"),
            encoding: .utf8)
        let rows = text.split(separator: "\n").filter { $0.hasPrefix("| `") }.flatMap { row in
            let cells = row.split(separator: " | ", maxSplits: 2).prefix(2).map { cell in
                cell.filter { !"|` ".contains($0) }.split(separator: ",").map(String.init)
            }
            return cells[0].enumerated().map { index, key in "\(key) \(cells[1][min(index, cells[1].count - 1)])" }
        }
        let settings = SettingKeys.all.map { "\($0.key) \($0.initial)".filter { $0 != "\"" } }

        #expect(
            Set(
                rows.filter {
                    !$0.hasPrefix("domain ") && !$0.hasPrefix("model") && !$0.hasPrefix("drop_slice ")
                        && !$0.hasPrefix("schema ")
                        && !$0.hasPrefix("films_")
                })
                == Set(settings))
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
        "a variable that Kubernetes makes of a Service's name is ignored, and named",
        arguments: [
            ("STOREKEEPER_PORT", true), ("STOREKEEPER_SERVICE_HOST", true), ("STOREKEEPER_SERVICE_PORT", true),
            ("STOREKEEPER_SERVICE_PORT_HTTP", true), ("STOREKEEPER_PORT_80_TCP", true),
            ("STOREKEEPER_PORT_80_TCP_ADDR", true), ("STOREKEEPER_READ_ONLY_PORT_53_UDP_PROTO", true),
            ("STOREKEEPER_READ_ONLY_SERVICE_HOST", true), ("STOREKEEPER_ACCES", false),
            ("STOREKEEPER_PORT_FILE", false), ("STOREKEEPER_SERVICE", false), ("STOREKEEPER_LISTEN_PORTS", false),
        ])
    func kubernetes(name: String, isIgnored: Bool) async throws {
        let variables = [name: "tcp://10.96.0.7:80", "STOREKEEPER_DEPTH_MAX": "7"]
        guard isIgnored else {
            #expect(await fault(environment: variables)?.contains("\(name), which is not a setting") == true)
            return
        }

        let reading = try await read(environment: variables)

        #expect(reading.ignoredVariables == [name])
        #expect(reading.settings.depthMax == 7)
    }

    @Test(
        "a place to listen on that is none is refused with its source",
        arguments: ["listen", "listen_also"])
    func places(key: String) async {
        #expect(await fault("{\"\(key)\":\"foo\"}")?.hasPrefix("\(key) (/") == true)
        #expect(
            await fault(environment: ["STOREKEEPER_\(key.uppercased())": "foo"])?.hasPrefix(
                "\(key) (environment) must be")
                == true)
        #expect(await fault(flags: [key: "unix:"])?.hasPrefix("\(key) (flag) must be") == true)
        #expect(await fault(flags: [key: "unix:/tmp/a"]) == nil)
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
            #expect(
                await fault("{\"data\":\(value)}")?.hasSuffix("must be a text that is not empty") == true, "\(value)")
        }
        #expect(await fault(#"{"listen":"foo"}"#)?.contains(") must be an address and a port") == true)
        #expect(await fault(#"{"trusted_proxies":"10.0.0.1/8"}"#)?.contains("trusted_proxies must be none, or") == true)
        #expect(await fault(#"{"trusted_proxies":"127.0.0.1, 10.0.0.0/8,::1"}"#) == nil)
        #expect(await fault(#"{"log_level":"loud"}"#)?.contains(") must be one of trace, debug") == true)
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

    @Test(
        "a proxy or a name for other machines in the settings says that others reach a server on loopback",
        arguments: [
            (#"{}"#, true), (#"{"listen":"unix:/tmp/a"}"#, true), (#"{"listen":"0.0.0.0:8080"}"#, false),
            (#"{"listen_also":"192.0.2.1:80"}"#, false), (#"{"trusted_proxies":"127.0.0.1"}"#, false),
            (#"{"listen":"unix:/tmp/a","trusted_proxies":"unix"}"#, false),
            (#"{"allowed_hosts":"localhost, LOCALHOST:80, 127.0.0.1, [::1]:80"}"#, true),
            (#"{"allowed_hosts":"localhost, state.example"}"#, false), (#"{"allowed_hosts":"192.0.2.1"}"#, false),
            (#"{"allowed_hosts":"[2001:db8::1]:80"}"#, false), (#"{"allowed_hosts":"localhost.example"}"#, false),
        ])
    func reached(json: String, isOnlyFromHere: Bool) async throws {
        let settings = try await own(json).settings

        #expect(try settings.isReachedFromHereOnly(settings.listeningPlaces()) == isOnlyFromHere)
    }

    @Test("a byte order mark before the settings is skipped")
    func mark() async throws {
        #expect(try await own("\u{FEFF}{\"depth_max\":7}").settings.depthMax == 7)
        #expect(await fault("\u{FEFF}\u{FEFF}{}")?.contains("is not JSON") == true)
    }

    /// Reads the settings of a program with settings of its own.
    func own(
        _ json: String? = nil, environment: [String: String] = [:], flags: [String: String] = [:]
    ) async throws -> SettingsReading {
        let own: [PartialKeyPath<SettingKeys>] = [\.warehouse, \.pickersMax, \.isStrict, \.pace]
        guard let json else { return try await SettingsReading(own: own, environment: environment, flags: flags) }
        let file = FileManager.default.temporaryDirectory.appending(path: "settings-\(UUID().uuidString).json")
        try Data(json.utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        return try await SettingsReading(own: own, file: file.path, environment: environment, flags: flags)
    }

    @Test("a program's own settings come from each source, with their types, beside those of the package")
    func ownSettings() async throws {
        let none = try await own()
        let reading = try await own(
            #"{"warehouse":"north","is_strict":true,"grace_seconds":3,"pace":"fast"}"#,
            environment: ["STOREKEEPER_PICKERS_MAX": "5", "STOREKEEPER_PACE": "slow"], flags: ["pickers_max": "6"])
        let flags = try await own(environment: ["STOREKEEPER_IS_STRICT": "true"], flags: ["pace": "fast"])

        #expect(
            (none.settings.warehouse, none.settings.pickersMax, none.settings.isStrict) == ("main", 4, false))
        #expect(none.settings.pace == .slow)
        #expect((reading.settings.warehouse, reading.settings.pickersMax) == ("north", 6))
        #expect((reading.settings.isStrict, reading.settings.pace) == (true, .slow))
        #expect(reading.settings.graceSeconds == 3)
        #expect(reading.origins["pickers_max"] == "flag")
        #expect(reading.origins["pace"] == "STOREKEEPER_PACE")
        #expect((flags.settings.isStrict, flags.settings.pace) == (true, .fast))
    }

    @Test(
        "a value that an own setting does not take is refused with what it takes",
        arguments: [
            (#"{"pickers_max":10}"#, "must be a whole number from 1 to 9"),
            (#"{"pickers_max":"5"}"#, "must be a whole number from 1 to 9"),
            (#"{"is_strict":"true"}"#, "must be true or false"), (#"{"is_strict":1}"#, "must be true or false"),
            (#"{"pace":"medium"}"#, "must be one of slow, fast"), (#"{"pace":1}"#, "must be one of slow, fast"),
            (#"{"warehouse":1}"#, "must be a text that is not empty"),
            (#"{"warehouses":"north"}"#, "did you mean warehouse?"),
            (#"{"films_retries":1}"#, "has films_retries, which is not a setting"),
        ])
    func ownMisfits(json: String, sentence: String) async {
        let fault = await #expect(throws: SettingsFault.self) { _ = try await own(json) }

        #expect(fault?.description.contains(sentence) == true, "\(fault?.description ?? "taken")")
    }

    @Test("a variable or a flag of another type is refused, and so is a setting that was not declared")
    func ownMisfitsElsewhere() async throws {
        for (environment, flags) in [
            (["STOREKEEPER_IS_STRICT": "yes"], [:]), ([:], ["is_strict": "1"]),
            (["STOREKEEPER_PICKERS_MAX": "ten"], [:]),
        ] as [([String: String], [String: String])] {
            await #expect(throws: SettingsFault.self) { _ = try await own(environment: environment, flags: flags) }
        }
        #expect(await fault(environment: ["STOREKEEPER_WAREHOUSE": "north"])?.contains("is not a setting") == true)
    }

    @Test("a declaration with a key that is taken or misspelled, or a default that does not fit, is refused")
    func declarations() {
        for (path, sentence) in [
            (\SettingKeys.second, "two settings with the key data"), (\SettingKeys.misspelled, "Pickers"),
            (\SettingKeys.unfit, "unfit (default) must be a whole number from 1 to 9"),
            (\SettingKeys.warehouse.declared.key, "leads to no Setting"),
        ] as [(PartialKeyPath<SettingKeys>, String)] {
            let fault = #expect(throws: SettingsFault.self) { _ = try DeclaredSetting.all(with: [path]) }

            #expect(fault?.description.contains(sentence) == true, "\(fault?.description ?? "taken")")
        }
    }

    @Test("settings that are made in code have the defaults, and take what is assigned")
    func inCode() {
        var settings = Settings()
        #expect((settings.listen, settings.graceSeconds, settings.access) == ("127.0.0.1:8080", 10, .auto))

        settings.graceSeconds = 0
        settings.logLevel = .trace
        settings.warehouse = "north"

        #expect((settings.graceSeconds, settings.logLevel, settings.warehouse) == (0, .trace, "north"))
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
        settings.listen = text
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
        settings.listenAlso = text
        settings.socketMode = mode

        let places = try? settings.listeningPlaces()

        #expect(
            places
                == expected.map {
                    [.address(host: "127.0.0.1", port: 8080), .socket(path: String(text.dropFirst(5)), mode: $0)]
                })
    }
}
