import Inventory
import Logging
import StateServer

// Listens on the address that STOREKEEPER_LISTEN names, keeps its journal where STOREKEEPER_DATA says.
let reading = try await SettingsReading()
try await StateServer(Inventory(), settings: reading.settings, logger: Logger(label: "inventory")).runUntilSignal()
