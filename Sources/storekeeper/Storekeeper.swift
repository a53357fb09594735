internal import StateServer

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
            domainFile: { settings in
                [("model", settings.model), ("schema", settings.schema)].first { $0.1 != "none" }
            },
            anyDomain: { settings throws(SettingsFault) in try ServedDomain.made(settings) })
    }
}
