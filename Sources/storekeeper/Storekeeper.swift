internal import StateServer

/// The server of the example domains.
@main
struct Storekeeper {
    static func main() async {
        await ServerCommand.main(
            settings: [
                \.domain, \.schema, \.model, \.modelMilliseconds, \.modelBytesMax, \.dropSlice, \.filmsBaseURL,
                \.filmsTimeoutSeconds,
                \.filmsRetries,
            ],
            name: "storekeeper",
            commands: [ModelCommand.self], domainName: ServedDomain.name, adopt: ServedDomain.adopt,
            anyDomain: { settings throws(SettingsFault) in try ServedDomain.made(settings) })
    }
}
