// swift-tools-version: 6.2

import PackageDescription

// The benchmarks, and the C program that is their baseline: clients of the server, which they start as a process.
//
// .ci/long and the page on the benchmarks build this package in the folder of the project's own build, so that the programs
// stand side by side. The micro-benchmarks call functions internal to the project; they belong to its manifest.

let package = Package(
    name: "benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "storekeeper", path: "../.."),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    ],
    targets: [
        // The baseline: a C program on libmicrohttpd with the same requests and the least work for each.
        .executableTarget(
            name: "microhttpd-limit",
            cSettings: [.define("_GNU_SOURCE")],
            linkerSettings: [.linkedLibrary("microhttpd"), .linkedLibrary("sqlite3")]),
        // The pure part: readings, medians, aims, tables and charts.
        .target(name: "Benchmarking"),
        // epoll, for the benchmarks' own clients.
        .systemLibrary(name: "CEpoll"),
        // Starts the servers, loads them, measures them.
        .executableTarget(
            name: "storekeeper-bench",
            dependencies: [
                "Benchmarking", "CEpoll", "microhttpd-limit",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "storekeeper", package: "storekeeper"),
            ]),
        .testTarget(name: "BenchmarkingTests", dependencies: ["Benchmarking"]),
    ],
    cLanguageStandard: .c11
)

for target in package.targets
where [.regular, .executable, .test].contains(target.type) && target.name != "microhttpd-limit" {
    target.swiftSettings = [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .treatAllWarnings(as: .error),
    ]
}
