import Foundation
import Testing

@testable import StateHTTP

@Suite("The data of large events")
struct EventDataTests {
    private func lines(of text: String) -> [String] {
        String(decoding: EventData.lines(of: Array(text.utf8)[...]), as: UTF8.self).components(separatedBy: "\ndata: ")
    }

    @Test("a long value is split behind commas between its parts, and the lines make the same JSON")
    func split() {
        let element = #"{"a":"x,\"y,","b":[1,2,{"c":"\\"}]}"#
        let text = "[" + Array(repeating: element, count: 20_000).joined(separator: ",") + "]"

        let lines = lines(of: text)

        #expect(lines.joined() == text)
        #expect(lines.count == text.utf8.count / EventData.lineBytesMax + 1)
        for line in lines.dropLast() {
            #expect(line.hasSuffix(","))
            #expect(line.utf8.count <= EventData.lineBytesMax + 20)
            // Outside a string, the quotes that no backslash precedes are even in number.
            let quotes = line.replacing(#"\\"#, with: "").replacing(#"\""#, with: "").count { $0 == "\"" }
            #expect(quotes.isMultiple(of: 2))
        }
    }

    @Test("a string is never split, however long it is and whatever stands in it")
    func strings() {
        let long = String(repeating: #",\",\\"#, count: 100_000)
        #expect(lines(of: #"["\#(long)",1]"#) == [#"["\#(long)","#, "1]"])
        #expect(lines(of: "[1,2,3]") == ["[1,2,3]"])
    }
}
