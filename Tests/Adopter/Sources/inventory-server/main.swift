import Foundation
import Inventory
import Logging
import StateServer

// Listens on the address that STOREKEEPER_LISTEN names, keeps its journal where STOREKEEPER_DATA says. The reducer traps at the item
// that INVENTORY_TRAP names.
let domain = Inventory(trap: ProcessInfo.processInfo.environment["INVENTORY_TRAP"])
let reading = try await SettingsReading()
try await StateServer(domain, settings: reading.settings, logger: Logger(label: "inventory")).runUntilSignal()
