import Foundation
import StateJSON
import Testing

@testable import Queries

/// The required tests of JSON Schema's own suite for draft 7 (Debian: json-schema-test-suite), which CI installs.
private let folder = URL(fileURLWithPath: "/usr/share/json-schema-test-suite/tests/draft7")

@Suite("JSON Schema's own suite", .enabled(if: FileManager.default.fileExists(atPath: folder.path)))
struct SuiteTests {
    private struct Group: Decodable {
        struct Test: Decodable {
            var description: String
            var data: JSONValue
            var valid: Bool
        }
        var description: String
        var schema: JSONValue
        var tests: [Test]
    }

    /// How many groups of a file are refused when they are loaded; all others hold.
    private static let refused = ["definitions.json": 2, "ref.json": 3, "refRemote.json": 7]

    @Test("every required test holds, or its schema is refused when it is loaded")
    func suite() throws {
        var refusals: [String: Int] = [:]
        var (count, groupsCount) = (0, 0)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".json") }
        for file in files.sorted() {
            let bytes = [UInt8](try Data(contentsOf: folder.appending(path: file)))
            for group in try JSON.decode([Group].self, from: bytes, ignoresUnknown: true) {
                groupsCount += 1
                let schema: JSONSchema
                do {
                    schema = try JSONSchema(group.schema)
                } catch {
                    refusals[file, default: 0] += 1
                    print("refused: \(file), \(group.description): \(error)")
                    continue
                }
                for test in group.tests {
                    let faults = schema.faults(of: test.data.text)
                    #expect(
                        faults.isEmpty == test.valid, "\(file), \(group.description), \(test.description): \(faults)")
                    count += 1
                }
            }
        }
        print("\(count) tests of \(groupsCount) groups hold; refused groups: \(refusals.values.reduce(0, +))")
        #expect(count >= 396)
        #expect(refusals == Self.refused)
    }
}
