package import StateJSON

extension Model {
    /// The circumstances in which a model is served.
    package struct Serving: Sendable {
        /// An event that an operator wants to know.
        package enum Event: Sendable {
            /// The file has written a line to the console.
            case console(String)
            /// One of its functions has a fault.
            case failed(String)
            /// The recorded state has not all members of the initial state; the code is a `migrate` that adds them.
            case lacks(members: [JSONPointer], code: String)
        }

        /// Looks for reasons why a value may not be so.
        ///
        /// The parts that are the same in the value before, where there is one, may break rules that are newer than they are.
        package typealias Faults = @Sendable (_ json: [UInt8], _ before: (() -> [UInt8])?) -> [JSONFault]

        /// Makes a check of a JSON Schema; it throws where the schema has a fault.
        package typealias Check = @Sendable (_ name: String, _ schema: JSONValue) throws(Fault) -> Faults

        package var read: @Sendable () throws(Fault) -> [UInt8]
        /// The name of the file in faults.
        package var name: String
        /// How long a reducer may take of a processor; a view may take ten times as long.
        package var time: Duration
        /// How much memory the engine may have for a copy of the state.
        package var bytesMax: Int
        /// How many bytes of JSON a reducer or a view may make at once.
        package var answerBytesMax: Int
        /// The parts of the recorded state that the file does not have any more.
        package var dropped: [JSONPointer]
        package var check: Check
        package var report: @Sendable (Event) -> Void

        package init(
            read: @escaping @Sendable () throws(Fault) -> [UInt8], name: String, time: Duration, bytesMax: Int,
            answerBytesMax: Int = Model.answerBytesMax, dropped: [JSONPointer] = [], check: @escaping Check,
            report: @escaping @Sendable (Event) -> Void
        ) {
            (self.read, self.name, self.time, self.bytesMax) = (read, name, time, bytesMax)
            (self.answerBytesMax, self.dropped) = (answerBytesMax, dropped)
            (self.check, self.report) = (check, report)
        }
    }
}
