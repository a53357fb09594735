internal import StateServer

/// The server of the example domains.
@main
struct Storekeeper {
    static func main() async {
        await ServerCommand.main(
            settings: [\.domain, \.filmsBaseURL, \.filmsTimeoutSeconds, \.filmsRetries], name: "storekeeper",
            commands: [ModelCommand.self],
            anyDomain: { settings throws(SettingsFault) in try settings.domain.made(settings) })
    }
}
