import HTTPMessages
import Testing

@testable import StateHTTP
@testable import StateJSON
@testable import StateStore
@testable import TestSupport

/// Actions that decode in many ways: what is recorded of a body has to mean what the body means.
private struct Spellings: Domain {
    struct State: StateType, Codable { var count = 0 }

    struct Nothing: Action { static let type = "nothing" }
    struct Numbers: Action {
        static let type = "numbers"
        var byte: UInt8
        var small: Int8
        var large: UInt64
        var whole: Int
        var real: Double
        var single: Float
    }
    struct Texts: Action {
        static let type = "texts/add"
        var name: String
        var isDone: Bool
    }
    struct Wrapped: Action {
        static let type = "wrapped"
        struct Number: RawRepresentable, Codable, Sendable { var rawValue: Int }
        struct Word: RawRepresentable, Codable, Sendable { var rawValue: String }
        var number: Number
        var word: Word
    }
    /// Takes a number as a string, too.
    struct Flexible: Action {
        static let type = "flexible"
        var amount: Int
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            if let amount = try? container.decode(Int.self, forKey: .amount) {
                self.amount = amount
            } else {
                amount = Int(try container.decode(String.self, forKey: .amount)) ?? -1
            }
        }
        enum CodingKeys: CodingKey { case amount }
    }
    /// Looks at everything that a decoder offers.
    struct Curious: Action {
        static let type = "curious"
        var amount: Int
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            let amount = try container.decode(Int.self, forKey: .amount)
            switch amount {
            case 1: self.amount = container.allKeys.count
            case 2: self.amount = container.codingPath.count
            case 3: self.amount = try container.superDecoder(forKey: .amount).singleValueContainer().decode(Int.self)
            case 4: self.amount = try container.decodeIfPresent(Int.self, forKey: .amount) ?? -1
            case 5: self.amount = container.contains(.other) ? 1 : 0
            case 6:
                self.amount = (try? container.nestedContainer(keyedBy: CodingKeys.self, forKey: .amount)) == nil ? 6 : 7
            case 11: self.amount = (try? decoder.unkeyedContainer()) == nil ? 11 : 12
            case 8: self.amount = try [String: Int](from: decoder).count
            case 9: self.amount = (try? container.decode(String.self, forKey: .amount)) == nil ? 9 : 10
            case 10: self.amount = try container.decode(Double.self, forKey: .amount) == 10 ? 10 : 0
            default: self.amount = amount
            }
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(amount, forKey: .amount)
        }
        enum CodingKeys: CodingKey { case amount, other }
    }
    /// Refuses some values.
    struct Even: Action {
        static let type = "even"
        var amount: Int
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            amount = try container.decode(Int.self, forKey: .amount)
            guard amount % 7 == 0 else {
                throw DecodingError.dataCorruptedError(
                    forKey: .amount, in: container, debugDescription: "not of a week")
            }
        }
        enum CodingKeys: CodingKey { case amount }
    }

    var reducer: some Reducer<State> {
        Field("count", \.count)
        On(Nothing.self) { _, _ in }
        On(Numbers.self) { _, _ in }
        On(Texts.self) { _, _ in }
        On(Wrapped.self) { _, _ in }
        On(Flexible.self) { _, _ in }
        On(Curious.self) { _, _ in }
        On(Even.self) { _, _ in }
    }
}

@Suite("Recorded bodies")
struct RecordedBodyTests {
    /// What a body is read into.
    private struct Reading: Equatable {
        var action: String?
        var id: String?
        var meta: String?
        var sent: [UInt8]?
        var problem: String?
    }

    private static func read(_ body: [UInt8], _ contract: Contract, _ options: DispatchOptions) -> Reading {
        var reading = Reading()
        do throws(Problem) {
            let request = try contract.dispatch(Request(target: "/", body: body), options)
            guard case .one(let transaction) = request.content else { return reading }
            let item = transaction.items[0]
            if case .action(let action) = item.content {
                let payload = (try? JSON.encode(action)).map { String(decoding: $0, as: UTF8.self) } ?? ""
                reading.action = type(of: action).type + payload
            }
            reading.id = item.id
            reading.meta = item.meta.map { String(decoding: $0, as: UTF8.self) }
            reading.sent = item.sent
        } catch {
            // A sentence about the text counts its bytes.
            let isOfText = ["malformed-json", "number-out-of-range"].contains(error.code)
            reading.problem = "\(error.code) \(isOfText ? "" : "\(error.detail) \(error.parts.map(\.pointer))")"
        }
        return reading
    }

