package import StateJSON

/// The circumstances in which a view is evaluated.
public struct ViewContext: Sendable {
    /// The subject of the client for whom the view is evaluated, or nil if the server does not ask who the clients are.
    public let subject: String?
}

/// The parameters and the subject that a view is evaluated for.
///
/// They are part of a selection's identity, and so of every cache of its bytes: nobody gets a value that was computed for
/// another subject.
package struct ViewArguments: Hashable, Sendable {
    private let object: ExactText?
    private let name: ExactText?

    package static let none = ViewArguments()

    /// - Parameter subject: the client's subject, if the view takes it and there is one.
    package init(parameters: JSONValue? = nil, subject: String? = nil) {
        object = parameters.map { ExactText(String(decoding: Self.sorted($0).text, as: UTF8.self)) }
        name = ExactText(optional: subject)
    }

    /// Compact UTF-8 JSON: an object with its members in the order of their names.
    package var parameters: [UInt8] { Array((object?.text ?? "{}").utf8) }
    package var subject: String? { name?.text }
    var isEmpty: Bool { self == .none }

    private static func sorted(_ parameters: JSONValue) -> JSONValue {
        guard case .object(let members) = parameters else { return parameters }
        var object = JSONObject()
        for (name, value) in members.members.sorted(by: { $0.key < $1.key }) { object[name] = value }
        return .object(object)
    }
}

package enum ViewParameters: Sendable {
    case typed(any (Decodable & Sendable).Type)
    /// The properties of a JSON Schema; `faults` says why an object, as UTF-8 JSON, does not fit it.
    case declared(JSONValue, faults: @Sendable (_ object: [UInt8]) -> [JSONFault])

    package func faults(in object: [UInt8]) -> [JSONFault] {
        func faults<Value: Decodable>(_ type: Value.Type) -> [JSONFault] {
            do throws(JSONFault) {
                _ = try JSON.decode(type, from: object)
                return []
            } catch { return [error] }
        }
        return switch self {
        case .typed(let type): faults(type)
        case .declared(_, let faults): faults(object)
        }
    }

    package enum Kind: String, Sendable, CaseIterable {
        case boolean, integer, number, string

        init?(of value: JSONValue) {
            switch value {
            case .bool: self = .boolean
            case .integer, .unsigned: self = .integer
            case .double, .decimal: self = .number
            case .string: self = .string
            case .null, .array, .object: return nil
            }
        }
    }

    /// The kinds of the values that a schema allows; a schema that names none allows texts.
    package static func kinds(of schema: JSONValue) -> Set<Kind> {
        guard case .object(let members) = schema else { return [.string] }
        if members["$ref"] != nil { return [] }
        switch members["type"] {
        case .string(let name)?: return Set([name].compactMap(Kind.init(rawValue:)))
        case .array(let names)?:
            return Set(names.compactMap { if case .string(let name) = $0 { Kind(rawValue: name) } else { nil } })
        default: break
        }
        for name in ["anyOf", "oneOf"] {
            if case .array(let choices)? = members[name] { return Set(choices.flatMap(kinds)) }
        }
        if case .array(let values)? = members["enum"] { return Set(values.compactMap(Kind.init(of:))) }
        return members["const"].map { Set([$0].compactMap(Kind.init(of:))) } ?? [.string]
    }

    /// The names that parameters of the HTTP contract have, or may get: a view has no parameter of such a name.
    package static let reservedNames: Set = [
        "access_token", "after", "as", "at-least", "count", "debounce", "explain", "fields", "filter", "limit",
        "offset",
        "pretty", "settle", "since", "sort", "until", "until-exists", "version", "wait",
    ]

    package static func fault(in schema: JSONValue, ofView view: String) -> String? {
        guard case .object(let members) = schema, members["type"] == .string("object") else {
            return "the parameters of the view \"\(view)\" are not a JSON Schema with the type object"
        }
        var properties = JSONObject()
        if case .object(let declared)? = members["properties"] { properties = declared }
        for (name, schema) in properties.members {
            let parameter = "the view \"\(view)\" has a parameter \"\(name)\""
            if name.isEmpty { return "\(parameter): a name has at least one character" }
            if reservedNames.contains(name) || name.hasPrefix("_") {
                let names = reservedNames.sorted().joined(separator: ", ")
                return
                    "\(parameter), and this name is reserved for the server; so are \(names), and all names that begin with _"
            }
            if kinds(of: schema).isEmpty {
                return
                    "\(parameter) whose schema does not name the type string, number, integer or boolean, and an address can hold no other type"
            }
        }
        if case .array(let required)? = members["required"] {
            for case .string(let name) in required where !properties.contains(name) {
                return "the view \"\(view)\" requires a parameter \"\(name)\", which is not among its properties"
            }
        }
        return nil
    }
}
