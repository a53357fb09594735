import Foundation
import Glibc
import Logging
import Testing

@testable import StateServer

@Suite("The log", .timeLimit(.minutes(5)))
struct LogTests {
    /// A pipe, with both ends open.
    private func pipe() -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        #expect(Glibc.pipe(&ends) == 0)
        return (ends[0], ends[1])
    }

    private func read(_ descriptor: Int32, upTo count: Int = 1 << 20) -> String {
        var buffer = [UInt8](repeating: 0, count: count)
        return String(decoding: buffer[..<max(0, Glibc.read(descriptor, &buffer, count))], as: UTF8.self)
    }

    @Test("a full pipe blocks nobody; what does not fit is dropped, counted and told")
    func full() throws {
        let ends = pipe()
        let writer = LogWriter(descriptor: ends.write, bytesMax: 100_000)
        let line = Array(String(repeating: "x", count: 999).utf8) + [0x0A]

        let begun = ContinuousClock.now
        for _ in 0..<10_000 { writer.write(line) }
        #expect(begun.duration(to: .now) < .seconds(5))
        writer.flush(within: .milliseconds(10))
        var text = ""
        while !text.contains("log lines dropped") { text += read(ends.read) }

        let lines = text.split(separator: "\n")
        let dropped = try #require(lines.last?.firstMatch(of: /"count":"([0-9]+)"/)).1
        #expect(lines.count - 1 + (Int(dropped) ?? 0) == 10_000)
        #expect(lines.dropLast().allSatisfy { $0.utf8.count == 999 })
        writer.write(Array("again\n".utf8))
        #expect(read(ends.read) == "again\n")
    }

    @Test(
        "failures of a journal are one line at first, then one in ten seconds with their number, and one at their end")
    func failures() {
        var lines = FailureLines()
        let start = ContinuousClock.now
        #expect(lines.succeed() == nil)

        #expect(lines.fail(at: start) == 1)
        for number in 1...500 { #expect(lines.fail(at: start + .milliseconds(number * 19)) == nil) }
        #expect(lines.fail(at: start + .seconds(10)) == 501)
        #expect(lines.fail(at: start + .seconds(11)) == nil)
        #expect(lines.succeed() == 1)
        #expect(lines.succeed() == nil)
        // A disk on which small commits fit and others do not.
        #expect(lines.fail(at: start + .seconds(12)) == nil)
        #expect(lines.succeed() == nil)
        #expect(lines.fail(at: start + .seconds(20)) == 2)
        #expect(lines.succeed() == 0)
    }

    @Test("a line is one JSON object with a time that has its zone, and on a terminal it is text")
    func forms() throws {
        let ends = pipe()
        let writer = LogWriter(descriptor: ends.write)
        for form in [StateLogHandler.Form.json, .text] {
            var logger = Logger(label: "test") { _ in StateLogHandler(form: form, writer: writer) }
            logger[metadataKey: "a"] = "1"
            logger.info("ready", metadata: ["b": "two words", "c": "\"\n"])
        }
        writer.flush(within: .seconds(5))

        let lines = read(ends.read).split(separator: "\n")
        try #require(lines.count == 2)
        let object = try #require(try JSONSerialization.jsonObject(with: Data(lines[0].utf8)) as? [String: String])
        #expect(object["time"]?.hasSuffix("Z") == true)
        #expect(
            object.filter { $0.key != "time" } == [
                "level": "info", "message": "ready", "a": "1", "b": "two words", "c": "\"\n",
            ])
        #expect(lines[1].hasSuffix(#"Z info     ready a=1 b="two words" c="\"\n""#))
    }
}