    private static let seeds = [
        #"{"type":"nothing"}"#, #"{"id":"mine","type":"nothing","meta":{}}"#,
        #"{"type":"numbers","payload":{"byte":255,"small":-128,"large":18446744073709551615,"whole":-9223372036854775808,"real":16777216,"single":7}}"#,
        #"{"type":"numbers","payload":{"byte":0,"small":9,"large":0,"whole":12,"real":-5,"single":0}}"#,
        #"{"type":"texts/add","payload":{"name":"é a/b","isDone":true},"meta":{"note":"as usual","n":[1,{"a":null}],"b":false}}"#,
        #"{"id":"a-1","type":"texts/add","payload":{"name":"","isDone":false}}"#,
        #"{"type":"wrapped","payload":{"number":12,"word":"x"},"meta":{"a":1,"b":2}}"#,
        #"{"type":"flexible","payload":{"amount":7}}"#, #"{"type":"flexible","payload":{"amount":"8"}}"#,
        #"{"type":"curious","payload":{"amount":3}}"#, #"{"type":"even","payload":{"amount":14}}"#,
        #"{"type":"even","payload":{"amount":15}}"#, #"{"type":"unknown","payload":{"amount":15}}"#,
    ]

    @Test("what is recorded of a body means what the body means, and so does the body with white space before it")
    func sameMeaning() throws {
        let contract = Contract(catalogue: try CompiledDomain(Spellings()).catalogue)
        let options = DispatchOptions(store: VisibleStore(scope: contract.catalogue.whole, access: Access()))
        var bodies = Self.seeds.map { Array($0.utf8) }
        bodies += (0...12).map { Array(#"{"type":"curious","payload":{"amount":\#($0)}}"#.utf8) }
        var generator = SplitMix(seed: 11)
        let bytes =
            Array("\"\"\\\\{}[],,::-+.eE00112789 \t\n/tfnaux\u{E9}".utf8) + [0, 0x1F, 0x7F, 0x80, 0xC0, 0xED, 0xFF]
        let pieces = [
            "\"meta\":{\"a\":1,\"a\":2}", "\"id\":\"x\",", ",\"payload\":{}", "\\u0061", "00", "-0", "1e2", "1.0",
            "\"a\":[[[[[1]]]]]", "true", "null", "184467440737095516160", "{}", "\"expect\":[],",
            "\"id\":\"aaaaaaaaaaaaaaaaaaaaaaaaaa:1\",",
        ].map { Array($0.utf8) }
        for _ in 0..<12_000 {
            var body = bodies[Int.random(in: 0..<13, using: &generator)]
            for _ in 0..<Int.random(in: 1...2, using: &generator) {
                let index = Int.random(in: 0...body.count, using: &generator)
                switch Int.random(in: 0..<6, using: &generator) {
                case 0: body.insert(bytes.randomElement(using: &generator) ?? 0, at: index)
                case 1 where index < body.count: body[index] = bytes.randomElement(using: &generator) ?? 0
                case 2 where index < body.count: body.remove(at: index)
                case 3: body.insert(contentsOf: pieces.randomElement(using: &generator) ?? [], at: index)
                case 4:
                    let other = bodies[Int.random(in: 0..<13, using: &generator)]
                    let cut = Int.random(in: 0...other.count, using: &generator)
                    body = Array(body[..<index] + other[cut...])
                default:
                    // A digit for a digit is the change that most likely leaves a body that is taken.
                    guard
                        let place = body.indices.filter({ (0x30...0x39).contains(body[$0]) })
                            .randomElement(using: &generator)
                    else { continue }
                    body[place] = UInt8.random(in: 0x30...0x39, using: &generator)
                }
            }
            bodies.append(body)
        }
        var takenCount = 0
        for body in bodies {
            let reading = Self.read(body, contract, options)
            #expect(reading == Self.read([0x20] + body, contract, options), "\(String(decoding: body, as: UTF8.self))")
            guard let sent = reading.sent else { continue }
            takenCount += 1
            #expect(reading == Self.read(sent, contract, options), "\(String(decoding: body, as: UTF8.self))")
        }
        #expect(takenCount > 900)
    }
}
