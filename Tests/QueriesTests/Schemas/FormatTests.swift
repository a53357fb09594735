import StateJSON
import Testing

@testable import Queries

@Suite("Formats")
struct FormatTests {
    @Test(
        "a text has a format, and its neighbours do not",
        arguments: [
            (
                "date-time",
                [
                    "2030-01-31T12:00:00Z", "2030-01-31t12:00:00.123456789z", "2000-02-29T23:59:59-08:00",
                    "1998-12-31T23:59:60Z", "1990-12-31T15:59:60-08:00",
                ],
                [
                    "2030-01-31", "2030-01-31 12:00:00Z", "2030-01-31T12:00:00", "2030-02-29T12:00:00Z",
                    "1900-02-29T12:00:00Z", "2030-13-01T12:00:00Z", "2030-01-31T24:00:00Z", "2030-01-31T12:60:00Z",
                    "2030-01-31T12:00:60Z", "2030-01-31T12:00:00.Z", "2030-01-31T12:00:00+24:00",
                    "2030-01-31T12:00:00+0100", "2030-01-31T12:00:00Z ", "+02030-01-31T12:00:00Z", "",
                ]
            ),
            (
                "date", ["2030-01-31", "2024-02-29"],
                ["2030-1-31", "2030-01-32", "2030-04-31", "2030-01-00", "20300131", "٢٠٣٠-٠١-٣١"]
            ),
            ("time", ["12:00:00Z", "00:00:00.5+05:30"], ["12:00:00", "12:00Z", "12:00:00,5Z", "1:00:00Z"]),
            (
                "email",
                [
                    "a@b", "a.b+c@example.com", "\"a b\\\"c\"@example.com", "a@[127.0.0.1]", "a@[IPv6:::1]",
                    "!#$%&'*+-/=?^_`{|}~@xn--bcher-kva.example",
                ],
                [
                    "a", "@b", "a@", "a@b@c", ".a@b", "a..b@c", "a.@b", "a b@c", "a@-b", "a@b-", "a@b..c", "a@[b]",
                    "ä@b",
                    "\"a@b", "a@127.0.0.1]",
                ]
            ),
            (
                "uri",
                [
                    "http://example.com/a?b#c", "urn:isbn:0", "mailto:a@b", "a:", "http://[::1]:80/",
                    "http://u:p@h:1/%7E",
                    "file:///a", "http://h?/:@?#/:@?",
                ],
                [
                    "", "a", "/a", "//h/a", "1a:b", ":a", "http://a b", "http://h/%7", "http://h/%zz", "http://[::1",
                    "a:#b#c",
                    "http://h:x/", "a:\\b", "http://ä", "http://h/<a>", "http://[v1.a]/", "http://a[b]/",
                ]
            ),
            (
                "uuid", ["123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-00000000000F"],
                [
                    "123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400",
                    "123e4567-e89b-12d3-a456-4266141740000", "g23e4567-e89b-12d3-a456-426614174000",
                    "{123e4567-e89b-12d3-a456-426614174000}",
                ]
            ),
            (
                "ipv4", ["0.0.0.0", "255.255.255.255"],
                [
                    "256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.", "1..2.3", "1.2.3.4 ", "1.2.3.x",
                    "1.2.3.1000",
                ]
            ),
            (
                "ipv6",
                [
                    "::", "::1", "1::", "1:2:3:4:5:6:7:8", "1::8", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4",
                    "2001:DB8::a:0:0",
                    "1:2:3:4:5:6:7::",
                ],
                [
                    "", ":", ":::", "1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "1:2:3:4:5:6:7:8::",
                    "::1%eth0",
                    "12345::", "::g", "1:2:3:4:5:6:7:1.2.3.4", "1:", ":1", "::1.2.3", "1.2.3.4::",
                ]
            ),
        ] as [(String, [String], [String])])
    func formats(name: String, fitting: [String], misfits: [String]) throws {
        let schema = try JSONSchema(["format": .string(name)])
        func faults(_ text: String) -> [JSONFault] { schema.faults(of: JSONValue.string(text).text) }

        #expect(schema.unknownFormats.isEmpty)
        for text in fitting { #expect(faults(text).isEmpty, "\(text)") }
        for text in misfits { #expect(faults(text).count == 1, "\(text)") }
        #expect(schema.faults(of: Array("[1]".utf8)).isEmpty)
    }

    @Test("a format that is not checked is named with its place")
    func unknown() throws {
        let schema = try JSONSchema(["properties": ["a": ["format": "hostname"], "b": ["format": "date"]]])

        #expect(schema.unknownFormats == [##""hostname" at /properties/a/format"##])
        #expect(schema.faults(of: Array(##"{"a":"-"}"##.utf8)).isEmpty)
        #expect(schema.faults(of: Array(##"{"b":"-"}"##.utf8)).map(\.detail) == ["expected a date, such as 2030-01-31"])
    }

    @Test(
        "a format does not matter where a part is as it was",
        arguments: [
            (##"{"list":["x","2030-01-01"]}"##, []), (##"{"list":["x"],"other":1}"##, []),
            (##"{"list":["x","y"]}"##, ["/list/1"]), (##"{"list":["y"]}"##, ["/list/0"]),
            (##"{"list":[1]}"##, ["/list/0"]),
            // Two faults, of which one is new.
            (##"{"list":["x"],"end":"x"}"##, ["/end"]),
            // Other rules hold for every part.
            (##"{"list":["x","x"]}"##, ["/list/0", "/list/1", "/list/1"]),
        ])
    func before(value: String, places: [String]) throws {
        let schema = try JSONSchema(
            [
                "properties": [
                    "list": ["uniqueItems": true, "items": ["type": "string", "format": "date"]],
                    "end": ["format": "date"],
                ]
            ])
        let old = Array(##"{"list":["x"]}"##.utf8)

        #expect(schema.faults(of: old).count == 1)
        #expect(schema.faults(of: Array(value.utf8), before: { old }).map(\.pointer.description).sorted() == places)
    }
}
