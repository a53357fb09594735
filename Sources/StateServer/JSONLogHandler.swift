internal import FoundationEssentials
public import Logging
internal import StateJSON
internal import SystemPackage

/// Writes each message as one JSON object on one line of standard error.
///
/// The message is a fixed phrase; the metadata are further members of the object.
public struct JSONLogHandler: LogHandler {
    /// The lowest level that the handler writes.
    public var logLevel: Logger.Level = .info
    /// The metadata of every line.
    public var metadata: Logger.Metadata = [:]
    private let label: String

    /// Makes a handler for the logger with a label.
    public init(label: String) {
        self.label = label
    }

    /// The metadata of every line under a key.
    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Writes an event as one line.
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
        // One system call for the line keeps the lines of several threads apart. An error has nowhere to go: standard error
        // itself has failed.
        _ = try? FileDescriptor.standardError.writeAll(writer.bytes)
    }
}
