package import StateJSON

extension Model {
    package struct Serving: Sendable {
        package enum Event: Sendable {
            case console(String)
            case failed(String)
            /// The code is a `migrate` that adds the members.
            case lacks(members: [JSONPointer], code: String)
        }

        /// Parts that are the same in the value before may break rules that are newer than they are.
        package typealias Faults = @Sendable (_ json: [UInt8], _ before: (() -> [UInt8])?) -> [JSONFault]

        package typealias Check = @Sendable (_ name: String, _ schema: JSONValue) throws(Fault) -> Faults

        package var read: @Sendable () throws(Fault) -> [UInt8]
        package var name: String
        /// Processor time; a view may take ten times as long.
        package var time: Duration
        package var bytesMax: Int
        package var answerBytesMax: Int
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
