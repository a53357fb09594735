// swift-tools-version: 6.2

import PackageDescription

// One authoritative state for many processes, over plain HTTP.
// Targets stand in the order of the arrows: each imports only what is above it. PackageTests reads the sources and holds that.

let package = Package(
    name: "storekeeper",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "StateStore", targets: ["StateStore"]),
        .library(name: "StateServer", targets: ["StateServer"]),
        .library(name: "StateServerTesting", targets: ["StateServerTesting"]),
        .executable(name: "storekeeper", targets: ["storekeeper"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // libmicrohttpd (Debian: libmicrohttpd-dev). Only MicroHTTP sees it.
        .systemLibrary(name: "CMicroHTTPD", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        // simdjson (Debian: libsimdjson-dev) behind a C interface. Only StateJSON sees it.
        .target(name: "CSimdjson", linkerSettings: [.linkedLibrary("simdjson")]),
        // XXH3, the hash of entity tags and of request heads (Debian: libxxhash-dev, header only).
        .systemLibrary(name: "CXXHash", providers: [.apt(["libxxhash-dev"])]),
        // JSON as the product needs it: decode to typed values, encode in stable order, point, compare, patch.
        .target(name: "StateJSON", dependencies: ["CSimdjson", "CXXHash"]),
        // The pure core: actions, reducers, slices, tables, middleware, selections, subscriptions, the turn.
        .target(
            name: "StateStore",
            dependencies: [
                "StateJSON",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ]),
        // Requests and responses as values; entity tags, preferences, problems.
        .target(
            name: "HTTPMessages",
            dependencies: [
                .product(name: "HTTPTypes", package: "swift-http-types")
            ]),
        // The contract: a request and a snapshot in, an answer out. No socket, file or clock.
        .target(
            name: "StateHTTP",
            dependencies: [
                "HTTPMessages", "StateJSON", "StateStore",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ]),
        // libmicrohttpd as a Swift server with an event loop of its own.
        .target(
            name: "MicroHTTP",
            dependencies: [
                "CMicroHTTPD", "CXXHash", "HTTPMessages",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "HeapModule", package: "swift-collections"),
            ]),
        // Commits, snapshots and idempotency outcomes in SQLite.
        .target(
            name: "StateJournal",
            dependencies: [
                "StateJSON", "StateStore",
                .product(name: "GRDB", package: "GRDB.swift"),
            ]),
        // The composition root: builds, connects, runs, stops.
        .target(
            name: "StateServer",
            dependencies: [
                "HTTPMessages", "MicroHTTP", "StateHTTP", "StateJSON", "StateJournal", "StateStore",
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ]),
        // The test kit for domains: a store that states the expected change, a clock that is turned by hand, a client.
        .target(
            name: "StateServerTesting",
            dependencies: [
                "HTTPMessages", "StateJSON", "StateServer", "StateStore",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
            ]),
        // The example domains, one file each.
        .target(name: "Showcase", dependencies: ["StateStore"]),
        // jemalloc (Debian: libjemalloc-dev) and its settings, in place of the C library's malloc. A turn makes and drops many
        // small things at once, on one thread: a tenth of a POST. And thousands who have gone leave no holes behind.
        .target(name: "CJemalloc", linkerSettings: [.linkedLibrary("jemalloc")]),
        // libcurl (Debian: libcurl4-openssl-dev), which fetches the films. Only the command line sees it.
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        // The command line.
        .executableTarget(
            name: "storekeeper",
            dependencies: [
                "CCurl", "CJemalloc", "Showcase", "StateServer", "StateStore",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ]),
        // What the benchmarks compare with: the same conversations in C on libmicrohttpd, with the least work behind.
        .executableTarget(
            name: "microhttpd-limit",
            cSettings: [.define("_GNU_SOURCE")],
            linkerSettings: [.linkedLibrary("microhttpd"), .linkedLibrary("sqlite3")]),
        // What the benchmarks know: readings, medians, aims, tables and drawings; pure.
        .target(name: "Benchmarking"),
        // epoll, for the benchmarks' own clients.
        .systemLibrary(name: "CEpoll"),
        // The benchmarks: start the servers, load them, measure them.
        .executableTarget(
            name: "storekeeper-bench",
            dependencies: [
                "Benchmarking", "CEpoll",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]),
    ],
    cLanguageStandard: .c11,
    cxxLanguageStandard: .cxx17
)

package.targets.append(.target(name: "TestSupport", dependencies: ["StateStore"], path: "Tests/TestSupport"))
for suite in [
    "StateJSON", "StateStore", "HTTPMessages", "StateHTTP", "MicroHTTP", "StateJournal", "StateServer",
    "StateServerTesting", "Showcase", "Benchmarking",
] {
    let target = package.targets.first { $0.name == suite }
    package.targets.append(
        .testTarget(
            name: suite + "Tests",
            // The example domains know no JSON; their tests look at it.
            dependencies: [.init(stringLiteral: suite), "TestSupport"] + (target?.dependencies ?? [])
                + (suite == "Showcase" ? ["StateJSON"] : []),
            // The contract as conversations.
            resources: suite == "StateServer" ? [.copy("Contract/Transcripts")] : []))
}
// Reads the source tree: the import table, reasons beside unchecked statements, what the Dockerfile copies.
package.targets.append(.testTarget(name: "PackageTests"))

// The micro-benchmarks see what adopters do not, so they are part of this package; but nobody else is to fetch what they
// are written with. STOREKEEPER_MICRO_BENCHMARKS=1 swift package --scratch-path .build-micro benchmark
if Context.environment["STOREKEEPER_MICRO_BENCHMARKS"] != nil {
    package.dependencies.append(.package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []))
    package.targets.append(
        .executableTarget(
            name: "MicroBenchmarks",
            dependencies: [
                "StateJSON", "StateStore",
                .product(name: "Benchmark", package: "benchmark"),
            ],
            path: "Tests/Benchmarks/MicroBenchmarks",
            plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]))
}

for target in package.targets
where [.regular, .executable, .test].contains(target.type)
    && !["CJemalloc", "CSimdjson", "microhttpd-limit"].contains(target.name)
{
    target.swiftSettings = [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .treatAllWarnings(as: .error),
    ]
}
