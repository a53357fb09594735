// swift-tools-version: 6.2

import PackageDescription

// A package as an adopter has it: a domain of its own, tested with the kit, served by the library.
// Elsewhere the dependency is a URL and a version; here it is the checkout around it.

let package = Package(
    name: "adopter",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "storekeeper", path: "../..")
    ],
    targets: [
        .target(name: "Inventory", dependencies: [.product(name: "StateStore", package: "storekeeper")]),
        .executableTarget(
            name: "inventory-server",
            dependencies: ["Inventory", .product(name: "StateServer", package: "storekeeper")]),
        .executableTarget(
            name: "inventory-follower",
            dependencies: ["Inventory", .product(name: "StateClient", package: "storekeeper")]),
        .testTarget(
            name: "InventoryTests",
            dependencies: [
                "Inventory", .product(name: "StateJSON", package: "storekeeper"),
                .product(name: "StateServer", package: "storekeeper"),
                .product(name: "StateServerTesting", package: "storekeeper"),
                .product(name: "StateStore", package: "storekeeper"),
            ]),
    ]
)
