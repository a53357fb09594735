import Foundation
import StateJSON
import Testing

@testable import Queries

/// The suite of the standard: github.com/jsonpath-standard/jsonpath-compliance-test-suite, under the BSD 2-clause license.
@Suite("JSONPath by the suite of the standard")
struct ComplianceTests {
    static let cases: [JSONObject] = {
        guard let url = Bundle.module.url(forResource: "compliance", withExtension: "json"),
            let bytes = try? Array(Data(contentsOf: url)),
            case .object(let suite)? = try? JSONValue(parsing: bytes, depthMax: 1000),
            case .array(let tests)? = suite["tests"]
        else { return [] }
        return tests.compactMap { if case .object(let test) = $0 { test } else { nil } }
    }()

    @Test("every case has the values of the standard, or is refused")
    func cases() throws {
        var failures: [String] = []
        for test in Self.cases {
            guard case .string(let name)? = test["name"], case .string(let selector)? = test["selector"] else {
                continue
            }
            let isInvalid = test["invalid_selector"] == .bool(true)
            do throws(QueryFault) {
                let path = try JSONPath(selector)
                guard !isInvalid else {
                    failures.append("\(name): \(selector) is taken")
                    continue
                }
                let found = try? path.values(in: test["document"] ?? .null)
                var allowed = [test["result"]].compactMap(\.self)
                if case .array(let results)? = test["results"] { allowed += results }
                if !allowed.contains(.array(found ?? [])) {
                    failures.append("\(name): \(selector) gives \(found ?? [])")
                }
            } catch {
                if !isInvalid { failures.append("\(name): \(selector) is refused at \(error.offset): \(error.detail)") }
            }
        }

        print("JSONPath: \(Self.cases.count) cases of the standard")
        #expect(Self.cases.count == 703)
        #expect(failures.isEmpty, "\(failures.count): \(failures.joined(separator: "\n"))")
    }
}
