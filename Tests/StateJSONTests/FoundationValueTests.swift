import Foundation
import Testing

@testable import StateJSON

@Suite("Types of Foundation")
struct FoundationValueTests {
    struct Everything: Codable, Equatable {
        var date: Date
        var data: Data
        var url: URL
        var decimal: Decimal
        var dates: [Date]
        var byDate: [Date: Decimal]
        var note: Date?
    }

    private func json(_ value: some Encodable) throws -> String {
        String(decoding: try JSON.encode(value), as: UTF8.self)
    }

    private func decode<Value: Decodable>(
        _ type: Value.Type, _ text: String
    ) throws -> Value {
        try JSONNode(JSONDocument(Array(text.utf8))).decode(type)
    }

    @Test("a date, bytes, a URL and a decimal number are text, base64, text and a number, wherever they stand")
    func spelling() throws {
        let value = Everything(
            date: Date(timeIntervalSince1970: 1_795_468_610.25), data: Data([1, 2, 255]),
            url: try #require(URL(string: "https://a.example/b?c=d#e")),
            decimal: try #require(Decimal(string: "12345678901234567890.123456789012345678")),
            dates: [Date(timeIntervalSince1970: 0)],
            byDate: [Date(timeIntervalSinceReferenceDate: 0): 2], note: Date(timeIntervalSince1970: -1))

        let text = try json(value)

        #expect(
            text
                == #"{"date":"2026-11-23T21:16:50.25Z","data":"AQL/","url":"https://a.example/b?c=d#e","decimal":12345678901234567890.123456789012345678,"dates":["1970-01-01T00:00:00Z"],"byDate":["2001-01-01T00:00:00Z",2],"note":"1969-12-31T23:59:59Z"}"#
        )
        #expect(try decode(Everything.self, text) == value)
    }

    @Test(
        "dates keep their instant, to the nanosecond near 2001 and exactly elsewhere",
        arguments: [
            (0, "2001-01-01T00:00:00Z"), (-0.25, "2000-12-31T23:59:59.75Z"),
            (0.000_000_001, "2001-01-01T00:00:00.000000001Z"),
            (812_345_678.1234567, "2026-09-29T03:34:38.1234567Z"), (-63_113_904_000, "0001-01-01T00:00:00Z"),
            (252_423_993_599, "9999-12-31T23:59:59Z"), (252_423_993_600, "+010000-01-01T00:00:00Z"),
            (-63_145_526_400.5, "-000001-12-31T23:59:59.5Z"), (-978_307_200, "1970-01-01T00:00:00Z"),
            (-31_622_400, "2000-01-01T00:00:00Z"), (-26_438_400, "2000-03-01T00:00:00Z"),
        ])
    func dates(interval: Double, text: String) throws {
        #expect(try json(Date(timeIntervalSinceReferenceDate: interval)) == "\"\(text)\"")
        #expect(try decode(Date.self, "\"\(text)\"").timeIntervalSinceReferenceDate == interval)
    }

    @Test("random dates come back as they were, and as Foundation reads them")
    func randomDates() throws {
        var generator = SystemRandomNumberGenerator()
        let formatter = ISO8601DateFormatter()
        for _ in 0..<5000 {
            let magnitude = pow(10, Double.random(in: 7...11.4, using: &generator))
            let interval = Double.random(in: -0.25...1, using: &generator) * magnitude
            let date = Date(timeIntervalSinceReferenceDate: interval)
            let text = try json(date)
            if abs(interval) >= 1e7 {
                #expect(try decode(Date.self, text) == date, "\(interval)")
            } else {
                #expect(abs(try decode(Date.self, text).timeIntervalSince(date)) < 1e-9, "\(interval)")
            }
            let whole = Date(timeIntervalSinceReferenceDate: interval.rounded())
            guard interval > -1e10 else { continue }
            #expect(try json(whole) == "\"\(formatter.string(from: whole))\"")
        }
    }

    @Test(
        "every number of milliseconds has a text",
        arguments: [
            (.min, "-292275055-05-16T16:47:04.192Z"), (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
            (-1000, "1969-12-31T23:59:59.000Z"), (-1, "1969-12-31T23:59:59.999Z"), (0, "1970-01-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"), (.max, "+292278994-08-17T07:12:55.807Z"),
        ] as [(Int64, String)])
    func milliseconds(number: Int64, text: String) {
        #expect(RFC3339.text(milliseconds: number) == text)
    }

    @Test("a date may come with an offset, small letters and many digits")
    func offsets() throws {
        let date = Date(timeIntervalSince1970: 1_795_468_610.5)
        for text in [
            "2026-11-23T21:16:50.5Z", "2026-11-23t22:46:50.500000000000000000000+01:30", "2026-11-23T21:16:50.5-00:00",
        ] {
            #expect(try decode(Date.self, "\"\(text)\"") == date, "\(text)")
        }
        #expect(try decode(Date.self, #""2016-12-31T23:59:60Z""#) == decode(Date.self, #""2017-01-01T00:00:00Z""#))
    }

    @Test(
        "what is spelled in another way is refused with what was expected",
        arguments: [
            "5", "null", "{}", #""2026-11-23""#, #""2026-11-23T21:16:50""#, #""2026-02-29T00:00:00Z""#,
            #""2026-13-01T00:00:00Z""#, #""2026-11-23T24:00:00Z""#, #""2026-11-23T21:16:50.Z""#,
            #""2026-11-23T21:16:50Zx""#,
        ])
    func refusedDates(text: String) {
        let fault = #expect(throws: JSONFault.self) { try decode(Date.self, text) }

        #expect(
            fault?.detail.hasPrefix("expected a date as RFC 3339 text, such as 2026-11-23T21:16:50Z, found") == true)
    }

    @Test("bytes that are no base64, text that is no URL and numbers that a Decimal does not hold are refused")
    func refused() {
        #expect(throws: JSONFault.self) { try decode(Data.self, #""AQI""#) }
        #expect(throws: JSONFault.self) { try decode(Data.self, "[1]") }
        #expect(throws: JSONFault.self) { try decode(URL.self, #""""#) }
        #expect(throws: JSONFault.self) { try decode(Decimal.self, #""1""#) }
        #expect(throws: JSONFault.self) { try decode(Decimal.self, "1e200") }
        #expect(throws: JSONFault.self) { try decode(Decimal.self, String(repeating: "123456789", count: 5)) }
        #expect(throws: EncodingError.self) { try JSON.encode(Decimal.nan) }
        #expect(throws: EncodingError.self) { try JSON.encode(Date(timeIntervalSinceReferenceDate: .infinity)) }
        #expect(throws: EncodingError.self) { try JSON.encode(Date(timeIntervalSinceReferenceDate: 1e15)) }
    }

    @Test(
        "a decimal number keeps all its digits",
        arguments: [
            "0", "-1", "0.1", "-0.000001", "12345678901234567890123456789012345678", "0.12345678901234567890",
            "99999999999999999999", "18446744073709551616", "-9223372036854775809", "79228162514264337593543950335",
        ])
    func decimals(text: String) throws {
        let decimal = try #require(Decimal(string: text))
        let spelled = text.contains(".") ? String(text.reversed().drop { $0 == "0" }.reversed()) : text

        #expect(try json(decimal) == spelled)
        #expect(try decode(Decimal.self, text) == decimal)
        #expect(
            try decode([String: Decimal].self, "{\"12 -3.5\": \(text), \"b\" :[] }".replacing(", \"b\" :[] ", with: ""))
                == ["12 -3.5": decimal])
    }

    @Test("a number with more digits than a double has passes through a tree, and through a patch, without a loss")
    func trees() throws {
        let number = "12345678901234567890.123456789"
        let text = #"{"a":[1.5,\#(number),"7.25\"",{"b":\#(number)}],"c":100000000000000000000,"d":9007199254740993.0}"#

        var tree = try JSONValue(parsing: Array(text.utf8))

        #expect(tree[pointer: "/a/1"] == .decimal(number))
        #expect(tree[pointer: "/a/0"] == .double(1.5))
        #expect(tree[pointer: "/d"] == .integer(9_007_199_254_740_993))
        #expect(try JSON.encode(tree) == tree.text)
        #expect(try decode(JSONValue.self, text) == tree)
        #expect(try JSONNode(JSONDocument(Array(text.utf8))).text == tree.text)
        #expect(tree[pointer: "/a/1"] == .double(12_345_678_901_234_567_890.123456789))
        #expect(tree[pointer: "/a/1"] != .decimal("12345678901234567890.123456788"))
        // The exponent is the smallest whole number of 64 bits.
        #expect(try JSONValue(parsing: Array("1e-9223372036854775808".utf8)) == .double(0))

        struct Holder: Codable { var amount: Decimal }
        let (old, new) = (Holder(amount: 1), Holder(amount: try #require(Decimal(string: number))))
        var patch = JSONPatch()
        patch.compare(try JSON.encode(old), try JSON.encode(new))
        tree = try JSONValue(parsing: JSON.encode(old))
        try tree.apply(patch: JSONValue(parsing: patch.text))
        #expect(tree.text == Array(#"{"amount":\#(number)}"#.utf8))
    }
}
