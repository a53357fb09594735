import Foundation
import Testing

@testable import StateHTTP
@testable import StateJSON
@testable import StateStore
@testable import TestSupport

/// Action types with and without a plain form.
private enum Plain {
    struct Nothing: Action { static let type = "nothing" }
    struct Everything: Action, Equatable {
        static let type = "every\"thing"
        var name: String
        var count: Int
        var size: UInt8
        var weight: Double
        var share: Float
        var isDone: Bool
    }
}

private enum Other {
    struct WithOptional: Action { static let type = "optional"; var count: Int; var note: String? }
    struct WithID: Action { static let type = "uuid"; var id: UUID }
    struct WithList: Action { static let type = "list"; var list: [Int] }
    struct WithObject: Action { static let type = "object"; var part: Demo.Counter }
    struct WithCase: Action { static let type = "case"; var order: Demo.Order }
    struct WithLowerCase: Action { static let type = "lower"; var name: LowerCase }
    struct LowerCase: Codable, Sendable {
        var text: String
        init(from decoder: any Decoder) throws {
            text = try decoder.singleValueContainer().decode(String.self).lowercased()
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(text)
        }
    }
    struct WithSecret: Action {
        static let type = "secret"
        var name: String
        var password: String
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(name, forKey: .name)
        }
        enum CodingKeys: String, CodingKey { case name, password }
    }
    struct OtherOrder: Action {
        static let type = "order"
        var first: Int
        var second: Int
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(second, forKey: .second)
            try container.encode(first, forKey: .first)
        }
        enum CodingKeys: String, CodingKey { case first, second }
    }
}

@Suite("Plain forms of actions")
struct PlainFormTests {
    @Test("a type whose encoding differs from what it decodes, or whose fields are not plain, has no plain form")
    func types() {
        let others: [any Action.Type] = [
            Other.WithOptional.self, Other.WithID.self, Other.WithList.self, Other.WithObject.self, Other.WithCase.self,
            Other.WithLowerCase.self, Other.WithSecret.self, Other.OtherOrder.self,
        ]
        for type in others { #expect(PlainForm.of(type) == nil, "\(type)") }
        #expect(PlainForm.of(Plain.Nothing.self) != nil)
        #expect(PlainForm.of(Plain.Everything.self) != nil)
    }

    @Test("a body that matches is, byte by byte, what the store would record")
    func matching() throws {
        let form = try #require(PlainForm.of(Plain.Everything.self))
        var generator = SplitMix(seed: 7)
        // Each list begins with spellings that a body may have; the last ones are other spellings of a value.
        let strings = ["\"\"", "\"a b\"", "\"\u{E9}\u{2028}/'\"", "\"\\u0061\"", "\"\\n\"", "\"\\/\""]
        let counts = ["0", "-1", "12", "9223372036854775807", "-9223372036854775808", "-0", "1.0", "1e2", "10E0"]
        let numbers = ["0", "-3", "9999999", "12345678", "0.5", "1.0", "-0", "1e3", "-0.0"]
        let lead = ["{", "{\"id\":\"a.b\",", "{\"id\":\"\\u0061\",", "{ ", "{\"meta\":{},"]
        let tail = [
            "}}", "},\"meta\":{\"a\":[1,{\"b\":null}],\"c\":\"d e\"}}", "},\"meta\":{\"a\":{},\"b\":[-12,true]}}",
            "},\"meta\":{\"a\":1.0}}", "},\"meta\":{\"a\":1e3}}", "},\"meta\":{\"a\": 1}}",
            "},\"meta\":{\"a\":\"\\u0061\"}}", "},\"meta\":{\"a\":-0}}", "},\"meta\":{}}", "}}\n", "} }",
            ",\"more\":1}}", "},\"id\":\"x\"}",
        ]
        var (matched, unmatched) = (0, 0)
        for _ in 0..<20_000 {
            func one(_ list: [String]) -> String { list.randomElement(using: &generator) ?? "" }
            func mostly(_ list: [String]) -> String {
                Int.random(in: 0..<8, using: &generator) == 0 ? one(list) : one(Array(list.prefix(2)))
            }
            let comma = mostly([",", ",", ", "])
            let body = Array(
                (mostly(lead) + "\"type\":\"every\\\"thing\",\"payload\":{\"name\":" + mostly(strings) + comma
                    + "\"count\":" + mostly(counts) + ",\"size\":" + one(["0", "255", "7"]) + ",\"weight\":"
                    + mostly(numbers) + ",\"share\":" + mostly(numbers) + ",\"isDone\":" + one(["true", "false"])
                    + (Bool.random(using: &generator) ? "}}" : one(tail))).utf8)
            guard let match = form.match(body) else {
                unmatched += 1
                continue
            }
            matched += 1
            let members = try #require(JSONNode(try JSONDocument(body, depthMax: 10)).members)
            let payload = members.first { $0.key == "payload" }?.value
            let action = try Plain.Everything.decode(payload: payload) as Plain.Everything
            var expected = "{"
            if let id = members.first(where: { $0.key == "id" })?.value.string { expected += "\"id\":\"\(id)\"," }
            expected += "\"type\":\"every\\\"thing\",\"payload\":"
            expected += String(decoding: try JSON.encode(action), as: UTF8.self)
            if let meta = members.first(where: { $0.key == "meta" })?.value {
                expected += ",\"meta\":" + String(decoding: meta.text, as: UTF8.self)
                #expect(match.meta.map { Array(body[$0]) } == meta.text)
            } else {
                #expect(match.meta == nil)
            }
            #expect(String(decoding: body, as: UTF8.self) == expected + "}")
        }
        #expect(matched > 2000 && unmatched > 2000)
    }

    @Test("an action without fields matches without a payload only")
    func noFields() throws {
        let form = try #require(PlainForm.of(Plain.Nothing.self))

        for (body, isPlain) in [
            (#"{"type":"nothing"}"#, true), (#"{"id":"a","type":"nothing"}"#, true),
            (#"{"type":"nothing","payload":{}}"#, false), (#"{"type":"nothing" }"#, false), ("", false), ("{", false),
            (#"{"id":"a"#, false), (#"{"type":"nothin"#, false), (#"{"type":"nothing"}}"#, false),
            (#"{"type":"nothing","meta":{"a":[]}}"#, true), (#"{"type":"nothing","meta":{"a":[}"#, false),
        ] { #expect((form.match(Array(body.utf8)) != nil) == isPlain, "\(body)") }
    }
}
