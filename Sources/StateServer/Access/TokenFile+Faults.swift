internal import FoundationEssentials
internal import StateJSON

extension TokenFile {
    /// The fault of a file that is not JSON, or not the JSON of tokens, with its place in the file.
    func fault(of error: any Error, in bytes: Data) -> SettingsFault {
        do {
            _ = try JSONValue(parsing: [UInt8](bytes))
        } catch {
            return SettingsFault(description: "the token file \(path) is not JSON: \(error.detail)")
        }
        guard let fault = (error as? DecodingError).map(JSONFault.init) else {
            return SettingsFault(description: "the token file \(path) cannot be read: \(error)")
        }
        let place = fault.pointer.tokens.isEmpty ? "" : " at \(fault.pointer)"
        return SettingsFault(description: "the token file \(path) has a fault\(place): \(fault.detail)")
    }
}
