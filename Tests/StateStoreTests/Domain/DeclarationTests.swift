import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Declarations")
struct DeclarationTests {
    @Test("a forgotten part of the state is named")
    func forgotten() {
        struct Forgetful: Domain {
            struct State: StateType { var flag = false; var counter = 0; var names: [String] = [] }
            var reducer: some Reducer<State> { Field("flag", \.flag); Field("names", \.names) }
        }

        let fault = #expect(throws: DeclarationFault.self) { try CompiledDomain(Forgetful()) }

        #expect(fault?.description == "State.counter is not declared: add a Slice, Entities or Field for it")
    }

    @Test("a state that is neither declared nor Codable is named")
    func bare() {
        struct Bare: Domain {
            struct State: StateType { var table = 0 }
            struct Touch: Action { static let type = "touch" }
            var reducer: some Reducer<State> { On(Touch.self) { _, _ in } }
        }

        let fault = #expect(throws: DeclarationFault.self) { try CompiledDomain(Bare()) }

        #expect(fault?.description.contains("State is not Codable") == true)
    }

    @Test("one action type under two Swift types is named")
    func twice() {
        struct Twice: Domain {
            struct State: StateType, Codable { var value = 0 }
            struct One: Action { static let type = "x" }
            struct Two: Action { static let type = "x" }
            var reducer: some Reducer<State> { On(One.self) { _, _ in }; On(Two.self) { _, _ in } }
        }

        let fault = #expect(throws: DeclarationFault.self) { try CompiledDomain(Twice()) }

        #expect(fault?.description == #"the action type "x" is both One and Two"#)
    }
}
