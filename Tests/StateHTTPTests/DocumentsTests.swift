import StateJSON
import StateStore
import Testing

@testable import StateHTTP
@testable import TestSupport

@Suite("Descriptions")
struct DocumentsTests {
    private let contract: Contract

    init() throws { contract = Contract(catalogue: try CompiledDomain(Demo()).catalogue) }

    @Test("the descriptions that are kept have a bounded number of bytes; what was used longest ago goes first")
    func bound() {
        let kept = SharedDocuments(bytesMax: 3100)
        let catalogue = contract.catalogue
        func store(_ number: Int) -> VisibleStore {
            let type = catalogue.whole.types[number]
            let access = Access(Grant(dispatch: [type]), subject: "a", in: catalogue)
            return VisibleStore(scope: catalogue.whole, access: access)
        }
        func make(_ number: Int) {
            let bytes = [UInt8](repeating: 1, count: 500)
            _ = kept.documents(of: store(number)) { _ in
                StoreDocuments(catalogue: Encoded(bytes), openAPI: Encoded(bytes), types: Encoded([]))
            }
            kept.trim()
        }
        for number in 0..<3 { make(number) }
        _ = kept.known(of: store(0))

        // Other forms count, too.
        let openAPI = kept.known(of: store(2))?.openAPI
        _ = openAPI?.form("other") { _ in [UInt8](repeating: 2, count: 900) }
        kept.trim()
        #expect((0..<3).map { kept.known(of: store($0)) != nil } == [true, false, true])
        make(3)

        #expect((0..<4).map { kept.known(of: store($0)) != nil } == [false, false, true, true])
    }

    @Test("parts whose names equal each other as Swift strings do are two members of the schema")
    func equalNames() {
        let catalogue = contract.catalogue
        let access = Access(Grant(read: ["/labels/K", "/labels/\u{212A}"]), subject: "a", in: catalogue)

        // Each object of which the client sees parts is one of two: the object, or undefined.
        let schema = DomainSchemas(catalogue).state(of: catalogue.whole, in: access)["anyOf"].elements[0]

        let labels = schema["properties"]["labels"]["anyOf"].elements[0]["properties"].members
        #expect(labels["K"] != nil && labels["\u{212A}"] != nil)
        #expect(labels.members.count == 2)
    }

    @Test("types are found by names and patterns as a look at each of them finds them", arguments: 0..<20)
    func patterns(seed: Int) {
        var generator = SplitMix(seed: UInt64(seed))
        func text() -> String {
            String(
                (0..<Int.random(in: 1...4, using: &generator)).map { _ in "ab/".randomElement(using: &generator) ?? "a"
                })
        }
        for _ in 0..<100 {
            let patterns = (0..<6).map { _ in text() + (Bool.random(using: &generator) ? "*" : "") }
            let types = TypeSet(patterns)
            let type = text()

            #expect(
                types.contains(type)
                    == patterns.contains {
                        $0.hasSuffix("*") ? type.hasPrefix($0.dropLast()) : $0 == type
                    }, "\(patterns) \(type)")
        }
    }
}
