import Dispatch
import StateJSON
import Testing

@testable import Models
@testable import StateStore

private let text = """
    import { createSlice } from '@reduxjs/toolkit';
    import { reject, schedule, unschedule } from 'storekeeper';
    const jobs = createSlice({
      name: 'jobs', initialState: { done: [] },
      reducers: {
        take(state, { payload }) {
          schedule(jobs.actions.giveUp({ id: payload.id, by: state.done }), { after: payload.after, name: payload.id });
          if (payload.refused) reject('jobs.refused');
          if (payload.broken) throw new Error('always');
        },
        at(state, { payload }) { schedule(jobs.actions.giveUp({}), { at: payload.at }); },
        wrong(state, { payload }) { schedule(payload.action, payload.when); },
        finish(state, { payload }) { unschedule(payload.id); state.done.push(payload.id); },
        giveUp: { internal: true, reducer(state, { payload }) { state.done.push(payload.id ?? 'nobody'); } },
      },
    });
    """

@Suite("A model that schedules", .enabled(if: hasEngine))
struct ModelScheduleTests {
    private func store() throws -> UntypedStore {
        let model = try ServedModel(
            .init(
                read: { Array(text.utf8) }, name: "model.js", time: .seconds(1), bytesMax: 1 << 30,
                check: { _, _ in { _, _ in [] } }, report: { _ in }))
        return UntypedStore(domain: try CompiledDomain(model), now: { Timestamp(milliseconds: 5000) })
    }

    private func dispatch(_ type: String, _ payload: String, to store: UntypedStore) throws -> Outcome {
        let node = JSONNode(try JSONDocument(Array(#"{"type":"jobs/\#(type)","payload":\#(payload)}"#.utf8)))
        return store.submitNow(Transaction([.init(try store.domain.action(of: node))], subject: "ada"))
    }

    @Test("what a reducer schedules is part of its commit, under its name and its sender")
    func schedules() throws {
        let store = try store()

        _ = try dispatch("take", #"{"id":"a","after":1.5}"#, to: store)
        _ = try dispatch("take", #"{"id":"b","after":60}"#, to: store)
        _ = try dispatch("at", #"{"at":"2030-01-31T12:00:00+01:00"}"#, to: store)

        var found: [String] = []
        store.latest.schedule.visit {
            found.append("\($0.due.milliseconds) \($0.name.by ?? "") \(String(decoding: $0.action, as: UTF8.self))")
        }
        #expect(
            found == [
                #"6500 ada {"type":"jobs/giveUp","payload":{"id":"a","by":[]}}"#,
                #"65000 ada {"type":"jobs/giveUp","payload":{"id":"b","by":[]}}"#,
                #"1896087600000 ada {"type":"jobs/giveUp","payload":{}}"#,
            ])
        _ = try dispatch("finish", #"{"id":"a"}"#, to: store)
        #expect(store.latest.schedule.count == 2)
    }

    @Test("an internal action is scheduled, and is not among those of clients")
    func internalActions() throws {
        let store = try store()

        #expect(store.domain.catalogue.types.contains("jobs/giveUp"))
        #expect(
            store.domain.catalogue.whole.open.map(\.type) == ["jobs/at", "jobs/finish", "jobs/take", "jobs/wrong"])
        #expect(try dispatch("take", #"{"id":"a","after":1}"#, to: store).isCommit)
    }

    @Test(
        "what says internal otherwise than by true or false is refused with its line",
        arguments: [#"{ internal: 1, reducer() {} }"#, #"{ internl: true, reducer() {} }"#])
    func misspelled(declared: String) {
        let text = "createSlice({ name: 's', initialState: {}, reducers: {\n a: \(declared) } });"

        #expect(throws: Model.Fault.self) { try Model(Array(text.utf8), name: "model.js") }
    }

    @Test("createAction can make an internal action, and a file that makes one internal declares another domain")
    func created() throws {
        func model(_ options: String) throws -> Model {
            try Model(
                Array(
                    """
                    const a = createAction('a', \(options));
                    export default createReducer({ n: 0 }, (builder) => builder.addCase(a, (state) => { state.n += 1; }));
                    """.utf8), name: "model.js")
        }

        #expect(try model("{ internal: true }").description.actions.map(\.isInternal) == [true])
        #expect(try model("{ payload: { type: 'string' } }").description.actions.map(\.isInternal) == [false])
    }

    @Test("a reducer that refuses, or has a fault, schedules nothing")
    func refused() throws {
        let store = try store()

        let refused = try dispatch("take", #"{"id":"a","after":1,"refused":true}"#, to: store)
        let broken = try dispatch("take", #"{"id":"a","after":1,"broken":true}"#, to: store)

        #expect(refused.isRejection("jobs.refused"))
        #expect(broken.isRejection("reducer-fault"))
        #expect(store.latest.schedule.isEmpty && store.version == 0)
        #expect(try dispatch("take", #"{"id":"b","after":1}"#, to: store).isCommit)
        #expect(store.latest.schedule.count == 1)
    }

    @Test("a time of zero is a follow-up in a later turn")
    func followUp() throws {
        let store = try store()

        _ = try dispatch("take", #"{"id":"a","after":1,"name":"x"}"#, to: store)
        _ = try dispatch(
            "wrong", #"{"action":{"type":"jobs/giveUp","payload":{"id":"z"}},"when":{"after":0}}"#, to: store)
        while !store.isAtRest { store.queue.sync {} }

        #expect(store.latest.tree.value[pointer: "/jobs/done"] == ["z"])
        #expect(store.latest.schedule.count == 1)
    }

    @Test(
        "a schedule that is none is a fault of the reducer",
        arguments: [
            #"{"action":{"type":"jobs/giveUp"},"when":{"after":-1}}"#, #"{"action":{"type":"jobs/giveUp"},"when":{}}"#,
            #"{"action":{"type":"jobs/giveUp"},"when":{"at":"tomorrow"}}"#, #"{"action":{},"when":{"after":1}}"#,
            #"{"action":{"type":"jobs/giveUp"},"when":{"after":1,"at":"2030-01-31T12:00:00Z"}}"#,
            #"{"action":{"type":"jobs/none"},"when":{"after":1}}"#,
            #"{"action":{"type":"jobs/giveUp"},"when":{"after":1e300}}"#,
        ])
    func faults(payload: String) throws {
        let store = try store()

        let outcome = try dispatch("wrong", payload, to: store)

        #expect(!outcome.isCommit)
        #expect(store.latest.schedule.isEmpty)
    }
}

extension Outcome {
    fileprivate var isCommit: Bool { if case .committed = self { true } else { false } }
    fileprivate func isRejection(_ code: String) -> Bool {
        if case .rejected(let rejection, _) = self { rejection.code == code } else { false }
    }
}
