import Foundation
import StateJSON
import Testing

@testable import Queries

/// The suite of the standard: github.com/jsonpath-standard/jsonpath-compliance-test-suite, under the BSD 2-clause license.
///
/// The file has a case on each line, with the members that this test reads.
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

    /// The path of a query of the standard, whose root is the member of a filter.
    private func segments(_ selector: String) throws(MemberQuery.Fault) -> ([JSONPath.Segment], [LiteralPattern])? {
        guard selector.hasPrefix("$"), selector.last?.isWhitespace == false else { return nil }
        var parser = JSONPathParser("@" + selector.dropFirst())
        guard case .exists(let path) = try parser.wholeCondition() else { return nil }
        return (path.segments, parser.patterns)
    }

    @Test("every case without a root inside has the values of the standard, or is refused")
    func cases() throws {
        var (failures, count) = ([String](), 0)
        for test in Self.cases {
            guard case .string(let name)? = test["name"], case .string(let selector)? = test["selector"] else {
                continue
            }
            let isInvalid = test["invalid_selector"] == .bool(true)
            do throws(MemberQuery.Fault) {
                guard let (segments, patterns) = try segments(selector), !isInvalid else {
                    if !isInvalid { failures.append("\(name): \(selector) is not taken") }
                    continue
                }
                let found = try? patterns.compiled(isQuick: false)
                var evaluation = JSONPathEvaluation(patterns: found ?? [], stepsMax: .max, isQuick: false)
                let values = try? evaluation.values(at: segments, from: test["document"] ?? .null)
                var allowed = [test["result"]].compactMap(\.self)
                if case .array(let results)? = test["results"] { allowed += results }
                if !allowed.contains(.array(values ?? [])) {
                    failures.append("\(name): \(selector) gives \(values ?? [])")
                }
                count += 1
            } catch {
                // A filter has no root, and refuses a pattern that cannot be read.
                let isKnown = error.detail.hasPrefix("$ is not") || error.detail == LiteralPattern.expectation
                if !isInvalid, !isKnown {
                    failures.append("\(name): \(selector) is refused at \(error.offset): \(error.detail)")
                }
            }
        }

        print("JSONPath: \(count) cases of the standard")
        #expect(Self.cases.count == 703)
        #expect(failures.isEmpty, "\(failures.count): \(failures.joined(separator: "\n"))")
    }
}
