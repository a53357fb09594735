internal import FoundationEssentials
public import Logging
internal import StateJSON
internal import SystemPackage

/// Writes each message as one JSON object on one line of standard error.
///
/// The message is a fixed phrase; what varies is metadata, as members of the object.
public struct JSONLogHandler: LogHandler {
    /// What is written.
    public var logLevel: Logger.Level = .info
    /// What every line has.
    public var metadata: Logger.Metadata = [:]
    private let label: String

    /// Makes a handler for a logger.
    public init(label: String) {
        self.label = label
    }

    /// A member that every line has.
    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Writes a line.
    public func log(event: LogEvent) {
        var writer = JSONWriter()
        writer.raw("{\"time\":")
        writer.string(Date().formatted(.iso8601.year().month().day().time(includingFractionalSeconds: true)))
        writer.raw(",\"level\":")
        writer.string(event.level.rawValue)
        writer.raw(",\"message\":")
        writer.string(event.message.description)
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        for (key, value) in all.sorted(by: { $0.key < $1.key }) {
            writer.byte(UInt8(ascii: ","))
            writer.string(key)
            writer.byte(UInt8(ascii: ":"))
            writer.string(value.description)
        }
        writer.raw("}\n")
        // One call for the whole line, so that lines of several threads do not mix.
        // When standard error is gone there is nobody left to tell.
        _ = try? FileDescriptor.standardError.writeAll(writer.bytes)
    }
}
