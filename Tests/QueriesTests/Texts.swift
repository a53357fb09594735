import StateJSON
import StateStore

/// Hands out JSON: an object as several objects of two members at most, and any other value as it is.
func texts(_ json: [UInt8]) -> MemberTexts {
    { take in
        guard case .object(let object) = try JSONValue(parsing: json, depthMax: .max), !object.members.isEmpty else {
            return try take(json)
        }
        var (part, count) = (JSONObject(), 0)
        for (name, value) in object.members {
            part[name] = value
            count += 1
            if count % 2 == 0 || count == object.members.count {
                try take(JSONValue.object(part).text)
                part = JSONObject()
            }
        }
    }
}

func texts(_ json: String) -> MemberTexts { texts(Array(json.utf8)) }
