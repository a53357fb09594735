// swift-tools-version: 6.2

import PackageDescription

// An adapter by which ReSwift's own tests run against the store. The tests are ReSwift's, so they are not here: `run.py`
// copies this package and the tests to another folder, and names this checkout there by a variable.

let package = Package(
    name: "reswift-adapter",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "storekeeper", path: Context.environment["STOREKEEPER_CHECKOUT"] ?? "../..")
    ],
    targets: [
        // ReSwift's tests are of Swift 5: their states and subscribers need not be `Sendable`.
        .target(
            name: "ReSwift", dependencies: [.product(name: "StateStore", package: "storekeeper")],
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .testTarget(
            name: "ReSwiftTests", dependencies: ["ReSwift"], path: "ReSwiftTests",
            swiftSettings: [.swiftLanguageMode(.v5)]),
    ]
)
