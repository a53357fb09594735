package import StateJSON

extension Model {
    /// What a model is served with.
    package struct Serving: Sendable {
        /// Makes a check of a JSON Schema; it throws where the schema has a fault.
        package typealias Check =
            @Sendable (_ name: String, _ schema: JSONValue) throws(Fault) -> @Sendable ([UInt8]) -> [JSONFault]

        /// Reads the file.
        package var read: @Sendable () throws(Fault) -> [UInt8]
        /// The name of the file in faults.
        package var name: String
        /// How long a reducer may take of a processor; a view may take ten times as long.
        package var time: Duration
        /// How much memory the engine may have for a copy of the state.
        package var bytesMax: Int
        /// The parts of the recorded state that the file does not have any more.
        package var dropped: [JSONPointer]
        package var check: Check
        /// Takes what the file writes to the console, and the faults of its functions.
        package var log: @Sendable (String) -> Void

        package init(
            read: @escaping @Sendable () throws(Fault) -> [UInt8], name: String, time: Duration, bytesMax: Int,
            dropped: [JSONPointer] = [], check: @escaping Check, log: @escaping @Sendable (String) -> Void
        ) {
            (self.read, self.name, self.time, self.bytesMax) = (read, name, time, bytesMax)
            (self.dropped, self.check, self.log) = (dropped, check, log)
        }
    }
}
