// swift-tools-version: 6.2

import PackageDescription

// A package as an adopter has it: a domain of its own, tested with the kit, served by the library.
// Elsewhere the dependency is a URL and a version; here it is the checkout around it.

let package = Package(
    name: "adopter",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "storekeeper", path: "../.."),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        .target(name: "Inventory", dependencies: [.product(name: "StateStore", package: "storekeeper")]),
        .executableTarget(
            name: "inventory-server",
            dependencies: [
                "Inventory",
                .product(name: "StateServer", package: "storekeeper"),
                .product(name: "Logging", package: "swift-log"),
            ]),
        .testTarget(
            name: "InventoryTests",
            dependencies: [
                "Inventory", .product(name: "StateServerTesting", package: "storekeeper"),
                .product(name: "StateStore", package: "storekeeper"),
            ]),
    ]
)
