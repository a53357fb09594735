// swift-tools-version: 6.2

import PackageDescription

// One authoritative state for many processes, over plain HTTP.
// The targets are in the order of their dependencies: each imports only targets above it. PackageTests checks this.

// The sanitizers have an allocator of their own, whose place jemalloc would take; .ci/sanitize sets this variable.
let allocator: [Target.Dependency] = Context.environment["BUILD_WITHOUT_JEMALLOC"] == nil ? ["CJemalloc"] : []

let package = Package(
    name: "storekeeper",
    platforms: [.macOS(.v15)],
    products: [
        // The JSON values in the interfaces of the others.
        .library(name: "StateJSON", targets: ["StateJSON"]),
        .library(name: "StateStore", targets: ["StateStore"]),
        .library(name: "StateServer", targets: ["StateServer"]),
        .library(name: "StateServerTesting", targets: ["StateServerTesting"]),
        // For other processes than the server: it needs neither libmicrohttpd nor a database.
        .library(name: "StateClient", targets: ["StateClient"]),
        .executable(name: "storekeeper", targets: ["storekeeper"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // libmicrohttpd (Debian: libmicrohttpd-dev). Only MicroHTTP sees it.
        .systemLibrary(name: "CMicroHTTPD", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        // simdjson (Debian: libsimdjson-dev) behind a C interface. Only StateJSON sees it.
        .target(name: "CSimdjson", linkerSettings: [.linkedLibrary("simdjson")]),
        // zlib and Zstandard (Debian: zlib1g-dev, libzstd-dev). Only HTTPMessages sees them.
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
        // SHA-256 of OpenSSL (Debian: libssl-dev), the hash of tokens. Only StateServer and CSignatures see it.
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        // XXH3, the hash of entity tags and of request heads (Debian: libxxhash-dev, header only).
        .systemLibrary(name: "CXXHash", providers: [.apt(["libxxhash-dev"])]),
        // JSON: typed decoding, encoding in a stable order, JSON Pointer, comparison, JSON Patch.
        .target(name: "StateJSON", dependencies: ["CSimdjson", "CXXHash"]),
        // A thread of one's own, on pthreads, and the turns of clients.
        .target(
            name: "Threads",
            dependencies: [
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ]),
        // The pure core: actions, reducers, slices, tables, middleware, selections, subscriptions, the turn.
        .target(
            name: "StateStore",
            dependencies: [
                "StateJSON", "Threads",
                .product(name: "DequeModule", package: "swift-collections"),
            ]),
        // The client for other processes, on URLSession: values, commits and dispatch with the types of the server's domain.
        .target(name: "StateClient", dependencies: ["StateJSON", "StateStore"]),
        // libcurl (Debian: libcurl4-openssl-dev), opened at run time. Only HTTPClient sees it.
        .systemLibrary(name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        // JavaScriptCore (Debian: libjavascriptcoregtk-4.1-0), opened at run time, with the reducers of a model in it. Only
        // Models sees it.
        .target(name: "CModelEngine", exclude: ["files"]),
        // RE2 (Debian: libre2-dev) behind a C interface, for patterns. Only Queries sees it.
        .target(name: "CRE2", linkerSettings: [.linkedLibrary("re2")]),
        // JSONPath (RFC 9535), queries on the members of a value, and checks of values by JSON Schema.
        .target(name: "Queries", dependencies: ["CRE2", "StateJSON", "StateStore"]),
        // The domain of one JSON document.
        .target(name: "Documents", dependencies: ["StateJSON", "StateStore"]),
        // States and reducers in JavaScript.
        .target(name: "Models", dependencies: ["CModelEngine", "StateJSON", "StateStore"]),
        // Requests to other servers, on libcurl.
        .target(name: "HTTPClient", dependencies: ["CCurl"]),
        // Requests and responses as values; entity tags, preferences, problems, content codings.
        .target(
            name: "HTTPMessages",
            dependencies: [
                "CZlib", "CZstd",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ]),
        // The files of the page and of the client for JavaScript, as bytes of the program. Only StateServer sees it.
        .target(name: "CPage", exclude: ["files"]),
        // The OpenAPI document's source as bytes of the program. Only StateHTTP sees it.
        .target(name: "CDocuments", exclude: ["openapi.json"]),
        // The HTTP contract as pure functions: a request into a plan, an outcome into a response. No socket, file or clock.
        .target(
            name: "StateHTTP",
            dependencies: [
                "CDocuments", "HTTPMessages", "Queries", "StateJSON", "StateStore",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ]),
        // Signatures of JSON Web Tokens verified by OpenSSL, behind a C interface. Only StateServer sees it.
        .target(name: "CSignatures", dependencies: ["CCrypto"]),
        // An HTTP server in Swift: libmicrohttpd inside an event loop of this package.
        .target(
            name: "MicroHTTP",
            dependencies: [
                "CMicroHTTPD", "CXXHash", "HTTPMessages", "Threads",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "HeapModule", package: "swift-collections"),
            ]),
        // The bytes of a turn in a journal, and the journal in SQLite: commits, snapshots and idempotency keys.
        .target(
            name: "StateJournal",
            dependencies: [
                "StateJSON", "StateStore",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ]),
        // The journal in etcd, which several servers share.
        .target(
            name: "StateCluster",
            dependencies: [
                "HTTPClient", "StateJSON", "StateJournal", "StateStore",
                .product(name: "DequeModule", package: "swift-collections"),
            ]),
        // The composition root: it builds and connects the parts, runs the server and stops it; the command line of a server.
        .target(
            name: "StateServer",
            dependencies: [
                "CCrypto", "CPage", "CSignatures", "CXXHash", "HTTPClient", "HTTPMessages", "MicroHTTP", "StateCluster",
                "StateHTTP", "StateJSON", "StateJournal", "StateStore", "Threads",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "CoreMetrics", package: "swift-metrics"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]),
        // The test kit for domains: a store that checks each change against the stated one, a manual clock, a client.
        .target(
            name: "StateServerTesting",
            dependencies: [
                "HTTPMessages", "StateJSON", "StateServer", "StateStore",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Logging", package: "swift-log"),
            ]),
        // The example domains, one file each.
        .target(name: "Showcase", dependencies: ["StateStore"]),
        // jemalloc (Debian: libjemalloc-dev) and its settings, in place of the C library's malloc. A POST takes a tenth less
        // CPU time with it, and the memory of thousands of closed connections goes back to the system.
        .target(name: "CJemalloc", linkerSettings: [.linkedLibrary("jemalloc")]),
        // The server of the example domains.
        .executableTarget(
            name: "storekeeper",
            dependencies: allocator + [
                "Documents", "HTTPClient", "Models", "Queries", "Showcase", "StateJSON", "StateServer", "StateStore",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ]),
    ],
    cLanguageStandard: .c11,
    cxxLanguageStandard: .cxx17
)

package.targets.append(
    .target(name: "TestSupport", dependencies: ["StateJSON", "StateStore"], path: "Tests/TestSupport"))
let resources: [String: [Resource]] = [
    // The transcripts of the contract, and vectors of Wycheproof, Apache License 2.0.
    "StateServer": [.copy("Contract/Transcripts"), .copy("JWT/wycheproof.json")],
    // A journal that 2487a34 wrote.
    "StateJournal": [.copy("Format2")],
    // The suite of RFC 9535.
    "Queries": [.copy("compliance.json")],
]
let further: [String: [Target.Dependency]] = [
    // The example domains do not import StateJSON; their tests compare JSON.
    "Showcase": ["StateJSON"],
    // The tests of the client have a server in their process.
    "StateClient": ["StateServer", "StateServerTesting"],
]
for suite in [
    "StateJSON", "StateStore", "HTTPClient", "HTTPMessages", "StateHTTP", "MicroHTTP", "StateCluster", "StateJournal",
    "StateServer", "StateServerTesting", "StateClient", "Showcase", "Documents", "Models", "Queries",
] {
    let target = package.targets.first { $0.name == suite }
    package.targets.append(
        .testTarget(
            name: suite + "Tests",
            dependencies: [.init(stringLiteral: suite), "TestSupport"] + (target?.dependencies ?? [])
                + (further[suite] ?? []),
            resources: resources[suite] ?? []))
}
// Checks the source tree: the import table, the reasons beside unchecked statements, the paths in the Dockerfile.
package.targets.append(.testTarget(name: "PackageTests"))

for target in package.targets
where [.regular, .executable, .test].contains(target.type)
    && !["CDocuments", "CJemalloc", "CModelEngine", "CPage", "CSignatures", "CSimdjson"].contains(target.name)
{
    target.swiftSettings = [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .treatAllWarnings(as: .error),
    ]
}
