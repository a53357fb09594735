import Inventory
import StateServer

// The settings of this program beside those of every server.
extension SettingKeys {
    var inventoryTrap: Setting<String> {
        Setting("inventory_trap", default: "none", "the item at which the reducer traps; none: it never does")
    }
}

await ServerCommand.main(settings: [\.inventoryTrap], version: "1.2.3") { settings in
    guard settings.inventoryTrap != "all" else { throw SettingsFault(description: "inventory_trap must be one item") }
    return Inventory(trap: settings.inventoryTrap == "none" ? nil : settings.inventoryTrap)
}
