// swift-tools-version: 6.2

import PackageDescription

// Fuzzers of everything that reads bytes of a client or of a file: .ci/fuzz builds and runs them.
//
// What they call is internal to the project's targets. They reach it by @testable imports, for which .ci/fuzz compiles the
// project with -enable-testing; it also adds the flags of the sanitizers and links libFuzzer, so this manifest has no unsafe
// flags and the project's own has no trace of the fuzzers.

let package = Package(
    name: "fuzz",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "storekeeper", path: "../.."),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        // libFuzzer without its main function, which is part of the compiler.
        .systemLibrary(name: "CLibFuzzer"),
        // One program for all targets: FUZZ_TARGET names the target, so that the processes that libFuzzer starts have it, too.
        .executableTarget(
            name: "fuzz",
            dependencies: [
                "CLibFuzzer",
                // StateServer is built on every other target of the project, so that their modules are there, too.
                .product(name: "StateServer", package: "storekeeper"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: [
                .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"), .treatAllWarnings(as: .error),
            ]),
    ]
)
