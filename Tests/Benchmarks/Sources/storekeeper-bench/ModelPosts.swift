internal import Benchmarking
internal import Foundation

/// The scenarios of states without Swift: a model in JavaScript, and a document.
enum ModelPosts {
    static let scenarios = [counter, entity, document]

    /// A counter, and a table that is filled by its own action.
    private static let model = """
        const counter = createSlice({
          name: 'counter', initialState: { value: 0 },
          reducers: {
            add: {
              payload: { type: 'object', required: ['amount'], properties: { amount: { type: 'integer' } } },
              reducer(state, action) { state.value += action.payload.amount; },
            },
          },
        });
        const table = createSlice({
          name: 'table', initialState: {},
          reducers: {
            put: {
              payload: { type: 'object', required: ['id', 'value'] },
              reducer(state, { payload }) { state[payload.id] = { value: payload.value, note: 'one of many' }; },
            },
          },
        });
        """

    private static let counter = Scenario(
        "post-model", "POST of a counter action, in memory, 64 connections: in Swift and as a model in JavaScript"
    ) { bench, finding in
        let request = LoadRequest.post("/v1/actions", json: #"{"type":"counter/add","payload":{"amount":1}}"#)
        let swift = try ServerKind.startStorekeeper(
            bench.workplace, data: "none", settings: ["STOREKEEPER_DOMAIN": "counter"])
        defer { stop(swift, &finding) }
        let javascript = try start(bench)
        defer { stop(javascript, &finding) }
        try measure([("Swift", swift, [request]), ("model", javascript, [request])], bench, &finding)
        guard let ratio = finding.series[0].ratio(of: \.cpuMicroseconds, to: finding.series[1]) else { return }
        finding.judgements.append(Judgement("CPU in Swift / of the model", ratio, .atLeast, 0.6))
    }

    private static let entity = Scenario(
        "post-model-entity", "POST that changes one of 100,000 entities of a model, beside one of 100"
    ) { bench, finding in
        let manyCount = bench.effort.isQuick ? 1000 : 100_000
        let few = try start(bench)
        defer { stop(few, &finding) }
        let many = try start(bench)
        defer { stop(many, &finding) }
        try fill(few, 100)
        try fill(many, manyCount)
        try measure(
            [("one of 100", few, puts(among: 100)), ("one of \(manyCount)", many, puts(among: manyCount))], bench,
            &finding)
        guard let ratio = finding.series[1].ratio(of: \.cpuMicroseconds, to: finding.series[0]) else { return }
        finding.judgements.append(Judgement("CPU of one of \(manyCount) / of one of 100", ratio, .atMost, 2))
    }

    private static let document = Scenario(
        "post-document", "POST that sets a member of a document of 5 MB, 1 connection"
    ) { bench, finding in
        let count = bench.effort.isQuick ? 1000 : 90_000
        let server = try ServerKind.startStorekeeper(
            bench.workplace, data: "none",
            settings: [
                "STOREKEEPER_DOMAIN": "document", "STOREKEEPER_BODY_BYTES_MAX": "8000000",
                "STOREKEEPER_MEMORY_BYTES_MAX": "500000000",
            ])
        defer { stop(server, &finding) }
        let members = (0..<count).map { #""i\#($0)":{"name":"item \#($0)","tags":["a","b"],"value":\#($0)}"# }
        try Connection(server.port).ask(
            .post(
                "/v1/actions",
                json: #"{"type":"document/set","payload":{"path":"","value":{\#(members.joined(separator: ","))}}}"#))
        let requests = (0..<1000).map { turn in
            LoadRequest.post(
                "/v1/actions",
                json:
                    #"{"type":"document/set","payload":{"path":"/i\#(turn * 7919 % count)/value","value":\#(turn)}}"#)
        }
        try measure([("document", server, requests)], connections: 1, bench, &finding)
        guard let time = finding.series[0].median.p50Milliseconds else { return }
        finding.judgements.append(Judgement("median answer in milliseconds", time, .atMost, 1))
    }

    /// Measures loads of so many seconds in turn.
    private static func measure(
        _ loads: [(who: String, server: Server, requests: [LoadRequest])], connections: Int = 64, _ bench: Bench,
        _ finding: inout Finding
    ) throws {
        finding.series = loads.map { Series(who: $0.who) }
        for run in 0..<bench.effort.runs + 1 {
            for (index, load) in loads.enumerated() {
                let reading = try Wrk.load(
                    load.server, load.requests, connections: connections,
                    seconds: run == 0 ? 1 : bench.effort.seconds, in: bench.workplace)
                if run > 0 { finding.series[index].runs.append(reading) }
            }
        }
    }

    private static func start(_ bench: Bench) throws -> Server {
        let file = bench.workplace.path("model.js")
        try Data(model.utf8).write(to: file)
        return try ServerKind.startStorekeeper(
            bench.workplace, data: "none", settings: ["STOREKEEPER_MODEL": file.path])
    }

    private static func fill(_ server: Server, _ count: Int) throws {
        let connection = try Connection(server.port)
        for start in stride(from: 0, to: count, by: 1000) {
            try connection.load((start..<min(count, start + 1000)).map { put($0, 0) })
        }
    }

    private static func puts(among count: Int) -> [LoadRequest] {
        (1...1000).map { .post("/v1/actions", json: put($0 * 7919 % count, $0)) }
    }

    private static func put(_ id: Int, _ value: Int) -> String {
        #"{"type":"table/put","payload":{"id":"e\#(id)","value":\#(value)}}"#
    }
}
